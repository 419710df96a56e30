package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// player is the agent of one rollout.
type player struct {
	*member
	session *gateway.Session
	client  *client
	dialect dialect // of its conversation
	tools   []chat.Tool
	role    string
	asking  sync.WaitGroup
}

var errCrash = errors.New("the agent crashed")

// play is the rollout of a member.
func (m *member) play(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	role := calc.New().Manifest().Agents[0]
	session, err := m.group.check.gateway.Open(ctx, gateway.SessionOptions{LLM: llm, Agents: []string{role}})
	if err != nil {
		return agent.Result{}, err
	}
	p := &player{
		member: m, session: session, client: newClient(m.group.check.gateway, session, m.random),
		dialect: dialect(m.random.IntN(int(completions))), tools: e.Tools(), role: role,
	}
	alive, crash := context.WithCancel(ctx) // of the agent
	result, err := p.run(alive, e.Messages())
	if m.group.kind != flaky && m.random.IntN(2) == 0 {
		crash() // its connections are cut before the rollout ends, not after
	}
	m.replies = session.End().Replies
	late := p.newQuery(m.random, slices.Clone(e.Messages()), "too late")
	_, code, sending := p.client.send(context.WithoutCancel(ctx), late, 0, fault{})
	switch {
	case sending != nil:
		late.broken = sending
	case code != "rollout_ended":
		late.broken = fmt.Errorf("a call after the end: %q", code)
	}
	crash()
	p.asking.Wait()
	p.client.close()
	return result, err
}

// run makes calls until the agent has enough, or something ends it.
func (p *player) run(ctx context.Context, conversation []chat.Message) (agent.Result, error) {
	random := p.random
	next := "begin"
	for {
		switch n := random.IntN(100); {
		case n < 5 && p.group.kind != flaky: // it crashes, maybe while a call runs
			if n < 3 {
				p.begin(ctx, p.newQuery(random, conversation, "last words"))
			}
			return agent.Result{}, errCrash
		case n < 25 && p.group.kind == short: // it hangs
			p.begin(ctx, p.newQuery(random, conversation, "for nothing"))
			<-ctx.Done()
			return agent.Result{}, context.Cause(ctx)
		case n < 35: // it asks for something by the way
			p.ask(ctx, random, p.newText(random))
		}
		q := p.newQuery(random, conversation, next)
		all := []*query{q}
		if random.IntN(8) == 0 {
			for range 1 + random.IntN(3) {
				all = append(all, p.newQuery(random, conversation, next))
			}
		}
		var asking sync.WaitGroup
		for _, other := range all[1:] {
			own := rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
			asking.Go(func() { p.ask(ctx, own, other) })
		}
		p.ask(ctx, random, q)
		asking.Wait()
		if ctx.Err() != nil {
			return agent.Result{}, context.Cause(ctx)
		}
		last := q.rounds[len(q.rounds)-1]
		switch {
		case q.broken != nil:
			return agent.Result{}, q.broken
		case last.refused == "calls_exhausted":
			return agent.Result{End: agent.Exhausted}, nil
		case last.refused == "context_length_exceeded":
			return agent.Result{End: agent.Cut}, nil
		case last.refused != "":
			return agent.Result{}, errors.New(last.refused)
		case len(last.answers) == 0: // it left without an answer, and asks something else
			continue
		}
		conversation = p.goOn(random, q, last.answers[0])
		if said := conversation[len(conversation)-1]; said.Role == chat.Assistant && random.IntN(3) == 0 {
			return agent.Result{End: agent.Answered, Answer: said.Content}, nil
		}
	}
}

// begin asks in the background.
func (p *player) begin(ctx context.Context, q *query) {
	own := rand.New(rand.NewPCG(p.random.Uint64(), p.random.Uint64()))
	p.asking.Go(func() { p.ask(ctx, own, q) })
	shortly(ctx, p.random, time.Millisecond)
}

// goOn is the conversation of a query and its answer, and of what the tools say.
func (p *player) goOn(random *rand.Rand, q *query, a answer) []chat.Message {
	conversation := slices.Clone(q.ask.Messages)
	seen := a.choices[0]
	said := chat.Message{Role: chat.Assistant, Content: seen.text}
	for i, c := range seen.calls {
		if random.IntN(3) == 0 {
			c.ID = fmt.Sprintf("own-%d-%d", q.tag, i)
		}
		c.Arguments = rewrite(random, c.Arguments)
		said.ToolCalls = append(said.ToolCalls, c)
	}
	number, err := a.number()
	if err == nil {
		completion := p.group.check.engine.write(p.key(number))
		if v, whole := q.view(p.group.check.engine, completion); whole && len(v.calls) == len(seen.calls) {
			said.Tokens = completion.Tokens
		}
	}
	if q.dialect == messages && said.Tokens == nil {
		for i := range said.ToolCalls {
			said.ToolCalls[i].Arguments = compact(said.ToolCalls[i].Arguments)
		}
	}
	conversation = append(conversation, said)
	results := []chat.Message{}
	for i, c := range said.ToolCalls {
		results = append(results, chat.Message{Role: chat.ToolRole, ToolCallID: c.ID, Content: fmt.Sprint(i * 12)})
	}
	random.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	return append(conversation, results...)
}

// newQuery asks for the next message of a conversation. What is said in the last message before it, or in a new one after
// the assistant's, is marked.
func (p *player) newQuery(random *rand.Rand, conversation []chat.Message, say string) *query {
	q := p.add(p.dialect, random)
	list := slices.Clone(conversation)
	if n := len(list); n > 0 && list[n-1].Role == chat.ToolRole {
		list[n-1].Content += " " + mark(q.tag)
	} else {
		list = append(list, chat.Message{Role: chat.User, Content: mark(q.tag) + " " + say + ", please"})
	}
	if random.IntN(200) == 0 {
		list[len(list)-1].Content += strings.Repeat(" and so on", contextTokens)
	}
	q.ask.Messages = list
	if random.IntN(5) > 0 {
		q.offered = p.tools
		q.single, q.none = random.IntN(12) == 0, random.IntN(12) == 0
	}
	if !q.none {
		q.ask.Tools = q.offered
	}
	if q.dialect == chatCompletions && random.IntN(12) == 0 {
		q.samples = 2 + random.IntN(2)
	}
	q.write(random)
	return q
}

// newText asks for what follows a text.
func (p *player) newText(random *rand.Rand) *query {
	q := p.add(completions, random)
	text := mark(q.tag) + " and then"
	if random.IntN(2) == 0 {
		q.ask.Text = text
	} else {
		q.ask.Prompt = p.group.check.engine.tok.Encode(text)
	}
	q.write(random)
	return q
}

// add is a query that has only its options.
func (p *player) add(d dialect, random *rand.Rand) *query {
	q := &query{tag: len(p.queries), dialect: d, ask: agent.Request{Agent: p.role}}
	q.options = options{samples: 1, stream: random.IntN(2) == 0, usage: random.IntN(2) == 0, logProbs: random.IntN(4) == 0}
	if d == messages {
		q.logProbs = false
	}
	if d != responses && random.IntN(12) == 0 {
		q.stop = []string{"e", " ", "sum", "n", "东"}[random.IntN(5)]
	}
	if random.IntN(12) == 0 {
		q.maxTokens = 1 + random.IntN(maxTokens)
	}
	p.queries = append(p.queries, q)
	return q
}

// ask sends a query in one of the ways in which clients behave.
func (p *player) ask(ctx context.Context, random *rand.Rand, q *query) {
	q.rounds = []round{{}}
	s := &sending{player: p, ctx: ctx, random: random, q: q}
	n := random.IntN(100)
	if p.group.kind == flaky {
		n %= 60 // it does not go away from a call
	}
	switch {
	case n < 30:
		s.until(fault{})
	case n < 36:
		s.until(fault{slow: true})
	case n < 44: // it goes away while it asks, and asks again
		s.once(fault{half: true, slow: random.IntN(2) == 0})
		s.until(fault{})
	case n < 50: // it tries again although it has the answer
		s.until(fault{})
		s.until(fault{})
	case n < 55: // it tries again while the first try goes on
		s.twice()
	case n < 60: // it wants another sample of the same, and tries that again
		s.until(fault{})
		if s.answered() {
			q.rounds = append(q.rounds, round{})
			s.tries = 0
			s.until(fault{})
			if s.answered() {
				s.until(fault{})
			}
		}
	case n < 74: // it goes away while the policy works or answers, and tries again
		s.leave()
		s.until(fault{})
	case n < 83: // or while it reads
		s.once(fault{read: 1 + random.IntN(400)})
		s.until(fault{})
	case n < 93: // or for good
		s.leave()
	default: // or at once
		hasty, cut := context.WithTimeout(ctx, time.Duration(random.IntN(1500))*time.Microsecond)
		s.ctx = hasty
		s.once(fault{})
		s.ctx = ctx
		cut()
	}
}

// sending is a query on its way.
type sending struct {
	*player
	ctx    context.Context
	random *rand.Rand
	q      *query
	tries  int
}

// once makes one try.
func (s *sending) once(f fault) {
	a, refused, err := s.client.send(s.ctx, s.q, s.tries, f)
	s.tries++
	s.take(a, refused, err)
}

// take notes what came of a try.
func (s *sending) take(a answer, refused string, err error) {
	r := &s.q.rounds[len(s.q.rounds)-1]
	switch {
	case errors.Is(err, errCut):
		s.q.left = true
	case err != nil:
		s.q.broken = err
	case refused != "":
		if len(r.answers) == 0 {
			r.refused = refused
		}
	default:
		r.answers, r.refused = append(r.answers, a), ""
	}
}

// until tries until the engine does not fail.
func (s *sending) until(f fault) {
	for s.ctx.Err() == nil {
		r := &s.q.rounds[len(s.q.rounds)-1]
		if s.once(f); r.refused != "engine_failed" {
			return
		}
		r.refused = ""
	}
}

func (s *sending) answered() bool { return len(s.q.rounds[len(s.q.rounds)-1].answers) > 0 }

// start makes a try in the background, and returns once the engine has begun with it or the try has ended. Whoever calls
// it calls take, which waits for the try's end.
func (s *sending) start(ctx context.Context) (take func()) {
	ended, tries := make(chan struct{}), s.tries
	s.tries++
	var a answer
	var refused string
	var err error
	go func() {
		defer close(ended)
		a, refused, err = s.client.send(ctx, s.q, tries, fault{})
	}()
	select {
	case <-s.began(s.q.tag):
	case <-ended:
	}
	return func() {
		<-ended
		s.take(a, refused, err)
	}
}

// leave goes away from a call that the engine has begun with.
func (s *sending) leave() {
	ctx, cut := context.WithCancel(s.ctx)
	take := s.start(ctx)
	select {
	case <-s.began(s.q.tag):
		s.q.waited = true
	default:
	}
	shortly(s.ctx, s.random, 3*time.Millisecond)
	cut()
	take()
}

// twice tries again while the first try goes on.
func (s *sending) twice() {
	take := s.start(s.ctx)
	s.until(fault{})
	take()
}

// number is the number of an answer's first call, which its id ends in.
func (a *answer) number() (int, error) {
	return strconv.Atoi(a.id[strings.LastIndexByte(a.id, '-')+1:])
}
