package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// dialect is an API in an agent's words.
type dialect int

const (
	chatCompletions dialect = iota
	responses
	messages
	completions
	dialects
)

type object = map[string]any

func (d dialect) endpoint() string {
	return [...]string{"chat/completions", "responses", "messages", "completions"}[d]
}

func (d dialect) String() string { return "/v1/" + d.endpoint() }

// rewrite is a call's arguments as a framework may write them anew.
func rewrite(random *rand.Rand, arguments string) string {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil || random.IntN(3) == 0 {
		return arguments
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(random.IntN(2) == 0)
	if random.IntN(2) == 0 {
		e.SetIndent("", " ")
	}
	if err := e.Encode(v); err != nil {
		panic(err) // of what was JSON
	}
	return strings.TrimSpace(b.String())
}

// write makes a query's body, in which the conversation is text alone.
func (q *query) write(random *rand.Rand) {
	o := object{"model": "gpt-4o", "temperature": random.Float64() * 2, "seed": random.IntN(9), "unheard_of": object{"a": []int{1}}}
	if q.stream {
		o["stream"] = true
	}
	limit := func(name string) {
		if q.maxTokens > 0 {
			o[name] = q.maxTokens
		}
	}
	switch q.dialect {
	case chatCompletions, completions:
		if q.samples > 1 {
			o["n"] = q.samples
		}
		if q.stop != "" {
			o["stop"] = q.stop
		}
		if q.usage {
			o["stream_options"] = object{"include_usage": true}
		}
		limit("max_tokens")
	case responses:
		limit("max_output_tokens")
	case messages:
		if q.stop != "" {
			o["stop_sequences"] = []string{q.stop}
		}
		limit("max_tokens")
	}
	switch q.dialect {
	case completions:
		o["prompt"] = any(q.ask.Text)
		if len(q.ask.Prompt) > 0 {
			o["prompt"] = q.ask.Prompt
		}
		if q.logProbs {
			o["logprobs"] = 0
		}
	case chatCompletions:
		q.writeChat(random, o)
	case responses:
		q.writeResponses(random, o)
	case messages:
		q.writeMessages(random, o)
	}
	var err error
	if q.body, err = json.Marshal(o); err != nil {
		panic(err) // of maps, texts and numbers
	}
}

// tools are those of the query, in the form that one of them is given.
func (q *query) tools(o object, form func(chat.Tool) object) {
	var list []object
	for _, t := range q.offered {
		list = append(list, form(t))
	}
	if list != nil {
		o["tools"] = list
	}
}

func (q *query) writeChat(random *rand.Rand, o object) {
	if q.logProbs {
		o["logprobs"] = true
	}
	if q.single {
		o["parallel_tool_calls"] = false
	}
	if q.none {
		o["tool_choice"] = "none"
	}
	var list []object
	for _, m := range q.ask.Messages {
		e := object{"role": m.Role, "content": any(m.Content), "name": "someone"}
		if random.IntN(3) == 0 {
			e["content"] = []object{{"type": "text", "text": m.Content}}
		}
		if m.Role == chat.Assistant && m.Content == "" && random.IntN(2) == 0 {
			e["content"] = nil
		}
		var calls []object
		for _, c := range m.ToolCalls {
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
		}
		if calls != nil {
			e["tool_calls"] = calls
		}
		if m.Role == chat.ToolRole {
			e["tool_call_id"] = m.ToolCallID
		}
		list = append(list, e)
	}
	o["messages"] = list
	q.tools(o, func(t chat.Tool) object {
		return object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": json.RawMessage(t.Parameters)}}
	})
}

func (q *query) writeResponses(random *rand.Rand, o object) {
	if q.logProbs {
		o["include"] = []string{"message.output_text.logprobs"}
	}
	if q.single {
		o["parallel_tool_calls"] = false
	}
	if q.none {
		o["tool_choice"] = "none"
	}
	list := []object{}
	for i, m := range q.ask.Messages {
		if i == 0 && m.Role == chat.System && random.IntN(2) == 0 {
			o["instructions"] = m.Content
			continue
		}
		if m.Role == chat.ToolRole {
			list = append(list, object{"type": "function_call_output", "call_id": m.ToolCallID, "output": m.Content})
			continue
		}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			form := map[chat.Role]string{chat.Assistant: "output_text"}[m.Role]
			if form == "" {
				form = "input_text"
			}
			e := object{"role": m.Role, "content": []object{{"type": form, "text": m.Content}}}
			if m.Role != chat.Assistant && random.IntN(2) == 0 {
				e["content"] = m.Content
			}
			list = append(list, e)
		}
		for _, c := range m.ToolCalls {
			list = append(list, object{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": "completed"})
		}
	}
	o["input"] = list
	q.tools(o, func(t chat.Tool) object {
		return object{"type": "function", "name": t.Name, "description": t.Description, "parameters": json.RawMessage(t.Parameters), "strict": false}
	})
}

func (q *query) writeMessages(random *rand.Rand, o object) {
	if q.single || q.none {
		o["tool_choice"] = object{"type": map[bool]string{true: "none", false: "auto"}[q.none], "disable_parallel_tool_use": q.single}
	}
	var list []object
	for i, m := range q.ask.Messages {
		if i == 0 && m.Role == chat.System {
			o["system"] = m.Content
			continue
		}
		if m.Role == chat.ToolRole {
			block := object{"type": "tool_result", "tool_use_id": m.ToolCallID, "content": m.Content}
			if n := len(list); q.ask.Messages[i-1].Role == chat.ToolRole {
				list[n-1]["content"] = append(list[n-1]["content"].([]object), block)
			} else {
				list = append(list, object{"role": "user", "content": []object{block}})
			}
			continue
		}
		blocks := []object{}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			blocks = append(blocks, object{"type": "text", "text": m.Content})
		}
		for _, c := range m.ToolCalls {
			input := c.Arguments
			if strings.TrimSpace(input) == "" {
				input = "{}"
			}
			blocks = append(blocks, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(input)})
		}
		list = append(list, object{"role": m.Role, "content": blocks})
	}
	o["messages"] = list
	q.tools(o, func(t chat.Tool) object {
		return object{"name": t.Name, "description": t.Description, "input_schema": json.RawMessage(t.Parameters)}
	})
}
