package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// completions is the dialect of OpenAI's Completions API: a text, or token ids, is continued as it is, without a chat
// template. A template's marks are written as ids alone.
type completions struct{}

// decode implements dialect.
func (completions) decode(body []byte) (*request, error) {
	var q struct {
		commonFields
		Prompt   json.RawMessage `json:"prompt"`
		Suffix   *string         `json:"suffix"`
		Echo     bool            `json:"echo"`
		BestOf   *int            `json:"best_of"`
		LogProbs *int            `json:"logprobs"`
	}
	if err := decodeJSON(body, &q); err != nil {
		return nil, err
	}
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	switch {
	case q.Suffix != nil && *q.Suffix != "":
		return nil, unsupported("suffix", "suffix is not supported: the policy writes from left to right")
	case q.Echo:
		return nil, unsupported("echo", "echo is not supported: prompts are not scored")
	case q.BestOf != nil && *q.BestOf != r.Samples:
		return nil, unsupported("best_of", "best_of is not supported beyond n: every sample is answered")
	}
	r.LogProbs = q.LogProbs != nil
	if err := readPrompt(q.Prompt, r); err != nil {
		return nil, err
	}
	return r, nil
}

// readPrompt reads a text or a list of token ids, or a list of just one of them.
func readPrompt(raw json.RawMessage, r *request) error {
	raw = bytes.TrimSpace(raw)
	if isNull(raw) {
		return invalid("prompt", "prompt is missing, want a text or a list of token ids")
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 && len(list[0]) > 0 && (list[0][0] == '"' || list[0][0] == '[') {
		raw = list[0]
	}
	if json.Unmarshal(raw, &r.Text) != nil && json.Unmarshal(raw, &r.Prompt) != nil {
		r.Text, r.Prompt = "", nil
		return unsupported("prompt", "prompt is neither a text nor a list of token ids; several prompts are several requests")
	}
	if r.Text == "" && len(r.Prompt) == 0 {
		return invalid("prompt", "prompt is empty")
	}
	return nil
}

// textCompletion is an answer, or a chunk of one.
type textCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []textChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

type textChoice struct {
	Text         string        `json:"text"`
	Index        int           `json:"index"`
	LogProbs     *textLogProbs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// textLogProbs are those of all tokens that were sampled. Offsets are in bytes of the tokens' text.
type textLogProbs struct {
	Tokens   []string             `json:"tokens"`
	LogProbs []float32            `json:"token_logprobs"`
	Offsets  []int                `json:"text_offset"`
	Top      []map[string]float32 `json:"top_logprobs"`
}

// encode implements dialect.
func (completions) encode(r *request, a *answer) ([]byte, error) {
	out := newTextCompletion(a)
	out.Usage = a.Usage.chat()
	for i, c := range a.Choices {
		out.Choices = append(out.Choices, newTextChoice(r, i, c))
	}
	return mustJSON(out), nil
}

// stream implements dialect. Each choice is one chunk.
func (completions) stream(r *request, a *answer) ([]event, error) {
	var events []event
	for i, c := range a.Choices {
		out := newTextCompletion(a)
		out.Choices = append(out.Choices, newTextChoice(r, i, c))
		events = append(events, event{Data: mustJSON(out)})
	}
	if r.IncludeUsage {
		last := newTextCompletion(a)
		last.Usage = a.Usage.chat()
		events = append(events, event{Data: mustJSON(last)})
	}
	return append(events, doneMark), nil
}

// fault implements dialect.
func (completions) fault(e *apiError) []byte { return errorBody(e) }

// newTextCompletion is an answer without its choices.
func newTextCompletion(a *answer) textCompletion {
	return textCompletion{ID: "cmpl-" + a.ID, Object: "text_completion", Created: a.Created, Model: a.Model, Choices: []textChoice{}}
}

func newTextChoice(r *request, index int, c choice) textChoice {
	out := textChoice{Text: c.Message.Content, Index: index, FinishReason: c.Finish.openAI()}
	if r.LogProbs {
		out.LogProbs = &textLogProbs{LogProbs: c.LogProbs}
		offset := 0
		for i, piece := range c.Pieces {
			token := strings.ToValidUTF8(piece, "\uFFFD")
			out.LogProbs.Tokens = append(out.LogProbs.Tokens, token)
			out.LogProbs.Offsets = append(out.LogProbs.Offsets, offset)
			out.LogProbs.Top = append(out.LogProbs.Top, map[string]float32{token: c.LogProbs[i]})
			offset += len(piece)
		}
	}
	return out
}
