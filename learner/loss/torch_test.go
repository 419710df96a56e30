package loss_test

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/lightswarm/lightswarm/learner/loss"
)

// torchFixtures is what scripts/fixtures/losses.py writes.
type torchFixtures struct {
	Rows []struct {
		Lag        uint64
		New, Old   []int // times 4096
		Advantages []int // times 64
	}
	Losses []struct {
		Spec string
		Rows []struct{ Loss, Gradient []float64 }
	}
}

func readTorchFixtures(t *testing.T) torchFixtures {
	t.Helper()
	file, err := os.Open("testdata/losses.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var f torchFixtures
	if err := json.NewDecoder(unpacked).Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Losses and gradients are those that PyTorch makes of the papers' formulas, on rows that meet every bound.
func TestAgainstTorch(t *testing.T) {
	fixtures := readTorchFixtures(t)
	covered := map[string]bool{}
	for _, l := range fixtures.Losses {
		covered[l.Spec] = true
		t.Run(l.Spec, func(t *testing.T) {
			f, err := loss.Parse(l.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Rows) != len(fixtures.Rows) || f.Spec != l.Spec {
				t.Fatalf("%d of %d rows for %q", len(l.Rows), len(fixtures.Rows), f.Spec)
			}
			bounded, free := 0, 0
			for i, row := range fixtures.Rows {
				r := loss.Row{New: scaled(row.New, 4096), Old: scaled(row.Old, 4096), Advantages: scaled(row.Advantages, 64), Lag: row.Lag}
				for j, got := range apply(f.Part, r) {
					if got.Bounded {
						bounded++
					} else {
						free++
					}
					if want := l.Rows[i].Loss[j]; !near(got.Loss, want) {
						t.Errorf("row %d, token %d: loss %v, torch has %v", i, j, got.Loss, want)
					}
					if want := l.Rows[i].Gradient[j]; !near(got.Gradient, want) {
						t.Errorf("row %d, token %d: gradient %v, torch has %v", i, j, got.Gradient, want)
					}
				}
			}
			if free == 0 || bounded == 0 && f.Spec != "reinforce" { // Reinforce has no bound.
				t.Errorf("%d tokens are bounded, %d are not", bounded, free)
			}
		})
	}
	for _, name := range loss.Kinds.Names() {
		if f, err := loss.Parse(name); err != nil || !covered[f.Spec] {
			t.Errorf("%q, %v: scripts/fixtures/losses.py does not have it", f.Spec, err)
		}
	}
	for _, name := range loss.Additions.Names() {
		if f, err := loss.Parse("tis + " + name); err != nil || !covered[f.Spec] {
			t.Errorf("%q, %v: scripts/fixtures/losses.py does not have it", f.Spec, err)
		}
	}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-5*(1+math.Abs(want)) }

func scaled(values []int, unit float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v) / unit
	}
	return out
}
