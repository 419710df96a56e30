package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// errCutShort says that a stream ended before its end.
var errCutShort = errors.New("the stream is not complete")

// read is the answer in a body, or the events of one.
func (q *query) read(body []byte) (answer, error) {
	if !q.stream {
		return q.whole(body)
	}
	var events [][]byte
	done := false
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !ok:
		case string(data) == "[DONE]":
			done = true
		default:
			events = append(events, data)
		}
	}
	return q.streamed(events, done)
}

// whole reads an answer that is not streamed.
func (q *query) whole(body []byte) (a answer, err error) {
	switch q.dialect {
	case chatCompletions, completions:
		var c chatBody
		if err = json.Unmarshal(body, &c); err == nil {
			for i, choice := range c.Choices {
				a.add(i, choice)
			}
			a.finish(c)
		}
	case responses:
		err = a.readResponse(body)
	case messages:
		var m messageBody
		if err = json.Unmarshal(body, &m); err == nil {
			a.readMessage(m)
		}
	}
	return a, err
}

// chatBody is an answer of OpenAI's first APIs, or a chunk of one.
type chatBody struct {
	ID      string
	Choices []chatChoice
	Usage   *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
}

type chatChoice struct {
	Index          int
	Text           string
	Message, Delta struct {
		Content   string
		ToolCalls []struct {
			Index    int
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	LogProbs *struct {
		Content []struct {
			Token   string
			LogProb float32
		}
		Tokens []string
		Probs  []float32 `json:"token_logprobs"`
	}
	Finish string `json:"finish_reason"`
}

func (a *answer) add(index int, c chatChoice) {
	for len(a.choices) <= index {
		a.choices = append(a.choices, view{})
	}
	v := &a.choices[index]
	v.text += c.Text + c.Message.Content + c.Delta.Content
	for _, call := range c.Message.ToolCalls {
		v.calls = append(v.calls, chat.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	for _, call := range c.Delta.ToolCalls {
		for len(v.calls) <= call.Index {
			v.calls = append(v.calls, chat.ToolCall{})
		}
		into := &v.calls[call.Index]
		into.ID += call.ID
		into.Name += call.Function.Name
		into.Arguments += call.Function.Arguments
	}
	if l := c.LogProbs; l != nil {
		v.logProbs, v.tokens = append(v.logProbs, l.Probs...), append(v.tokens, l.Tokens...)
		for _, t := range l.Content {
			v.logProbs, v.tokens = append(v.logProbs, t.LogProb), append(v.tokens, t.Token)
		}
	}
	if c.Finish != "" {
		v.finish = c.Finish
	}
}

func (a *answer) finish(c chatBody) {
	a.id, a.prompt, a.completion = c.ID, -1, -1
	if c.Usage != nil {
		a.prompt, a.completion = c.Usage.Prompt, c.Usage.Completion
	}
}

// readResponse reads a response of the Responses API.
func (a *answer) readResponse(body []byte) error {
	var r struct {
		ID, Status string
		Output     []struct {
			Type    string
			Content []struct {
				Text     string
				LogProbs []struct {
					Token   string
					LogProb float32
				}
			}
			CallID    string `json:"call_id"`
			Name      string
			Arguments string
		}
		Usage struct {
			Prompt     int `json:"input_tokens"`
			Completion int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	v := view{finish: "stop"}
	for _, item := range r.Output {
		if item.Type == "function_call" {
			v.calls = append(v.calls, chat.ToolCall{ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
			v.finish = "tool_calls"
		}
		for _, part := range item.Content {
			v.text += part.Text
			for _, p := range part.LogProbs {
				v.tokens, v.logProbs = append(v.tokens, p.Token), append(v.logProbs, p.LogProb)
			}
		}
	}
	if r.Status == "incomplete" {
		v.finish = "length"
	}
	*a = answer{id: r.ID, choices: []view{v}, prompt: r.Usage.Prompt, completion: r.Usage.Completion}
	return nil
}

// messageBody is a message of Anthropic's API.
type messageBody struct {
	ID      string
	Content []struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
	}
	Reason string `json:"stop_reason"`
	Usage  struct {
		Prompt     int `json:"input_tokens"`
		Completion int `json:"output_tokens"`
	}
}

func (a *answer) readMessage(m messageBody) {
	v := view{finish: map[string]string{"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}[m.Reason]}
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			v.calls = append(v.calls, chat.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		}
		v.text += b.Text
	}
	*a = answer{id: m.ID, choices: []view{v}, prompt: m.Usage.Prompt, completion: m.Usage.Completion}
}

// streamed reads the events of an answer; done says that there was the mark of their end.
func (q *query) streamed(events [][]byte, done bool) (a answer, err error) {
	switch q.dialect {
	case chatCompletions, completions:
		var last chatBody
		for _, data := range events {
			last = chatBody{}
			if err := json.Unmarshal(data, &last); err != nil {
				return a, err
			}
			for _, c := range last.Choices {
				a.add(c.Index, c)
			}
		}
		if !done {
			return a, errCutShort
		}
		a.finish(last)
		return a, nil
	case responses:
		return q.streamedResponse(events)
	}
	return q.streamedMessage(events)
}

// streamedResponse reads the events of a response: what they add up to has to be what the last one says.
func (q *query) streamedResponse(events [][]byte) (a answer, err error) {
	var text, arguments strings.Builder
	for i, data := range events {
		var e struct {
			Type     string
			Sequence int `json:"sequence_number"`
			Delta    string
			Response json.RawMessage
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return a, err
		}
		if e.Sequence != i {
			return a, fmt.Errorf("event %d has the number %d", i, e.Sequence)
		}
		switch e.Type {
		case "response.output_text.delta":
			text.WriteString(e.Delta)
		case "response.function_call_arguments.delta":
			arguments.WriteString(e.Delta)
		case "response.completed", "response.incomplete":
			if err := a.readResponse(e.Response); err != nil {
				return a, err
			}
			all := ""
			for _, c := range a.choices[0].calls {
				all += c.Arguments
			}
			if text.String() != a.choices[0].text || arguments.String() != all {
				return a, errors.New("the deltas do not add up to the response")
			}
			return a, nil
		}
	}
	return a, errCutShort
}

// streamedMessage reads the events of a message.
func (q *query) streamedMessage(events [][]byte) (a answer, err error) {
	var m messageBody
	for _, data := range events {
		var e struct {
			Type    string
			Message messageBody
			Index   int
			Block   struct{ Type, ID, Name string } `json:"content_block"`
			Delta   struct {
				Text    string
				Partial string `json:"partial_json"`
				Reason  string `json:"stop_reason"`
			}
			Usage struct {
				Completion int `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return a, err
		}
		switch e.Type {
		case "message_start":
			m = e.Message
		case "content_block_start":
			m.Content = append(m.Content, struct {
				Type, Text, ID, Name string
				Input                json.RawMessage
			}{Type: e.Block.Type, ID: e.Block.ID, Name: e.Block.Name})
		case "content_block_delta":
			b := &m.Content[e.Index]
			b.Text += e.Delta.Text
			b.Input = append(b.Input, e.Delta.Partial...)
		case "message_delta":
			m.Reason, m.Usage.Completion = e.Delta.Reason, e.Usage.Completion
		case "message_stop":
			a.readMessage(m)
			return a, nil
		}
	}
	return a, errCutShort
}
