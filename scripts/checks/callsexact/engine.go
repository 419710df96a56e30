package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// engine is a policy.Session by a script: what it writes depends on the sample key alone, and every completion has
// letters of its key in it, so that no two are the same.
type engine struct {
	digest   policy.Digest
	tok      *tokenizer.Tokenizer
	template *chat.Template

	mu    sync.Mutex
	calls map[policy.SampleKey]place // guarded by mu; those that the groups in flight may make
}

// place is whose a sample key is.
type place struct {
	member *member
	call   int
}

func newEngine(s *policy.Snapshot) *engine {
	return &engine{digest: s.Digest(), tok: s.Tokenizer, calls: map[policy.SampleKey]place{}}
}

// key is the sample key of a member's call.
func (m *member) key(call int) policy.SampleKey {
	c := m.group.check
	return draw.TrainKey(c.network.ID, 0, c.peer, m.group.counter, uint32(m.number), uint32(call))
}

// expect takes a group's calls on.
func (e *engine) expect(g *group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range g.members {
		for call := range maxCalls {
			e.calls[m.key(call)] = place{m, call}
		}
	}
}

func (e *engine) forget(g *group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range g.members {
		for call := range maxCalls {
			delete(e.calls, m.key(call))
		}
	}
}

// Policy implements policy.Session.
func (e *engine) Policy() policy.Digest { return e.digest }

// Close implements policy.Session.
func (e *engine) Close() {}

// Score implements policy.Session.
func (e *engine) Score(context.Context, []int32, int) ([]float32, error) {
	return nil, errors.New("the script does not score")
}

// errFlaky is a failure of the engine that does not come again.
var errFlaky = errors.New("the script fails this time")

// Generate implements policy.Session.
func (e *engine) Generate(ctx context.Context, r policy.Request) (policy.Completion, error) {
	e.mu.Lock()
	at, known := e.calls[r.Key]
	e.mu.Unlock()
	if !known {
		return policy.Completion{}, errors.New("the sample key is no call's of this group")
	}
	tag, err := e.tag(r.Prompt)
	if err != nil {
		return policy.Completion{}, err
	}
	again := at.member.begin(tag, at.call)
	random := keyed(r.Key, "pace")
	delay := time.Duration(0)
	switch n := random.IntN(100); {
	case n < 4 && at.member.group.kind == short:
		delay = 2 * rolloutTime
	case n < 30:
		delay = time.Duration(random.IntN(4000)) * time.Microsecond
	}
	if delay > 0 && !pause(ctx, delay) {
		return policy.Completion{}, ctx.Err()
	}
	if at.member.group.kind == flaky && !again && random.IntN(4) == 0 {
		return policy.Completion{}, errFlaky
	}
	c := e.write(r.Key)
	at.member.answered(at.call, sampled{tag: tag, prompt: r.Prompt, completion: c})
	return c, nil
}

// marks are how an agent tells the last message of each request.
var marks = regexp.MustCompile(`q([0-9]+);`)

func mark(tag int) string { return fmt.Sprintf("q%d;", tag) }

// tag is the request that a prompt is of.
func (e *engine) tag(prompt []int32) (int, error) {
	all := marks.FindAllStringSubmatch(e.tok.Decode(prompt), -1)
	if len(all) == 0 {
		return 0, errors.New("the prompt has no mark of its request")
	}
	return strconv.Atoi(all[len(all)-1][1])
}

// keyed is a generator for one purpose of a key.
func keyed(key policy.SampleKey, purpose string) *rand.Rand {
	seed := key
	for i := range purpose {
		seed[i%len(seed)] ^= purpose[i]
	}
	return rand.New(rand.NewChaCha8(seed))
}

// write is the completion of a key: texts and calls of every kind, well-formed or not.
func (e *engine) write(key policy.SampleKey) policy.Completion {
	random := keyed(key, "text")
	letters := "n" + hex.EncodeToString(key[:4])
	words := func(n int) string {
		all := []string{"the", " sum", " is", " <b>", "&", " \"7\"", "\n", " naïve", " 東", " 🙂", "\\", " e", " 12"}
		var b strings.Builder
		for range n {
			b.WriteString(all[random.IntN(len(all))])
		}
		return b.String()
	}
	say := func(text string, arguments ...string) []int32 {
		m := chat.Message{Role: chat.Assistant, Content: text}
		for _, a := range arguments {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{Name: "calculator", Arguments: a})
		}
		return e.template.RenderCompletion(m)
	}
	spaces := []string{"", " ", "\n  "}
	arguments := func(i int) string {
		s := spaces[random.IntN(len(spaces))]
		return fmt.Sprintf(`{%s"expression":%s"%d*%d",%s"<id>": "%s%d"}`, s, s, random.IntN(50), random.IntN(50), s, letters, i)
	}
	var tokens []int32
	switch kind := random.IntN(100); {
	case kind < 36:
		tokens = say(letters + " " + words(random.IntN(8)))
	case kind < 62:
		tokens = say("", arguments(0))
	case kind < 68:
		tokens = say("", arguments(0), arguments(1))
	case kind < 74:
		tokens = say(letters+words(2), arguments(0))
	case kind < 79:
		tokens = say("", letters+words(2)) // no JSON
	case kind < 82:
		tokens = say("", `[1, "`+letters+`"]`) // no object
	case kind < 84:
		tokens = say(letters, "")
	case kind < 90: // no message
		tokens = say(letters + words(3))
		tool, _ := e.tok.Special("<|tool|>")
		tokens[random.IntN(len(tokens)-1)] = tool
	case kind < 95: // no UTF-8
		tokens = e.tok.Encode(letters + "🙂")
		tokens = append(tokens[:len(tokens)-1], e.template.Stop())
	default: // without end
		tokens = say(letters + words(maxTokens))
	}
	c := policy.Completion{Tokens: tokens, Finish: policy.FinishStop}
	if len(tokens) > maxTokens {
		c.Tokens, c.Finish = tokens[:maxTokens], policy.FinishLength
	}
	for range c.Tokens {
		c.LogProbs = append(c.LogProbs, -float32(1+random.IntN(1<<18))*policy.LogProbGrid)
	}
	return c
}

// pause waits, and says whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
