package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// renderer is a policy that renders what it is asked, as the real one does, and says the last thing that it was told.
type renderer struct{ template *chat.Template }

func (l renderer) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	prompt := r.Prompt
	if len(prompt) == 0 && r.Text != "" {
		prompt = l.template.Continue(r.Text)
	}
	if len(prompt) == 0 {
		var err error
		if prompt, err = l.template.Render(r.Messages, r.Tools); err != nil {
			return agent.Reply{}, err
		}
	} else if err := l.template.CheckPrompt(prompt); err != nil {
		return agent.Reply{}, err
	}
	tokens := append(prompt[max(0, len(prompt)-20):len(prompt):len(prompt)], l.template.Stop())
	message, err := l.template.Parse(tokens)
	if err != nil {
		err = fmt.Errorf("%w: %w", agent.ErrMalformed, err)
	}
	return agent.Reply{Message: message, Prompt: prompt, LogProbs: make([]float32, len(tokens)), Pieces: l.template.Pieces(tokens)}, err
}

// Whatever an agent sends, and sends again, it gets an answer or is told what is wrong with it.
func FuzzCalls(f *testing.F) {
	snapshot, err := base.Load()
	if err != nil {
		f.Fatal(err)
	}
	template, err := chat.NewTemplate(snapshot.Template, snapshot.Tokenizer)
	if err != nil {
		f.Fatal(err)
	}
	endpoints := []string{"chat/completions", "completions", "responses", "messages"}
	for i, body := range []string{
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a"}],"tools":[{"function":{"name":"f","parameters":{"type":"object"}}}],"n":2}`,
		`{"prompt":[1,2,300],"logprobs":1,"stop":["e"],"stream":true}`,
		`{"instructions":"be brief","input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"item_reference","id":"msg_x"}],"stream":true,"include":["message.output_text.logprobs"]}`,
		`{"max_tokens":9,"system":[{"type":"text","text":"x"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}],"tool_choice":{"type":"none"}}`,
	} {
		f.Add(i, []byte(body))
	}
	g := testGateway(f, Options{})
	f.Fuzz(func(t *testing.T, endpoint int, body []byte) {
		s := open(t, g, renderer{template})
		defer s.End()
		at := route{Endpoint: endpoints[uint(endpoint)%uint(len(endpoints))]}
		for range 2 { // the second time there is a history
			w := answers{httptest.NewRecorder()}
			r := httptest.NewRequestWithContext(t.Context(), "POST", s.BaseURL(), nil)
			if fault := s.serveCall(w, r, at, dialects[at.Endpoint], body); fault != nil {
				if fault.Status >= 500 || fault.Message == "" {
					t.Fatalf("%d %s", fault.Status, fault.Message)
				}
				return
			}
			content := w.Body.Bytes()
			if w.Header().Get("Content-Type") == "application/json" {
				content = append([]byte("data: "), content...)
			}
			some := false
			for line := range bytes.SplitSeq(content, []byte("\n")) {
				data, ok := bytes.CutPrefix(line, []byte("data: "))
				if some = some || ok; ok && string(data) != "[DONE]" && !json.Valid(data) {
					t.Fatalf("%s is no JSON", data)
				}
			}
			if !some {
				t.Fatal("there is no answer")
			}
		}
	})
}
