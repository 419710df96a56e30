package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parse(t *testing.T, arguments ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(set)
	if err := set.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return set
}

func origin(l *Loaded, key string) (value, from string) {
	for _, s := range l.Settings() {
		if s.Key == key {
			return s.Value, s.Origin
		}
	}
	return "", ""
}

func TestPrecedence(t *testing.T) {
	path := write(t, "roles = ['learner']\n[rollout]\nin_flight = 1\nslots = 1\n[p2p]\nmdns = false\n")
	l, err := Load(Sources{
		File:    path,
		Environ: []string{"HOME=/root", "LIGHTSWARM_DATA=/x", "LIGHTSWARM_ROLLOUT_IN_FLIGHT=2", "LIGHTSWARM_ROLLOUT_SLOTS=2"},
		Flags:   parse(t, "--rollout-slots=3"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"roles":             {"learner", "file " + path},
		"p2p.mdns":          {"false", "file " + path},
		"rollout.in_flight": {"2", "environment LIGHTSWARM_ROLLOUT_IN_FLIGHT"},
		"rollout.slots":     {"3", "flag --rollout-slots"},
		"log.level":         {"info", "default"},
	} {
		value, from := origin(l, key)
		if got := [2]string{value, from}; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if !l.Has(RoleLearner) || l.Has(RoleRollout) || l.P2P.MDNS || l.Rollout.InFlight != 2 || l.Rollout.Slots != 3 {
		t.Errorf("wrong config: %+v", l.Config)
	}
}

func TestRepeatedListFlagsAreJoined(t *testing.T) {
	const a = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
	const b = "/ip4/192.0.2.2/tcp/4001/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8"
	l, err := Load(Sources{Flags: parse(t, "--bootstrap", a, "--bootstrap", b, "--mdns=false")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{a, b}, l.P2P.Bootstrap); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		sources Sources
		want    []string
	}{
		"unknown key": {
			Sources{File: write(t, "[rollout]\nin_fligth = 3\n")},
			[]string{`unknown key "rollout.in_fligth"`, "did you mean rollout.in_flight?"}},
		"unknown variable": {
			Sources{Environ: []string{"LIGHTSWARM_LOGLEVEL=debug"}},
			[]string{`"LIGHTSWARM_LOGLEVEL"`, "did you mean LIGHTSWARM_LOG_LEVEL?"}},
		"nothing like it": {
			Sources{File: write(t, "zzzzzzzzzzzzzz = 1\n")},
			[]string{`unknown key "zzzzzzzzzzzzzz"`}},
		"wrong type": {
			Sources{File: write(t, "[rollout]\nslots = 'many'\n")},
			[]string{`rollout.slots = "many"`, "config.toml", "want a whole number"}},
		"list of numbers": {
			Sources{File: write(t, "roles = [1]\n")},
			[]string{"roles: element 0 is not a string"}},
		"syntax": {
			Sources{File: write(t, "roles = [\n")},
			[]string{"config.toml:"}},
		"missing file": {
			Sources{File: "/nonexistent/config.toml", FileRequired: true},
			[]string{"read settings", "/nonexistent/config.toml"}},
		"role": {
			Sources{Environ: []string{"LIGHTSWARM_ROLES=learner,boss"}},
			[]string{`roles = "learner,boss" (environment LIGHTSWARM_ROLES)`, `"boss" is no role; use learner`}},
		"public API": {
			Sources{Environ: []string{"LIGHTSWARM_API_ADDRESS=0.0.0.0:80"}},
			[]string{"use a loopback address"}},
		"bootstrap without peer": {
			Sources{Environ: []string{"LIGHTSWARM_P2P_BOOTSTRAP=/ip4/192.0.2.1/tcp/1"}},
			[]string{"p2p.bootstrap", "/p2p/12D3Koo"}},
		"signer": {
			Sources{Flags: parse(t, "--rollout-environments-signers", "somebody")},
			[]string{`rollout.environments.signers = "somebody" (flag --rollout-environments-signers)`, `"somebody" is no peer id`}},
		"network": {
			Sources{Environ: []string{"LIGHTSWARM_NETWORK=mine"}},
			[]string{`network = "mine"`, "copy the whole id"}},
		"comma in an element": {
			Sources{File: write(t, "roles = ['learner,rollout']\n")},
			[]string{"config.toml: roles", `"learner,rollout" contains a comma`}},
		"array in a scalar's place": {
			Sources{File: write(t, "rollout.slots = ['1']\n")},
			[]string{"config.toml: rollout.slots", "want one value"}},
		"open quote": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_AGENT_COMMAND=python3 'a"}},
			[]string{"rollout.agent.command", "a ' is not closed"}},
		"agent without a command": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_AGENT_FOLDER=/srv"}},
			[]string{"rollout.agent.command", "say how it is started"}},
		"runners of a network": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_AGENT_LIGHTNING=0.0.0.0:4747"}},
			[]string{"rollout.agent.lightning", "use a loopback address"}},
		"runners beside a program": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_AGENT_LIGHTNING=127.0.0.1:4747", "LIGHTSWARM_ROLLOUT_AGENT_COMMAND=python3 a.py"}},
			[]string{"rollout.agent.lightning", "leave out the other"}},
		"preload of a file": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_AGENT_COMMAND=python3 a.py", "LIGHTSWARM_ROLLOUT_AGENT_PRELOAD=a.py,-m"}},
			[]string{"rollout.agent.preload", `"-m" is no module of Python or Node.js`}},
		"variable with a value": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_AGENT_COMMAND=a", "LIGHTSWARM_ROLLOUT_AGENT_VARIABLES=KEY=1"}},
			[]string{"rollout.agent.variables", "names alone"}},
		"unknown kind": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_ENVIRONMENTS_KINDS=wasm,docker"}},
			[]string{"rollout.environments.kinds", `"docker" is no kind of environment`}},
		"server without a name": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_ENVIRONMENTS_OPENENV=http://127.0.0.1:8000"}},
			[]string{"rollout.environments.openenv", "use for example maze=http://127.0.0.1:8000"}},
		"server without a scheme": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_ENVIRONMENTS_OPENENV=maze=127.0.0.1:8000"}},
			[]string{"rollout.environments.openenv", "use for example maze=http://127.0.0.1:8000"}},
		"two servers": {
			Sources{Environ: []string{"LIGHTSWARM_ROLLOUT_ENVIRONMENTS_OPENENV=maze=http://a,maze=http://b"}},
			[]string{"rollout.environments.openenv", "an environment has one server"}},
		"unknown loss": {
			Sources{Flags: parse(t, "--learner-loss", "ppo-duel")},
			[]string{`learner.loss = "ppo-duel" (flag --learner-loss): unknown loss "ppo-duel"; did you mean ppo-dual; use dppo, ppo`}},
		"loss out of range": {
			Sources{File: write(t, "[learner]\nloss = 'tis cap=3 + veto low=2'\n")},
			[]string{`learner.loss = "tis cap=3 + veto low=2"`, "config.toml", "after +: addition to a loss veto: low = 2: use 0 to 1"}},
		"unknown credit": {
			Sources{Flags: parse(t, "--learner-credit", "turn-grup")},
			[]string{`learner.credit = "turn-grup" (flag --learner-credit): unknown credit "turn-grup"; did you mean turn-group`}},
		"advantage out of range": {
			Sources{File: write(t, "[learner]\nadvantage = 'rae decay=1'\n")},
			[]string{`learner.advantage = "rae decay=1"`, "advantage rae: decay = 1: use 0 to 0.9999"}},
		"unknown level": {
			Sources{Environ: []string{"LIGHTSWARM_LEARNER_LEVEL=rollout"}},
			[]string{"learner.level", "use trajectory, transition or concatenated"}},
		"broken agents": {
			Sources{File: write(t, "[learner]\nagents = ['writer', '[a']\n")},
			[]string{"learner.agents", "such as writer or check*"}},
		"unknown normaliser": {
			Sources{Environ: []string{"LIGHTSWARM_LEARNER_NORMALISER=per-call"}},
			[]string{"learner.normaliser", "use per-rollout, per-token or per-constant"}},
		"no multiple": {
			Sources{Environ: []string{"LIGHTSWARM_LEARNER_DYNAMIC=0.5"}},
			[]string{`learner.dynamic = "0.5"`, "use 1 for off, or up to 64"}},
		"no number": {
			Sources{File: write(t, "[learner]\ndynamic = nan\n")},
			[]string{"learner.dynamic"}},
		"a step that does not fit": {
			Sources{Flags: parse(t, "--learner-groups", "64", "--learner-dynamic", "4", "--learner-waiting", "200")},
			[]string{"learner.waiting", "as many as learner.groups times learner.dynamic"}},
		"small store": {
			Sources{Environ: []string{"LIGHTSWARM_STORE_MAX_BLOCK_BYTES=1MiB"}},
			[]string{"at least 64MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(c.sources)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
		})
	}
}

func TestInvalidValueIsAFieldError(t *testing.T) {
	_, err := Load(Sources{Environ: []string{"LIGHTSWARM_LOG_LEVEL=loud"}})
	var field *FieldError
	if !errors.As(err, &field) {
		t.Fatalf("%v is no FieldError", err)
	}
	want := FieldError{Key: "log.level", Value: "loud", Problem: "use debug, info, warn or error", Origin: "environment LIGHTSWARM_LOG_LEVEL"}
	if diff := cmp.Diff(want, *field); diff != "" {
		t.Error(diff)
	}
}

// Every setting that Settings lists can be set to what it lists through the file, the environment and a flag.
func TestSettingsRoundTrip(t *testing.T) {
	want, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	var environ, arguments []string
	for _, s := range want.Settings() {
		fmt.Fprintf(&file, "%s = %q\n", s.Key, s.Value)
		environ = append(environ, environmentName(s.Key)+"="+s.Value)
		if !commandSets(s.Key) {
			arguments = append(arguments, "--"+flagName(s.Key)+"="+s.Value)
		}
	}
	for name, sources := range map[string]Sources{
		"file":        {File: write(t, file.String())},
		"environment": {Environ: environ},
		"flags":       {Flags: parse(t, arguments...)},
	} {
		got, err := Load(sources)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, s := range got.Settings() {
			unset := s.Origin == "default" && (name != "flags" || !commandSets(s.Key))
			if s.Value != want.Settings()[i].Value || unset {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Int64Range(0, 1<<50).Draw(t, "size"))
		back, err := parseSize(size.String())
		if err != nil || back != size {
			t.Fatalf("%d is written %s and read %d, %v", size, size, back, err)
		}
	})
	for _, bad := range []string{"", "-1", "1.5GiB", "9999999TiB", "1GB", "GiB"} {
		if got, err := parseSize(bad); err == nil {
			t.Errorf("%q is read as %d", bad, got)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("roles = ['rollout']\n[p2p]\nmdns = true\n")
	f.Add("a.b.c = [[1]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := Load(Sources{File: write(t, text)}); err == nil && l.Validate() != nil {
			t.Error("Load returned an invalid config")
		}
	})
}

func TestServers(t *testing.T) {
	l, err := Load(Sources{File: write(t, "[rollout.environments]\nopenenv = ['maze=http://127.0.0.1:8000', 'chess=wss://example.org/ws?a=b']\n")})
	if err != nil {
		t.Fatal(err)
	}
	servers := l.Rollout.Environments.Servers()
	if len(servers) != 2 || servers["maze"] != "http://127.0.0.1:8000" || servers["chess"] != "wss://example.org/ws?a=b" {
		t.Errorf("%v", servers)
	}
}
