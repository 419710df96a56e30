package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// view is what an agent has to see of a completion. It is written from the gateway's documentation, not with its code.
// whole says that the agent sees all of it, so that what it says later continues the completion's tokens.
func (q *query) view(e *engine, c policy.Completion) (v view, whole bool) {
	valid := func(ids []int32) string { return strings.ToValidUTF8(e.tok.Decode(ids), "\uFFFD") }
	ids := c.Tokens
	v.finish, whole = "stop", true
	if c.Finish == policy.FinishLength {
		v.finish = "length"
	}
	if q.dialect == completions {
		text := ids
		if c.Finish == policy.FinishStop {
			text = ids[:len(ids)-1]
		}
		v.text = valid(text)
	} else {
		m, err := e.template.Parse(ids)
		v.text, v.calls = m.Content, m.ToolCalls
		if err == nil && q.none && len(v.calls) > 0 {
			v.text, v.calls = valid(ids[:len(ids)-1]), nil
		}
	}
	if at := strings.Index(v.text, q.stop); q.stop != "" && at >= 0 {
		n := 0
		for length := 0; length < at+len(q.stop) && n < len(ids); n++ {
			length += len(e.tok.Decode(ids[n : n+1]))
		}
		ids = ids[:n]
		v.text, v.calls, v.finish, whole = v.text[:at], nil, "stop", false
	}
	if q.maxTokens > 0 && q.maxTokens < len(ids) {
		ids = ids[:q.maxTokens]
		v.text, v.calls, v.finish, whole = valid(ids), nil, "length", false
	}
	if q.single && len(v.calls) > 1 {
		v.calls, whole = v.calls[:1], false
	}
	if q.dialect == messages && slices.ContainsFunc(v.calls, func(c chat.ToolCall) bool { return !isObject(c.Arguments) }) {
		for _, c := range v.calls { // a tool_use holds nothing but objects
			if v.text != "" {
				v.text += "\n"
			}
			v.text += c.Name + " " + c.Arguments
		}
		v.calls, whole = nil, false
	}
	if len(v.calls) > 0 && v.finish == "stop" {
		v.finish = "tool_calls"
	}
	v.logProbs = c.LogProbs[:len(ids)]
	for i := range ids {
		v.tokens = append(v.tokens, e.tok.Decode(ids[i:i+1]))
	}
	return v, whole
}

func isObject(arguments string) bool {
	var o map[string]any
	return strings.TrimSpace(arguments) == "" || json.Unmarshal([]byte(arguments), &o) == nil && o != nil
}

func compact(arguments string) string {
	b, err := json.Marshal(json.RawMessage(arguments))
	if err != nil {
		return arguments
	}
	return string(b)
}

// differs says how what an agent saw is not what it had to see, or nothing.
func (q *query) differs(saw, want view, number int) string {
	switch {
	case saw.text != want.text:
		return fmt.Sprintf("it saw %q of %q", saw.text, want.text)
	case saw.finish != want.finish:
		return fmt.Sprintf("it saw the finish %q of %q", saw.finish, want.finish)
	case len(saw.calls) != len(want.calls):
		return fmt.Sprintf("it saw the calls %q of %q", saw.calls, want.calls)
	}
	for i, c := range want.calls {
		s := saw.calls[i]
		same := s.Arguments == c.Arguments
		if q.dialect == messages && !same { // it holds values, not their text
			var a, b any
			same = json.Unmarshal([]byte(s.Arguments), &a) == nil && json.Unmarshal([]byte(orEmpty(c.Arguments)), &b) == nil && reflect.DeepEqual(a, b)
		}
		if s.Name != c.Name || !same || s.ID != fmt.Sprintf("call_%d_%d", number, i) {
			return fmt.Sprintf("it saw the call %q of %q", s, c)
		}
	}
	if asked := q.logProbs && (q.dialect != responses || len(want.calls) == 0 || want.text != ""); !asked {
		return ""
	}
	if !slices.Equal(saw.logProbs, want.logProbs) {
		return fmt.Sprintf("it saw the log-probs %v of %v", saw.logProbs, want.logProbs)
	}
	for i := range want.tokens {
		if saw.tokens[i] != strings.ToValidUTF8(want.tokens[i], "\uFFFD") {
			return fmt.Sprintf("it saw the tokens %q of %q", saw.tokens, want.tokens)
		}
	}
	return ""
}

func orEmpty(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	return arguments
}

// compare compares a recorded rollout with what its engine answered and what its agent saw.
func (m *member) compare(r *bundle.Rollout) (counts, error) {
	f := counts{rollouts: 1, recorded: len(r.Calls), outcomes: map[string]int{r.Outcome.String(): 1}}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.compareEngine(r, &f); err != nil {
		return f, err
	}
	taken := map[int]bool{} // by number, calls that an answer was of
	for _, q := range m.queries {
		if err := m.compareQuery(q, r, taken, &f); err != nil {
			return f, fmt.Errorf("request %d, %s %s: %w", q.tag, q.dialect, q.body, err)
		}
	}
	for number := range r.Calls {
		if !taken[number] {
			f.unseen++
		}
	}
	if m.replies < len(taken) || m.replies > len(r.Calls)+f.leftOut {
		return f, fmt.Errorf("the session's summary counts %d replies, of %d calls %d were seen", m.replies, len(r.Calls), len(taken))
	}
	return f, nil
}

// compareEngine checks that what is recorded is what the engine answered: each call, once, in its place.
func (m *member) compareEngine(r *bundle.Rollout, f *counts) error {
	for number := range maxCalls {
		all := m.answers[number]
		switch {
		case len(all) > 1:
			return fmt.Errorf("call %d was sampled %d times", number, len(all))
		case len(all) == 1 && number >= len(r.Calls):
			// Behind a call that was given up there may be others; their numbers would not be their places.
			if r.Outcome != bundle.OutcomeTimeout || len(m.answers[len(r.Calls)]) > 0 {
				return fmt.Errorf("call %d was sampled and is not recorded", number)
			}
			f.leftOut++
		case len(all) == 0 && number < len(r.Calls):
			return fmt.Errorf("call %d is recorded and was not sampled", number)
		case len(all) == 1:
			c, s := r.Calls[number], all[0]
			if !slices.Equal(c.Prompt, s.prompt) || !slices.Equal(c.Completion, s.completion.Tokens) ||
				!slices.Equal(c.LogProbs, s.completion.LogProbs) || c.Finish != uint8(s.completion.Finish) {
				return fmt.Errorf("call %d is recorded as %+v, sampled was %+v", number, c, s)
			}
			if want := m.group.check.engine.write(m.key(number)); !slices.Equal(c.Completion, want.Tokens) {
				return fmt.Errorf("call %d is not what its number's key gives", number)
			}
		}
	}
	if len(r.Calls) > maxCalls {
		return fmt.Errorf("%d calls are recorded", len(r.Calls))
	}
	return nil
}

// compareQuery checks what an agent saw of one request, and how many calls were made for it.
func (m *member) compareQuery(q *query, r *bundle.Rollout, taken map[int]bool, f *counts) error {
	if q.broken != nil {
		return q.broken
	}
	e := m.group.check.engine
	prompt, err := q.prompt(e)
	if err != nil {
		return err
	}
	var made []int // the calls that were made for it
	for number := range maxCalls {
		for _, s := range m.answers[number] {
			if s.tag != q.tag {
				continue
			}
			if made = append(made, number); !slices.Equal(s.prompt, prompt) {
				return fmt.Errorf("call %d has the prompt %q, want %q", number, e.tok.Decode(s.prompt), e.tok.Decode(prompt))
			}
			if number < len(r.Calls) && r.Calls[number].Agent != q.ask.Agent {
				return fmt.Errorf("call %d is recorded as the agent %q's", number, r.Calls[number].Agent)
			}
		}
	}
	least, most := 0, 0
	for _, round := range q.rounds {
		most += q.samples
		f.requests++
		switch {
		case len(round.answers) > 0:
			least += len(round.answers[0].choices)
			f.answers += len(round.answers)
			if err := m.compareAnswers(q, round.answers, made, taken); err != nil {
				return err
			}
		case round.refused != "":
			f.refused++
			if !q.left && round.refused != "rollout_given_up" && (q.samples == 1 || round.refused != "engine_failed") {
				most -= q.samples // where some are sampled the agent sees them
			}
		default:
			f.gone++
			if q.waited && r.Outcome != bundle.OutcomeTimeout {
				least++ // its call goes on without it
			}
		}
	}
	if len(made) < least || len(made) > most {
		return fmt.Errorf("calls %d were made for it, want %d to %d", made, least, most)
	}
	return nil
}

// prompt is what a query has to be sampled from.
func (q *query) prompt(e *engine) ([]int32, error) {
	switch {
	case q.ask.Text != "":
		return e.template.Continue(q.ask.Text), nil
	case len(q.ask.Prompt) > 0:
		return q.ask.Prompt, nil
	}
	return e.template.Render(q.ask.Messages, q.ask.Tools)
}

// numbers is how many of a rollout's calls were sampled.
func (m *member) numbers() (n int) {
	for number := range maxCalls {
		n += min(len(m.answers[number]), 1)
	}
	return n
}

// compareAnswers checks the answers that an agent got to one request and its retries: all are the same, and each choice
// is a call of its own.
func (m *member) compareAnswers(q *query, answers []answer, made []int, taken map[int]bool) error {
	first := answers[0]
	for _, a := range answers[1:] {
		if !reflect.DeepEqual(a, first) {
			return fmt.Errorf("a retry got %+v after %+v", a, first)
		}
	}
	if n := len(first.choices); n == 0 || n > q.samples || n < q.samples && m.numbers() < maxCalls {
		return fmt.Errorf("it got %d choices of %d", n, q.samples)
	}
	number, err := first.number()
	if err != nil {
		return fmt.Errorf("the answer's id is %q", first.id)
	}
	shown := 0
	for i, choice := range first.choices {
		candidates := made
		if i == 0 {
			candidates = []int{number}
		}
		why := "no call of its is left"
		at := slices.IndexFunc(candidates, func(number int) bool {
			if taken[number] || !slices.Contains(made, number) {
				return false
			}
			want, _ := q.view(m.group.check.engine, m.answers[number][0].completion)
			why = q.differs(choice, want, number)
			if why == "" {
				shown += len(want.tokens)
			}
			return why == ""
		})
		if at < 0 {
			return fmt.Errorf("choice %d of %d, calls %d: %s", i, number, made, why)
		}
		taken[candidates[at]] = true
	}
	if first.prompt >= 0 && (first.prompt != len(m.answers[number][0].prompt) || first.completion != shown) {
		return fmt.Errorf("the usage is %d and %d tokens, want %d and %d", first.prompt, first.completion, len(m.answers[number][0].prompt), shown)
	}
	if first.prompt < 0 && (!q.stream || q.usage) {
		return errors.New("the answer has no usage")
	}
	return nil
}
