package experiment_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/experiment"
)

func TestCells(t *testing.T) {
	var got []string
	cells := parse(t, declared).Cells()
	for _, c := range cells {
		got = append(got, c.Label()+" / "+strings.TrimSuffix(c.FolderName(), "-"+c.ID))
	}
	want := []string{
		"dppo, 1 / dppo-1-seed1", "dppo, 2 / dppo-2-seed1", "ppo high=0.3, 1 / ppo-high-0.3-1-seed1", "ppo high=0.3, 2 / ppo-high-0.3-2-seed1",
		"dppo, 1 / dppo-1-seed2", "dppo, 2 / dppo-2-seed2", "ppo high=0.3, 1 / ppo-high-0.3-1-seed2", "ppo high=0.3, 2 / ppo-high-0.3-2-seed2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	command := "lightswarm testnet --learner-learning-rate=0.001 '--learner-loss=ppo high=0.3' --nodes=1 --processes=true --seed=1 --steps=40 --timeout=10m"
	if got := cells[2].Command(); got != command {
		t.Errorf("command %s, want %s", got, command)
	}
	// Folders of runs that are kept are found by these: they must not change.
	if id := cells[0].ID; id != "ae138f182242" {
		t.Errorf("the first run has id %s", id)
	}
	without := parse(t, "name = 'x'\nseeds = [7]").Cells()
	if len(without) != 1 || without[0].Label() != "all runs" || without[0].FolderName() != "seed7-"+without[0].ID {
		t.Errorf("a grid without axes is %+v", without)
	}
}

func TestCommandLine(t *testing.T) {
	got := experiment.CommandLine([]string{"lightswarm", "", "a b", "it's", "$HOME", "x=1"})
	if want := `lightswarm '' 'a b' 'it'\''s' '$HOME' x=1`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

var folderName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// Every run of a grid has a folder of its own, whose name any system takes, and the id follows from the flags alone: from
// neither the order in which they are declared nor whether a flag varies.
func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(0, 60, -1)
		values := rapid.SliceOfNDistinct(value, 1, 5, rapid.ID)
		d := experiment.Declaration{
			Name: "x", Seeds: rapid.SliceOfNDistinct(rapid.Uint64(), 1, 4, rapid.ID).Draw(t, "seeds"),
			Shared: []experiment.Setting{{Flag: "env", Value: value.Draw(t, "env")}},
			Axes:   []experiment.Axis{{Flag: "nodes", Values: values.Draw(t, "nodes")}, {Flag: "loss", Values: values.Draw(t, "loss")}},
		}
		cells := d.Cells()
		if want := len(d.Seeds) * len(d.Axes[0].Values) * len(d.Axes[1].Values); len(cells) != want {
			t.Fatalf("%d runs, want %d", len(cells), want)
		}
		names := map[string]bool{}
		for _, c := range cells {
			name := c.FolderName()
			if names[name] || !folderName.MatchString(name) || len(name) > 100 {
				t.Fatalf("folder %q", name)
			}
			names[name] = true
		}
		other := d
		other.Axes = []experiment.Axis{d.Axes[1], {Flag: "env", Values: []string{d.Shared[0].Value}}}
		other.Shared = []experiment.Setting{{Flag: "nodes", Value: d.Axes[0].Values[0]}}
		for _, c := range other.Cells() {
			if !slices.ContainsFunc(cells, func(x experiment.Cell) bool { return x.ID == c.ID && x.Seed == c.Seed }) {
				t.Fatalf("run %+v has another id when it is declared in another way", c)
			}
		}
	})
}
