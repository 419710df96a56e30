package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/wire"
)

// What an agent asks of sampling goes to whoever records the call, in the same words whatever the dialect, and no body
// makes it long or unprintable.
func TestWhatIsAskedIsPassedOn(t *testing.T) {
	const user = `"messages":[{"role":"user","content":"hi"}]`
	if maxAsked > wire.MaxAskedBytes {
		t.Fatal("a bundle cannot hold what is asked")
	}
	var bias []string
	for range 400 {
		bias = append(bias, `"5":1`)
	}
	for name, c := range map[string]struct{ endpoint, body, want string }{
		"nothing":     {"chat/completions", `{` + user + `,"temperature":null}`, ""},
		"chat":        {"chat/completions", `{` + user + `,"temperature":0.2,"top_p":1,"max_tokens":9,"max_completion_tokens":7,"seed":3,"stop":"é<"}`, `{"max_tokens":7,"seed":3,"stop":["\u00e9\u003c"],"temperature":0.2,"top_p":1}`},
		"several":     {"chat/completions", `{` + user + `,"n":2,"presence_penalty":-1.5,"frequency_penalty":0.5,"min_p":0.05,"repetition_penalty":1.1}`, `{"frequency_penalty":0.5,"min_p":0.05,"n":2,"presence_penalty":-1.5,"repetition_penalty":1.1}`},
		"odd":         {"chat/completions", `{` + user + `,"temperature":{"a" : ["\u0001\ud83d\ude00", 1]}}`, `{"temperature":{"a":["\u0001\ud83d\ude00",1]}}`},
		"long":        {"chat/completions", `{` + user + `,"temperature":1,"logit_bias":{` + strings.Join(bias, ",") + `}}`, `{"logit_bias":null,"temperature":1}`},
		"completions": {"completions", `{"prompt":"hi","temperature":1e-3,"logit_bias":{"50256": -100}}`, `{"logit_bias":{"50256":-100},"temperature":1e-3}`},
		"responses":   {"responses", `{"input":"hi","temperature":0,"max_output_tokens":5}`, `{"max_tokens":5,"temperature":0}`},
		"messages":    {"messages", `{` + user + `,"max_tokens":5,"top_k":40,"stop_sequences":["\n"]}`, `{"max_tokens":5,"stop":["\n"],"top_k":40}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := dialects[c.endpoint].decode([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.asked(); got != c.want || len(got) > maxAsked {
				t.Errorf("it asks %s, want %s", got, c.want)
			}
			llm := always(says("x"))
			if got := do(t, "POST", open(t, testGateway(t, Options{}), llm).BaseURL()+"/"+c.endpoint, c.body); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			for _, q := range llm.requests() {
				if q.Asked != c.want {
					t.Errorf("the recorder hears of %s, want %s", q.Asked, c.want)
				}
			}
		})
	}
}

func FuzzAsked(f *testing.F) {
	f.Add(`{"a":"\u2028é\u007f"}`, "\u00ad", 3)
	f.Fuzz(func(t *testing.T, value, stop string, n int) {
		r := &request{Samples: n, Stop: []string{stop}}
		if json.Valid([]byte(value)) {
			r.Sampling.Seed = json.RawMessage(value)
		}
		got := r.asked()
		if len(got) > maxAsked || !json.Valid([]byte(got)) || strings.ContainsFunc(got, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("it asks %q", got)
		}
	})
}
