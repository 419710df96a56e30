package experiment_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/experiment"
)

var flags = []string{"env", "learner-learning-rate", "learner-loss", "nodes", "processes", "steps", "target", "timeout"}

const declared = `
name = "losses"
about = """
Which one?
"""
seeds = [1, 2]
threshold = 1

[testnet]
steps = 40
timeout = "10m"
processes = true
learner-learning-rate = 1e-3

[[vary]]
flag = "learner-loss"
values = ["dppo", "ppo high=0.3"]

[[vary]]
flag = "nodes"
values = [1, 2]
`

func parse(t *testing.T, text string) *experiment.Declaration {
	t.Helper()
	d, err := experiment.Parse("x.toml", []byte(text), flags)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParse(t *testing.T) {
	want := &experiment.Declaration{
		Name: "losses", About: "Which one?", Seeds: []uint64{1, 2}, Threshold: 1,
		Shared: []experiment.Setting{
			{Flag: "learner-learning-rate", Value: "0.001"}, {Flag: "processes", Value: "true"}, {Flag: "steps", Value: "40"},
			{Flag: "timeout", Value: "10m"},
		},
		Axes: []experiment.Axis{
			{Flag: "learner-loss", Values: []string{"dppo", "ppo high=0.3"}}, {Flag: "nodes", Values: []string{"1", "2"}},
		},
	}
	if diff := cmp.Diff(want, parse(t, declared)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedDeclarations(t *testing.T) {
	const start = "name = 'x'\nseeds = [1]\n"
	for text, want := range map[string]string{
		"seeds = [1]":                                                          `x.toml: name: "": use 1 to 64 letters`,
		"name = '../x'\nseeds = [1]":                                           `x.toml:1: name: "../x": use`,
		"name = 'x'":                                                           "x.toml: seeds: there are 0: give 1 to 1000",
		"name = 'x'\nseeds = [3, 1, 3]":                                        "x.toml:2: seeds: 3 is there twice",
		"name = 'x'\nseeds = [-1]":                                             "x.toml:2: ",
		start + "threshold = 1.5":                                              "x.toml:3: threshold: 1.5: use a share",
		start + "threshold = nan":                                              "x.toml:3: threshold: NaN: use a share",
		start + "\nsead = 3":                                                   "x.toml:4: there is no field sead",
		start + "[[vary]]\nflags = 'nodes'":                                    "x.toml:4: there is no field vary.flags",
		start + "[testnet]\nlearner-los = 'ppo'":                               `x.toml:4: testnet.learner-los: runs have no flag "learner-los"; did you mean learner-loss?`,
		start + "[testnet]\nx-y-z-z-y = 1":                                     `x.toml:4: testnet.x-y-z-z-y: runs have no flag "x-y-z-z-y"; lightswarm testnet --help lists them`,
		start + "[testnet]\nseed = 1":                                          "x.toml:4: testnet.seed: the seeds of all runs are listed in seeds",
		start + "[testnet]\nenv = ['a', 'b']":                                  "x.toml:4: testnet.env: want a string, a number, true or false",
		start + "[[vary]]\nvalues = [1]":                                       `x.toml:3: vary[0]: runs have no flag ""`,
		start + "[[vary]]\nflag = 'nodes'":                                     "x.toml:3: vary[0]: nodes has no values",
		start + "[[vary]]\nflag = 'nodes'\nvalues = [1, '1']":                  `x.toml:5: vary[0].values: "1" is there twice`,
		start + "[[vary]]\nflag = 'nodes'\nvalues = [[1]]":                     "x.toml:5: vary[0].values: want strings",
		start + "[testnet]\nnodes = 1\n[[vary]]\nflag = 'nodes'\nvalues = [1]": "x.toml:6: vary[0].flag: nodes is in line 4 already",
		start + axis("nodes") + axis("steps") + axis("env"):                    "x.toml:2: seeds: the grid has more than 10000 runs",
		start + strings.Replace(axis("nodes"), "nodes", "seed", 1):             "x.toml:4: vary[0].flag: the seeds of all runs",
	} {
		_, err := experiment.Parse("x.toml", []byte(text), flags)
		var wrong *experiment.DeclarationError
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// axis has a hundred values.
func axis(flag string) string {
	values := make([]string, 100)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	return fmt.Sprintf("[[vary]]\nflag = %q\nvalues = [%s]\n", flag, strings.Join(values, ", "))
}
