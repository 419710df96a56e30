//go:build sdks

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// The questions that the programs ask. The policy answers the last one that it finds in a conversation.
const (
	hello   = "Say hello."
	count   = "Count to three."
	theEnd  = "Say the end."
	warmer  = "Is it warmer in Oslo or in Rome?"
	bergen  = "And in Bergen?"
	useUp   = "Use up your calls."
	failing = "Fail once."
	late    = "Fail late."
	slow    = "Take your time."
)

var questions = []string{hello, count, theEnd, warmer, bergen, useUp, failing, late, slow}

var errStumbles = errors.New("the engine stumbles")

// call is one that the policy answered, or failed to.
type call struct {
	question           string
	conversation       []chat.Message
	prompt, completion []int32
}

// script is a policy that says what the scenes want. It is safe for concurrent use.
type script struct {
	tok      *tokenizer.Tokenizer
	template *chat.Template
	// ready says for some questions that the policy is to have done with them: it waits until the channel is closed.
	ready map[string]chan struct{}

	mu    sync.Mutex
	calls []call // guarded by mu
}

func newScript(t *testing.T) *script {
	snapshot, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.NewTemplate(snapshot.Template, snapshot.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	return &script{tok: snapshot.Tokenizer, template: template, ready: map[string]chan struct{}{
		count: make(chan struct{}), late: make(chan struct{}), slow: make(chan struct{}),
	}}
}

// Complete implements agent.LLM.
func (s *script) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	prompt, err := s.template.Render(r.Messages, r.Tools)
	if err != nil {
		return agent.Reply{}, err
	}
	c := call{conversation: r.Messages, prompt: prompt}
	at := -1
	for i, m := range r.Messages {
		for _, q := range questions {
			if m.Role == chat.User && strings.Contains(m.Content, q) {
				c.question, at = q, i
			}
		}
	}
	number, err := s.record(&c)
	if err != nil {
		return agent.Reply{}, err
	}
	if ready := s.ready[c.question]; ready != nil {
		select {
		case <-ready:
		case <-ctx.Done():
			return agent.Reply{}, ctx.Err()
		}
	}
	if c.question == late {
		return agent.Reply{}, errStumbles
	}
	message, err := s.template.Parse(s.sample(c.question, r, at))
	if err != nil {
		return agent.Reply{}, err
	}
	s.mu.Lock()
	s.calls[number].completion = message.Tokens
	s.mu.Unlock()
	return agent.Reply{
		Message: message, Call: number, Prompt: prompt,
		LogProbs: make([]float32, len(message.Tokens)), Pieces: s.template.Pieces(message.Tokens),
	}, nil
}

// record numbers a call, and fails it if its question wants that.
func (s *script) record(c *call) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case c.question == useUp:
		err = agent.ErrExhausted
	case c.question == failing && !slices.ContainsFunc(s.calls, func(c call) bool { return c.question == failing }):
		err = errStumbles
	}
	s.calls = append(s.calls, *c)
	return len(s.calls) - 1, err
}

// sample is the completion that answers the question in r.Messages[at].
func (s *script) sample(question string, r agent.Request, at int) []int32 {
	results := resultsOf(r.Messages[at+1:])
	switch question {
	case hello:
		return s.say("Hello there.")
	case count:
		return s.say("One, two, three.")
	case theEnd:
		return s.say("The END is near.")
	case failing, slow:
		return s.say("Here I am.")
	case warmer:
		if len(results) < 2 {
			return s.say("Let me look.", `weather {"city": "Oslo"}`, `weather { "city":"Rome" }`)
		}
		return s.conclude(r, "Rome is, with "+results[1]+" against "+results[0]+".")
	case bergen:
		if len(results) < 1 {
			return s.say("", `weather {"city" : "Bergen"}`)
		}
		return s.conclude(r, "It has "+results[0]+".")
	}
	return s.say("What?")
}

// conclude answers as the agent wants it: with a text, or by a tool that is there for that.
func (s *script) conclude(r agent.Request, text string) []int32 {
	for _, t := range r.Tools {
		if t.Name == "final_answer" {
			arguments, _ := json.Marshal(map[string]string{"answer": text})
			return s.say("", t.Name+" "+string(arguments))
		}
	}
	return s.say(text)
}

// say writes a text and calls, each a tool's name and its arguments, in tokens that encoding them would not give: one
// for each character. Only who keeps the tokens can put them into a prompt again.
func (s *script) say(text string, calls ...string) []int32 {
	mark := func(name string) int32 {
		id, _ := s.tok.Special(name)
		return id
	}
	out := s.spell(nil, text)
	for _, c := range calls {
		name, arguments, _ := strings.Cut(c, " ")
		out = s.spell(append(out, mark("<|call|>")), name)
		out = s.spell(append(out, mark("<|args|>")), arguments)
	}
	return append(out, s.template.Stop())
}

func (s *script) spell(out []int32, text string) []int32 {
	for len(text) > 0 {
		_, n := utf8.DecodeRuneInString(text)
		out, text = s.tok.AppendEncode(out, text[:n]), text[n:]
	}
	return out
}

// number is what a tool returned: by itself, or in the words of a library that makes a user's message of it.
var number = regexp.MustCompile(`(?:^|\n)(\d+)`)

// resultsOf are the results of the calls in messages, in the order of the calls.
func resultsOf(messages []chat.Message) (results []string) {
	byID := map[string]string{}
	for _, m := range messages {
		switch m.Role {
		case chat.ToolRole:
			byID[m.ToolCallID] = m.Content
		case chat.User:
			for _, found := range number.FindAllStringSubmatch(m.Content, -1) {
				results = append(results, found[1])
			}
		}
	}
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			if result, ok := byID[c.ID]; ok {
				results = append(results, result)
			}
		}
	}
	return results
}
