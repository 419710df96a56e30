package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/named"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

// The page that documents every setting is what the table says.
func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "configuration.md")
	want := reference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go test ./node/config -update:\n%s", diff)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString(`# Settings

A setting comes from the defaults, the data folder's config.toml, the environment and the command line; a later one wins.
An unknown key is an error that suggests the nearest known one.

In config.toml the part of a key before the dot is a section:

` + "```toml" + `
[p2p]
listen = ["/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic-v1"]

[rollout]
threads = 4

[rollout.agent]
command = ["python3", "agent.py"]
` + "```" + `

| key | default | environment | flag | what it sets |
|---|---|---|---|---|
`)
	defaults := Default()
	for _, f := range defaults.fields() {
		value := f.value.String()
		if value != "" {
			value = "`" + value + "`"
		}
		flag := ""
		if !commandSets(f.key) {
			flag = "`--" + flagName(f.key) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", f.key, value, environmentName(f.key), flag, f.usage)
	}
	b.WriteString(`
The command of an agent may also be one text, as it is typed: words between spaces, where single or double quotes hold
together what they enclose. [Agents](agents.md) says how its program is run.

A command has the flags that matter to it. Network and roles have none: the command is what says them, and join takes the
network's id as its argument. Sizes are a number and B, KiB, MiB, GiB or TiB; durations are such as 90s or
5m; lists are separated by commas, and a list's flag may be given several times.

` + "`LIGHTSWARM_DATA`" + ` names the data folder; the flag is ` + "`--data`" + `.

# The learner's algorithm

A loss is its name, the parameters that are to differ from their defaults, and after plus signs what is put around it, from the
inside out: ` + "`tis cap=3 + veto + k2 weight=0.01`" + `. Other parts have no more than a name and parameters. Packages
learner/credit, learner/advantage and learner/loss have formulas and sources. w is the ratio of a token's probabilities under the
policy that is trained and the one that sampled the token; a row is the trained tokens of one sequence, which at level trajectory
holds a rollout's calls as far as each prompt repeats the calls before it.

Levels trajectory and transition train the same tokens in the contexts in which they were sampled. Level concatenated is what the
paper argues against, to compare with: one row a rollout, in which each trained call adds what its prompt has that an earlier
call's prompt and completion do not, or the whole prompt where it continues none, and its completion; all else is masked. Where
every prompt continues the call before, that is trajectory, to the bit. Elsewhere tokens have another context than when they were
sampled, and what the policy said of them does not hold for the row. Its ratios are then to the weights before the step, which a
further forward pass computes: they bound what one step changes, but neither tell how old groups are nor correct for that. A
rollout's last calls are left out where the model's context has no room for them; ` + "`cut_tokens`" + ` in
[metrics.md](metrics.md#metricsjsonl) counts what that loses.

`)
	kinds(&b, credit.Kinds)
	kinds(&b, advantage.Kinds)
	kinds(&b, loss.Kinds)
	kinds(&b, loss.Additions)
	kinds(&b, loss.Normalisers)
	b.WriteString(`# Training on a folder

` + "`lightswarm policy train FOLDER --charter FILE --out FOLDER`" + ` does the learner's part alone, on the files ` + "`*.bundle`" + ` of a folder in the
order of their names: the same checks and steps, and so the same policy, to the bit, on every machine. It has those of the settings
above that mean something without a network, as flags and variables: steps, groups, dynamic, learning_rate, the algorithm, workers
and metrics. ` + "`--data`" + ` keeps the state, from which the same command goes on after a kill. The charter and the bundles of a network
are blocks, which its nodes give out: ` + "`GET /v1/blocks/CID`" + ` of the [local API](api.md), with the network's id for the charter and
the ids that ` + "`lightswarm ledger --json`" + ` lists. ` + "`lightswarm policy train --help`" + ` explains the rest.

# The data folder

| name | what it is |
|---|---|
| config.toml | settings; optional |
| identity.key | the peer's ed25519 private key, PKCS #8 in PEM, mode 0600: back it up, it is who the node is |
| api.token | bearer token of the local API, mode 0600 |
| api.address | where the local API listens; there while the node runs |
| listen | the addresses that the node listened on last: where a setting leaves a port open, the node takes the same again |
| log.txt | the log of a learner that draws on a terminal, and of the nodes of a testnet |
| lock | held by the process that uses the folder; it contains that process's id |
| db/ | the database: everything else that the node must not lose |
| lightning.key | what runners of Agent Lightning have to know, mode 0600 |
| lightning.env | what their processes need in their environment, mode 0600; written when the node starts |
| agents/ | where the programs that play rollouts work; nothing in it outlives the node |
`)
	return b.String()
}

// kinds documents a table.
func kinds[T any](b *strings.Builder, t named.Table[T]) {
	fmt.Fprintf(b, "| %s | what it does | parameters: default, range, meaning |\n|---|---|---|\n", t.Part)
	for _, k := range t.Kinds {
		parameters := make([]string, len(k.Parameters))
		for i, p := range k.Parameters {
			parameters[i] = fmt.Sprintf("`%s` %v, %s: %s", p.Name, p.Default, p.Range(), p.About)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", k.Name, k.About, strings.Join(parameters, "; "))
	}
	b.WriteString("\n")
}
