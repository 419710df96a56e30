package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCommandIsReadAsTyped(t *testing.T) {
	for line, want := range map[string][]string{
		"":                           nil,
		"  ":                         nil,
		"python3 agent.py":           {"python3", "agent.py"},
		" python3\tagent.py\n":       {"python3", "agent.py"},
		`python3 'my agent.py'`:      {"python3", "my agent.py"},
		`sh -c "echo '4 2'"`:         {"sh", "-c", "echo '4 2'"},
		`run --name=' a'b"c "`:       {"run", "--name= abc "},
		`run '' ""`:                  {"run", "", ""},
		`C:\agents\run.exe --deep=1`: {`C:\agents\run.exe`, "--deep=1"},
		"run a,b":                    {"run", "a,b"},
	} {
		got, err := splitWords(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	for _, line := range []string{"'", `run "a`, `run 'a"`} {
		if got, err := splitWords(line); err == nil {
			t.Errorf("%q is read as %q", line, got)
		}
	}
}

func TestCommandRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a '\"\t\\,"))))).Draw(t, "words")
		for i := range words {
			words[i] = strings.ToValidUTF8(words[i], "")
		}
		got, err := splitWords(joinWords(words))
		if err != nil {
			t.Fatal(err)
		}
		if len(words) == 0 {
			words = nil
		}
		if diff := cmp.Diff(words, got); diff != "" {
			t.Fatalf("through %q (-want +got):\n%s", joinWords(words), diff)
		}
	})
}

// An agent can be set in the file as a list or a line, and by flags of its own.
func TestAgentSettings(t *testing.T) {
	want := Default().Rollout.Agent
	want.Command, want.Folder, want.Preload = []string{"python3", "a, b.py"}, "/srv/agent", []string{"json", "openai"}
	want.Variables, want.Processes = []string{"SEARCH_KEY"}, 3
	for name, sources := range map[string]Sources{
		"list": {File: write(t, "[rollout.agent]\ncommand = ['python3', 'a, b.py']\nfolder = '/srv/agent'\npreload = ['json', 'openai']\nvariables = ['SEARCH_KEY']\nprocesses = 3\n")},
		"line": {File: write(t, "rollout.agent.command = \"python3 'a, b.py'\"\nrollout.agent.folder = '/srv/agent'\nrollout.agent.preload = 'json,openai'\nrollout.agent.variables = 'SEARCH_KEY'\nrollout.agent.processes = 3\n")},
		"flags": {Flags: parse(t, "--agent", "python3 'a, b.py'", "--agent-folder=/srv/agent", "--agent-preload=json", "--agent-preload=openai",
			"--agent-variables=SEARCH_KEY", "--agent-processes=3")},
	} {
		l, err := Load(sources)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, l.Rollout.Agent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
