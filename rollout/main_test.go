package rollout

import (
	"context"
	"os"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// TestMain uses the bundle codec once: its compressor makes channels at first use, which must not belong to the
// synctest bubble of whichever test comes first.
func TestMain(m *testing.M) {
	if err := warmCodec(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func warmCodec() error {
	set, err := env.NewSet(calc.New())
	if err != nil {
		return err
	}
	reference, err := env.Reference(calc.New())
	if err != nil {
		return err
	}
	n := &Network{ID: wire.SumCID(nil), Environments: set, Charter: &wire.Charter{
		Environments: []wire.EnvironmentRef{reference},
		Rollout:      wire.RolloutRules{GroupSize: 2, MaxCalls: 1, MaxCompletionTokens: 8},
	}}
	b, err := RunGroup(context.Background(), n, testPolicy(0, &fakeSession{}), testPeer(), 0)
	if err != nil {
		return err
	}
	body, err := bundle.Encode(b)
	if err != nil {
		return err
	}
	_, err = bundle.Decode(body, bundle.Limits{})
	return err
}
