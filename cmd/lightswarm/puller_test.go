package main

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// offering is a node whose members offer a package. Of the rest of api.Node it has nothing.
type offering struct {
	api.Node
	offers     []api.Environment
	everywhere []api.Environment // What a wider search finds besides.
	blocks     map[wire.CID][]byte
	holder     string // Who has the blocks.
	asked      int    // Requests for blocks.
}

func (o *offering) Environments(_ context.Context, _ string, everywhere bool) ([]api.Environment, error) {
	if everywhere {
		return append(slices.Clone(o.offers), o.everywhere...), nil
	}
	return o.offers, nil
}

func (o *offering) Block(_ context.Context, cid string, from []string) ([]byte, error) {
	o.asked++
	parsed, err := wire.ParseCIDString(cid)
	if err != nil || !slices.Contains(from, o.holder) {
		return nil, &api.Error{Code: "not_found", Message: "nobody has it"}
	}
	return o.blocks[parsed], nil
}

// words is a package without an author.
func words(t *testing.T) *env.Package {
	t.Helper()
	p, err := env.NewPackage(wire.EnvironmentManifest{
		Name: "words", Version: "1.0.0", Licence: "MIT", Kind: "wasm", Entry: "a.wasm",
		Splits:    []wire.Split{{Name: wire.SplitTrain, Tasks: 1}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
	}, map[string][]byte{"a.wasm": bytes.Repeat([]byte("module"), 400_000)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// offer is what a member says of a manifest, by a key of its choice.
func offer(t *testing.T, author int, name string, manifest wire.CID, at int64, holders ...string) api.Environment {
	t.Helper()
	s, err := wire.SignEnvironmentPackage(wire.NewKey(simnet.Key(8, author)), wire.EnvironmentPackage{
		Name: name, Version: "1.0.0", Manifest: manifest, Created: time.UnixMilli(at),
	})
	if err != nil {
		t.Fatal(err)
	}
	return api.Environment{CID: manifest.String(), Statement: s.Raw, Holders: holders}
}

// What others say of a package, and who claims to keep it, does not keep one from getting it.
func TestPullAmongJunk(t *testing.T) {
	p := words(t)
	honest := offer(t, 0, "words", p.CID(), 5, "honest")
	author, err := wire.OpenEnvironmentPackage(honest.Statement)
	if err != nil {
		t.Fatal(err)
	}
	var crowd []string // Members that claim to keep it; the node asks 16 for one block.
	for i := range 40 {
		crowd = append(crowd, "liar"+string(rune('A'+i)))
	}
	malformed := api.Environment{CID: p.CID().String(), Statement: []byte("junk"), Holders: []string{"liar"}}
	junk := offer(t, 1, "swords", p.CID(), 1, crowd...)
	byReference := environmentID{text: author.Reference()}
	byCID := environmentID{p.CID().String(), p.CID()}
	for name, c := range map[string]struct {
		id         environmentID
		offers     []api.Environment
		everywhere []api.Environment
	}{
		"nothing else":              {byCID, []api.Environment{honest}, nil},
		"malformed":                 {byCID, []api.Environment{malformed, honest}, nil},
		"about another environment": {byCID, []api.Environment{junk, honest}, nil},
		"replayed by who has it not": {byReference, []api.Environment{
			offer(t, 0, "words", p.CID(), 4, crowd...), honest,
		}, nil},
		"the holder is not connected": {byCID, []api.Environment{offer(t, 0, "words", p.CID(), 5, crowd...)}, []api.Environment{honest}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &offering{offers: c.offers, everywhere: c.everywhere, blocks: p.Blocks(), holder: "honest"}
			server, err := api.Serve("127.0.0.1:0", "token", o, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			client := api.NewClient(server.Address(), "token")
			defer client.Close()
			told := 0
			pull := puller{client: client, owner: node.Owner{}}
			pull.owner.Settings.Kinds = []string{"wasm"}
			file, _, err := pull.fetch(t.Context(), c.id, func(_ wire.EnvironmentManifest, by wire.PeerID) error {
				if told++; by != author.Author {
					t.Errorf("it is said to be by %s", by)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if file.CID() != p.CID() || file.Statement.Author != author.Author || told != 1 {
				t.Errorf("%s by %s, told %d times", file.CID(), file.Statement.Author, told)
			}
			// Manifest and three blocks, and no more than the groups of a crowd once or twice.
			if o.asked > 4+8 {
				t.Errorf("%d requests for blocks", o.asked)
			}
		})
	}
}

func TestPullSaysWhatIsSignedWrong(t *testing.T) {
	p := words(t)
	s, err := wire.OpenEnvironmentPackage(offer(t, 1, "swords", p.CID(), 1).Statement)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := statementOf(p.Manifest(), []candidate{{statement: s}}); err == nil || !strings.Contains(err.Error(), "the signature is not about this environment") {
		t.Error(err)
	}
}
