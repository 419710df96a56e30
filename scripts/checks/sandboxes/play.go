package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// groupSize is how many rollouts a draw has.
const groupSize = 4

// play plays groups and prints the CIDs of their bundles.
func play(ctx context.Context, d *wasm.Driver, p *env.Package, groups int) error {
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	s := &script{digest: snapshot.Digest(), tok: snapshot.Tokenizer}
	version, err := rollout.NewPolicy(0, snapshot, s, bundle.EngineExact)
	if err != nil {
		return err
	}
	s.template = version.Template
	return opened(ctx, d, p, func(e env.Environment) error {
		set, err := env.NewSet(e)
		if err != nil {
			return err
		}
		reference, err := env.Reference(e)
		if err != nil {
			return err
		}
		network := &rollout.Network{
			ID: wire.SumCID([]byte("sandbox")), Environments: set,
			Charter: &wire.Charter{
				Environments: []wire.EnvironmentRef{reference},
				Rollout: wire.RolloutRules{
					GroupSize: groupSize, MaxCalls: 3, MaxCompletionTokens: 64, GroupsPerVersion: uint32(groups), Sampling: wire.Sampling{Temperature: 1}, //nolint:gosec // small
				},
			},
		}
		peer := wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer()
		for counter := range groups {
			b, err := rollout.RunGroup(ctx, network, version, peer, uint64(counter)) //nolint:gosec // small
			if err != nil {
				return err
			}
			for _, r := range b.Rollouts {
				if r.Outcome != bundle.OutcomeScored || len(r.Calls) != 2 {
					return fmt.Errorf("a rollout of group %d ended as %v after %d calls", counter, r.Outcome, len(r.Calls))
				}
			}
			body, err := bundle.Encode(b)
			if err != nil {
				return err
			}
			fmt.Println(wire.SumCID(body))
		}
		return nil
	})
}

// script is a policy.Session that has the word's letters counted, then says how many there are of one, or says one more when the sample
// key says so.
type script struct {
	digest   policy.Digest
	tok      *tokenizer.Tokenizer
	template *chat.Template
}

// Policy implements policy.Session.
func (s *script) Policy() policy.Digest { return s.digest }

// Close implements policy.Session.
func (s *script) Close() {}

// Score implements policy.Session.
func (s *script) Score(context.Context, []int32, int) ([]float32, error) {
	return nil, errors.New("the script does not score")
}

// The question of the environment, and what its tool says.
var (
	question = regexp.MustCompile(`How many times is "(\w)" in "(\w+)"`)
	tallied  = regexp.MustCompile(`\b([a-z])(\d)\b`)
)

// Generate implements policy.Session.
func (s *script) Generate(_ context.Context, r policy.Request) (policy.Completion, error) {
	prompt := s.tok.Decode(r.Prompt)
	asked := question.FindStringSubmatch(prompt)
	if asked == nil {
		return policy.Completion{}, fmt.Errorf("the prompt has no question: %q", prompt)
	}
	m := chat.Message{Role: chat.Assistant}
	tally := tallied.FindAllStringSubmatch(prompt, -1)
	if tally == nil {
		m.ToolCalls = []chat.ToolCall{{Name: "tally", Arguments: `{"word":"` + asked[2] + `"}`}}
	}
	for _, line := range tally {
		if line[1] == asked[1] {
			m.Content = strconv.Itoa(int(line[2][0]-'0') + int(r.Key[0]&1))
		}
	}
	c := policy.Completion{Tokens: s.template.RenderCompletion(m), Finish: policy.FinishStop}
	for i := range c.Tokens {
		c.LogProbs = append(c.LogProbs, -float32(1+int(r.Key[i%len(r.Key)]))*policy.LogProbGrid)
	}
	return c, nil
}
