package learner

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/learnerpb"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// progressMajor is the version of Progress that this program writes, and the newest that it reads.
const progressMajor = 1

// progress is what a learner remembers besides weights and records.
type progress struct {
	nextOrder     uint64
	groupsTrained uint64
	tokensTrained uint64
	reasons       map[Reason]uint64
	behaviours    []Behaviour // by version
	board         *Board
	memory        advantage.Memory
	critic        credit.Memory
	yield         Yield
	file          string // the last one that was read, of a learner of a folder
}

// encode returns the stored form; the same progress gives the same bytes.
func (p progress) encode() ([]byte, error) {
	m := &learnerpb.Progress{
		Major:         progressMajor,
		NextOrder:     p.nextOrder,
		GroupsTrained: p.groupsTrained,
		TokensTrained: p.tokensTrained,
		Reasons:       make(map[string]uint64),
		File:          p.file,
		YieldGroups:   p.yield.groups,
		YieldLearned:  p.yield.learned,
	}
	for reason, n := range p.reasons {
		m.Reasons[string(reason)] = n
	}
	for _, b := range p.behaviours {
		m.Behaviours = append(m.Behaviours, &learnerpb.Behaviour{
			Version:  b.Version,
			Digest:   b.Digest[:],
			Evaluate: b.Evaluate,
		})
	}
	for _, role := range p.memory.Roles() {
		m.Roles = append(m.Roles, &learnerpb.Role{Environment: role.Environment, Agent: role.Agent, MeanReturn: p.memory[role]})
	}
	if p.critic.Moments != nil {
		m.Critic = &learnerpb.Critic{Gram: p.critic.Gram, Moments: p.critic.Moments}
	}
	for _, id := range slices.SortedFunc(maps.Keys(p.board.tallies), tallyID.compare) {
		t := p.board.tallies[id]
		stored := &learnerpb.Tally{
			Version:   id.version,
			Purpose:   uint32(id.purpose),
			Results:   uint32(t.tasks),
			Successes: uint32(t.successes),
			RewardSum: t.rewards,
			Closed:    t.done == nil,
		}
		for _, e := range p.board.rules.Charter.Environments {
			if bits := t.done[e.Manifest]; bits != nil {
				stored.Open = append(stored.Open, &learnerpb.TaskSet{Environment: e.Manifest.Bytes(), Bits: bits})
			}
		}
		m.Tallies = append(m.Tallies, stored)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding progress: %w", err)
	}
	return b, nil
}

// decodeProgress reads what encode wrote.
func decodeProgress(data []byte, r Rules) (progress, error) {
	var m learnerpb.Progress
	if err := proto.Unmarshal(data, &m); err != nil {
		return progress{}, fmt.Errorf("decoding progress: %w", err)
	}
	if m.Major > progressMajor {
		return progress{}, fmt.Errorf("decoding progress: %w: upgrade this program to continue this learner", wire.ErrNewerMajor)
	}
	p := progress{
		nextOrder:     m.NextOrder,
		groupsTrained: m.GroupsTrained,
		tokensTrained: m.TokensTrained,
		file:          m.File,
		yield:         Yield{groups: m.YieldGroups, learned: m.YieldLearned},
		reasons:       make(map[Reason]uint64),
		board:         NewBoard(r),
	}
	if err := p.yield.check(); err != nil {
		return progress{}, fmt.Errorf("decoding progress: %w", err)
	}
	for reason, n := range m.Reasons {
		p.reasons[Reason(reason)] = n
	}
	for _, stored := range m.Roles {
		if p.memory == nil {
			p.memory = make(advantage.Memory, len(m.Roles))
		}
		p.memory[advantage.Role{Environment: stored.Environment, Agent: stored.Agent}] = stored.MeanReturn
	}
	if m.Critic != nil {
		p.critic = credit.Memory{Gram: m.Critic.Gram, Moments: m.Critic.Moments}
		if err := p.critic.Check(); err != nil {
			return progress{}, fmt.Errorf("decoding progress: %w", err)
		}
	}
	for _, b := range m.Behaviours {
		if len(b.Digest) != len(policy.Digest{}) {
			return progress{}, fmt.Errorf("decoding progress: version %d has a digest of %d bytes", b.Version, len(b.Digest))
		}
		p.behaviours = append(p.behaviours, Behaviour{
			Version:  b.Version,
			Digest:   policy.Digest(b.Digest),
			Evaluate: b.Evaluate,
		})
	}
	for _, stored := range m.Tallies {
		t := &tally{tasks: int(stored.Results), successes: int(stored.Successes), rewards: stored.RewardSum}
		if !stored.Closed {
			t.done = make(map[wire.CID][]byte)
		}
		for _, set := range stored.Open {
			if stored.Closed {
				return progress{}, fmt.Errorf("decoding progress: the evaluation of version %d is closed and open", stored.Version)
			}
			environment, err := wire.ParseCID(set.Environment)
			if err != nil {
				return progress{}, fmt.Errorf("decoding progress: evaluation of version %d: %w", stored.Version, err)
			}
			bits := make([]byte, (r.Charter.Evaluation.Tasks+7)/8)
			copy(bits, set.Bits)
			t.done[environment] = bits
		}
		p.board.tallies[tallyID{stored.Version, wire.Purpose(stored.Purpose)}] = t
	}
	return p, nil
}
