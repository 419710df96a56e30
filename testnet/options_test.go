package testnet

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSeedFixesKeysAndNonce(t *testing.T) {
	a, b := DefaultOptions(), DefaultOptions()
	if !a.key(1).Equal(b.key(1)) || !bytes.Equal(a.nonce(), b.nonce()) {
		t.Error("the same seed gives other keys")
	}
	if a.key(0).Equal(a.key(1)) {
		t.Error("two nodes have the same key")
	}
	b.Seed = 2
	if a.key(0).Equal(b.key(0)) || bytes.Equal(a.nonce(), b.nonce()) {
		t.Error("another seed gives the same keys")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for problem, spoil := range map[string]func(*Options){
		"nodes: a testnet of 0 rollout nodes": func(o *Options) { o.Nodes = 0 },
		"nodes: a testnet of 257":             func(o *Options) { o.Nodes = maxNodes + 1 },
		"env: ":                               func(o *Options) { o.Environment = "foo" },
		"group-size: 1 rollouts":              func(o *Options) { o.GroupSize = 1 },
		"evaluation-tasks: 100000: ":          func(o *Options) { o.EvaluationTasks = 100000 },
		"max-calls: 1000000 calls":            func(o *Options) { o.MaxCalls = 1000000 },
		"max-completion-tokens: 1000000 ":     func(o *Options) { o.MaxCompletionTokens = 1000000 },
		"timeout: -1ns":                       func(o *Options) { o.Timeout = -1 },
		"dir: ":                               func(o *Options) { o.Dir = "" },
		"policy: read policy from nowhere":    func(o *Options) { o.Policy = "nowhere" },
		"examples: -1":                        func(o *Options) { o.Examples = -1 },
		"processes: the program":              func(o *Options) { o.Processes = true },
		"learner.target":                      func(o *Options) { o.Settings.Learner.Target = 2 },
	} {
		o := DefaultOptions()
		o.Dir = filepath.Join(t.TempDir(), "run")
		dir := o.Dir
		spoil(&o)
		if _, err := Run(t.Context(), o, nil); err == nil || !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%s: %v", problem, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the run folder was made for a run that cannot be: %v", problem, err)
		}
	}
}

func TestRunFolderMustBeNew(t *testing.T) {
	o := DefaultOptions()
	o.Dir = t.TempDir()
	used := filepath.Join(o.Dir, "used")
	if err := os.WriteFile(used, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, problem := range map[string]string{o.Dir: "not empty", used: "no folder"} {
		o.Dir = dir
		var option *OptionError
		if _, err := Run(t.Context(), o, nil); !errors.As(err, &option) || option.Option != "dir" || !strings.Contains(err.Error(), problem) {
			t.Errorf("a run in %s: %v", dir, err)
		}
	}
}

func TestProcessesGetTheSettings(t *testing.T) {
	t.Setenv("LIGHTSWARM_LEARNER_TARGET", "0.1")
	t.Setenv("LIGHTSWARM_NETWORK", "nonsense")
	o := DefaultOptions()
	environ, err := variables(o.Settings)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(environ, "LIGHTSWARM_LEARNER_TARGET=0.95") || !slices.Contains(environ, "LIGHTSWARM_P2P_MDNS=false") {
		t.Error("a setting of the run is missing")
	}
	for _, variable := range environ {
		if variable == "LIGHTSWARM_LEARNER_TARGET=0.1" || strings.HasPrefix(variable, "LIGHTSWARM_NETWORK=") {
			t.Errorf("%s leaks from this process", variable)
		}
	}
}

func TestFirstGroupsMakeABatch(t *testing.T) {
	o := DefaultOptions()
	for _, nodes := range []int{1, 2, 3, 4, 5, 31, 32, 33} {
		o.Nodes = nodes
		if got := int(o.firstGroups()) * nodes; got < o.Settings.Learner.Groups || got >= o.Settings.Learner.Groups+nodes {
			t.Errorf("%d nodes run %d groups together, a batch has %d", nodes, got, o.Settings.Learner.Groups)
		}
	}
}
