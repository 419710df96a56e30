package rollout

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// testTemplate is a template over a tokenizer without merges.
var testTemplate = sync.OnceValue(func() *chat.Template {
	tok, err := tokenizer.Train(slices.Values([]string{"calculator"}), 300, chat.Specials())
	if err != nil {
		panic(err)
	}
	template, err := chat.NewTemplate(chat.Lightswarm1, tok)
	if err != nil {
		panic(err)
	}
	return template
})

// fakeSession is a policy whose behaviour is a function of the sample key alone, in the way of an exact engine.
type fakeSession struct {
	digest policy.Digest
	// behave returns the message to write; nil means mixed.
	behave func(r policy.Request) (chat.Message, error)
	// delay is how long a call takes.
	delay time.Duration

	mu     sync.Mutex
	closed int // guarded by mu
}

func (s *fakeSession) Policy() policy.Digest { return s.digest }

func (s *fakeSession) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

func (s *fakeSession) Score(context.Context, []int32, int) ([]float32, error) {
	return nil, errors.New("the fake session does not score")
}

func (s *fakeSession) Generate(ctx context.Context, r policy.Request) (policy.Completion, error) {
	s.mu.Lock()
	closed := s.closed > 0
	s.mu.Unlock()
	if closed {
		return policy.Completion{}, errors.New("the session is closed")
	}
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return policy.Completion{}, ctx.Err()
		}
	}
	behave := s.behave
	if behave == nil {
		behave = mixed
	}
	m, err := behave(r)
	if err != nil {
		return policy.Completion{}, err
	}
	c := policy.Completion{Tokens: testTemplate().RenderCompletion(m), Finish: policy.FinishStop}
	if len(c.Tokens) > r.MaxTokens {
		c.Tokens, c.Finish = c.Tokens[:r.MaxTokens], policy.FinishLength
	}
	for i := range c.Tokens {
		c.LogProbs = append(c.LogProbs, -float32(r.Key[i%32])/256)
	}
	return c, nil
}

// mixed answers, calls the tool well or badly, writes malformed text or goes on for ever, as the key has it.
func mixed(r policy.Request) (chat.Message, error) {
	n := binary.BigEndian.Uint32(r.Key[:]) % 64
	switch {
	case n < 20:
		return text(fmt.Sprint(n)), nil
	case n < 50:
		return callTool(fmt.Sprintf(`{"expression":"%d*3"}`, n)), nil
	case n < 56:
		return callTool("nonsense"), nil
	case n < 60:
		return chat.Message{Tokens: []int32{5, 5, testTemplate().Stop()}}, nil
	}
	return text("on and on and on and on and on and on and on and on and on"), nil
}

func text(s string) chat.Message { return chat.Message{Role: chat.Assistant, Content: s} }

func callTool(arguments string) chat.Message {
	return chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "call_0", Name: "calculator", Arguments: arguments}}}
}

// testPolicy is version v of a fake policy.
func testPolicy(v uint64, s *fakeSession) *Policy {
	s.digest = policy.Digest{1, byte(v)}
	return &Policy{
		Version: v, Session: s, Template: testTemplate(), Stop: []int32{testTemplate().Stop()}, Engine: bundle.EngineExact,
	}
}

// testNetwork has groups of 4, at most 3 calls of 40 tokens, and an evaluation of 10 tasks in blocks of 4.
func testNetwork(t testing.TB, environment env.Environment) *Network {
	t.Helper()
	set, err := env.NewSet(environment)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(environment)
	if err != nil {
		t.Fatal(err)
	}
	return &Network{
		ID: wire.SumCID([]byte("network")),
		Charter: &wire.Charter{
			Environments: []wire.EnvironmentRef{reference},
			Rollout: wire.RolloutRules{
				GroupSize: 4, MaxCalls: 3, MaxCompletionTokens: 40, Sampling: wire.Sampling{Temperature: 1}, GroupsPerVersion: 5,
			},
			Evaluation: wire.EvaluationRules{Tasks: 10, BlockTasks: 4},
		},
		Environments: set,
	}
}

func calcNetwork(t testing.TB) *Network { return testNetwork(t, calc.New()) }

// fakePolicies is a PolicySource whose releases a test publishes.
type fakePolicies struct {
	mu       sync.Mutex
	current  *Release      // guarded by mu
	changed  chan struct{} // guarded by mu
	acquired int           // guarded by mu
	closed   int           // guarded by mu
}

func newFakePolicies() *fakePolicies { return &fakePolicies{changed: make(chan struct{})} }

func (p *fakePolicies) publish(r Release) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = &r
	close(p.changed)
	p.changed = make(chan struct{})
}

// state returns the current release, or nil, and a channel that is closed when it changes.
func (p *fakePolicies) state() (*Release, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current, p.changed
}

func (p *fakePolicies) Acquire(ctx context.Context) (Release, error) {
	for {
		r, changed := p.state()
		if r != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.acquired++
			pinned := *r
			pinned.Close = func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.closed++
			}
			return pinned, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Release{}, ctx.Err()
		}
	}
}

func (p *fakePolicies) Wait(ctx context.Context, version uint64) error {
	for {
		r, changed := p.state()
		if r != nil && r.Version > version {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeStore is Announcer, Counters and Evaluations over one memory, like a node's store.
type fakeStore struct {
	mu        sync.Mutex
	next      uint64              // guarded by mu
	reserved  map[uint64]uint64   // guarded by mu; the version of each reserved counter
	announced []wire.Announcement // guarded by mu
	bundles   []*bundle.Bundle    // guarded by mu
	claimed   map[blockID]bool    // guarded by mu; others say that they measured these
	elsewhere map[blockID]bool    // guarded by mu
	// refuse makes Announce fail.
	refuse func(wire.Announcement) error
}

type blockID struct {
	version uint64
	purpose wire.Purpose
	block   uint64
}

func newFakeStore() *fakeStore {
	return &fakeStore{reserved: map[uint64]uint64{}, claimed: map[blockID]bool{}, elsewhere: map[blockID]bool{}}
}

func (s *fakeStore) Announce(_ context.Context, a wire.Announcement, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(a); err != nil {
			return err
		}
	}
	if err := a.Bundle.Verify(body); err != nil {
		return err
	}
	b, err := bundle.Decode(body, bundle.Limits{})
	if err != nil {
		return err
	}
	if a.Purpose == wire.PurposeTrain {
		if version, ok := s.reserved[a.Counter]; !ok || version != a.PolicyVersion {
			return fmt.Errorf("counter %d is not reserved under version %d", a.Counter, a.PolicyVersion)
		}
		delete(s.reserved, a.Counter)
	}
	s.announced = append(s.announced, a)
	s.bundles = append(s.bundles, b)
	return nil
}

func (s *fakeStore) Resume(_ context.Context, version uint64) ([]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.reserved, func(_, v uint64) bool { return v != version })
	return slices.Sorted(maps.Keys(s.reserved)), nil
}

func (s *fakeStore) Reserve(_ context.Context, version uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.next
	s.next++
	s.reserved[c] = version
	return c, nil
}

// pending returns the counters that are reserved, sorted.
func (s *fakeStore) pending() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.reserved))
}

func (s *fakeStore) Claim(version uint64, purpose wire.Purpose, block uint64) Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch id := (blockID{version, purpose, block}); {
	case s.elsewhere[id]:
		return Settled
	case s.claimed[id]:
		return Claimed
	}
	return Unclaimed
}

// list returns what was announced so far.
func (s *fakeStore) list() []wire.Announcement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.announced)
}

// counters returns the announced training counters of a version, sorted.
func (s *fakeStore) counters(version uint64) []uint64 {
	var list []uint64
	for _, a := range s.list() {
		if a.Purpose == wire.PurposeTrain && a.PolicyVersion == version {
			list = append(list, a.Counter)
		}
	}
	slices.Sort(list)
	return list
}

// testPeer is a valid peer id.
var testPeer = sync.OnceValue(func() wire.PeerID {
	return wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).Peer()
})
