package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// kind is what is special about a group.
type kind int

const (
	plain kind = iota
	short      // it has little time, some of its calls hang and some of its agents too
	flaky      // its engine fails now and then; its agents try again and never give up, for such a failure ends a group
)

// group is one draw. It implements agent.Agent: its rollouts run one after the other, so the next to run is the next
// member.
type group struct {
	check   *check
	counter uint64
	kind    kind
	members []*member

	mu   sync.Mutex
	next int // guarded by mu
}

func newGroup(c *check, counter uint64) *group {
	g := &group{check: c, counter: counter}
	switch counter % 16 {
	case 5:
		g.kind = short
	case 9, 13:
		g.kind = flaky
	}
	for i := range groupSize {
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], c.seed)
		binary.LittleEndian.PutUint64(seed[8:], counter)
		binary.LittleEndian.PutUint64(seed[16:], uint64(i))
		g.members = append(g.members, &member{
			group: g, number: i, random: rand.New(rand.NewChaCha8(seed)),
			begun: map[int]chan struct{}{}, tried: map[int]bool{}, answers: map[int][]sampled{},
		})
	}
	return g
}

// Run implements agent.Agent.
func (g *group) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	g.mu.Lock()
	m := g.members[g.next]
	g.next++
	g.mu.Unlock()
	return m.play(ctx, llm, e)
}

// member is one rollout: what its agent asked and saw, and what its engine answered.
type member struct {
	group  *group
	number int
	// Only the rollout's agent has these, and once it has ended whoever compares.
	random  *rand.Rand
	queries []*query
	replies int // by the session's summary

	mu      sync.Mutex
	begun   map[int]chan struct{} // guarded by mu; closed once the engine has begun with a request, by its tag
	tried   map[int]bool          // guarded by mu; calls that the engine began with
	answers map[int][]sampled     // guarded by mu; what the engine answered, by the call's number
}

// sampled is what the engine answered, and to what.
type sampled struct {
	tag        int
	prompt     []int32
	completion policy.Completion
}

// begin notes that the engine begins with a call, and says whether it did so before.
func (m *member) begin(tag, call int) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := m.beginning(tag)
	select {
	case <-began:
	default:
		close(began)
	}
	again = m.tried[call]
	m.tried[call] = true
	return again
}

// began is closed once the engine has begun with a request.
func (m *member) began(tag int) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beginning(tag)
}

func (m *member) beginning(tag int) chan struct{} {
	if m.begun[tag] == nil {
		m.begun[tag] = make(chan struct{})
	}
	return m.begun[tag]
}

func (m *member) answered(call int, s sampled) {
	s.prompt = slices.Clone(s.prompt)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[call] = append(m.answers[call], s)
}

// query is one request of an agent, which may be sent several times.
type query struct {
	tag     int
	dialect dialect
	ask     agent.Request // what the policy has to be asked; the policy's own messages have their tokens
	offered []chat.Tool   // the tools that are listed
	body    []byte
	options

	// left says that the agent left before a try was answered, waited that the engine had begun with it then.
	left, waited bool
	// broken says what of an answer's form was wrong, or that a connection broke which nobody cut.
	broken error
	// rounds are what the agent wanted: one, and one for each time that it sent the same body as a new request.
	rounds []round
}

// options are what an agent asks of the answer.
type options struct {
	samples   int
	stop      string // empty for none
	maxTokens int    // 0 for none
	single    bool   // one tool call
	none      bool   // no tool calls
	stream    bool
	usage     bool // of a stream
	logProbs  bool
}

// round is one sample, or n of them, that an agent wanted.
type round struct {
	// answers are those that came, of retries the same again.
	answers []answer
	// refused is the code of the error that came instead.
	refused string
}

// answer is what an agent saw.
type answer struct {
	id      string
	choices []view
	// Tokens as the usage says; -1 where the dialect or the request has none.
	prompt, completion int
}

// view is one completion as an agent sees it.
type view struct {
	text   string
	calls  []chat.ToolCall
	finish string // "stop", "length" or "tool_calls"
	// logProbs and tokens are nil unless asked for.
	logProbs []float32
	tokens   []string
}
