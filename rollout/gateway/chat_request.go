package gateway

import (
	"encoding/json"
	"strconv"

	"github.com/lightswarm/lightswarm/policy/chat"
)

const (
	// maxSamples bounds the answers that one request asks for.
	maxSamples = 16
	// maxStops bounds the texts that end an answer.
	maxStops = 16
)

// chatCompletions is the dialect of OpenAI's Chat Completions API, the one that nearly every agent can speak.
type chatCompletions struct{}

// decode implements dialect.
func (chatCompletions) decode(body []byte) (*request, error) {
	var q struct {
		commonFields
		Messages            []chatMessage   `json:"messages"`
		Tools               []chatTool      `json:"tools"`
		ToolChoice          json.RawMessage `json:"tool_choice"`
		ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
		Functions           json.RawMessage `json:"functions"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		ResponseFormat      *chatFormat     `json:"response_format"`
		LogProbs            bool            `json:"logprobs"`
	}
	if err := decodeJSON(body, &q); err != nil {
		return nil, err
	}
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	if !isNull(q.Functions) {
		return nil, unsupported("functions", "functions is not supported: use tools")
	}
	if limit := q.MaxCompletionTokens; limit != nil {
		if *limit < 1 {
			return nil, invalid("max_completion_tokens", "max_completion_tokens is %d, want at least 1", *limit)
		}
		r.MaxTokens = *limit
	}
	r.LogProbs = q.LogProbs
	r.SingleCall = q.ParallelToolCalls != nil && !*q.ParallelToolCalls
	if len(q.Messages) == 0 {
		return nil, invalid("messages", "messages is empty, want at least one")
	}
	for i, m := range q.Messages {
		if err := m.read("messages["+strconv.Itoa(i)+"]", r); err != nil {
			return nil, err
		}
	}
	for i, t := range q.Tools {
		if t.Type != "" && t.Type != "function" {
			return nil, unsupported("tools", "tools[%d] is of type %q; the policy calls functions", i, clip(t.Type))
		}
		r.Tools = append(r.Tools, chat.Tool{
			Name: t.Function.Name, Description: t.Function.Description, Parameters: parameters(t.Function.Parameters),
		})
		r.strict(t.Function.Name, t.Function.Strict)
	}
	if err := readChatChoice(q.ToolChoice, r); err != nil {
		return nil, err
	}
	if err := q.ResponseFormat.read(r); err != nil {
		return nil, err
	}
	return r, nil
}

// commonFields are what Chat Completions and Completions share.
type commonFields struct {
	samplingFields
	Model         string          `json:"model"`
	N             *int            `json:"n"`
	Stop          json.RawMessage `json:"stop"`
	MaxTokens     *int            `json:"max_tokens"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// request is a request with these fields.
func (c *commonFields) request() (*request, error) {
	r := &request{Model: c.Model, Agent: roleOf(c.Model), Samples: 1, Stream: c.Stream, Sampling: c.samplingFields}
	r.IncludeUsage = c.StreamOptions != nil && c.StreamOptions.IncludeUsage
	if c.N != nil {
		if r.Samples = *c.N; r.Samples < 1 || r.Samples > maxSamples {
			return nil, invalid("n", "n is %d, want 1 to %d", r.Samples, maxSamples)
		}
	}
	if c.MaxTokens != nil {
		if r.MaxTokens = *c.MaxTokens; r.MaxTokens < 1 {
			return nil, invalid("max_tokens", "max_tokens is %d, want at least 1", r.MaxTokens)
		}
	}
	stops, err := readParts("stop", c.Stop, func(text string) string { return text })
	if err != nil {
		return nil, err
	}
	if len(stops) > maxStops {
		return nil, invalid("stop", "stop has %d texts, at most %d are allowed", len(stops), maxStops)
	}
	r.Stop = stops
	return r, nil
}

// chatMessage is one turn of a conversation. Names of speakers are not the policy's to read.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Refusal    string          `json:"refusal"`
	ToolCalls  []chatToolCall  `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type chatToolCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatFunctionCall `json:"function"`
}

type chatFunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// read adds the message to a request's.
func (m chatMessage) read(param string, r *request) error {
	role, ok := roles[m.Role]
	if m.Role == string(chat.ToolRole) {
		role, ok = chat.ToolRole, true
	}
	if !ok {
		return invalid(param+".role", "%s.role is %q, want system, developer, user, assistant or tool", param, clip(m.Role))
	}
	text, err := readText(param+".content", m.Content)
	if err != nil {
		return err
	}
	out := chat.Message{Role: role, Content: text}
	switch role {
	case chat.Assistant:
		out.Content += m.Refusal
		for i, c := range m.ToolCalls {
			if c.Type != "" && c.Type != "function" {
				return unsupported(param+".tool_calls", "%s.tool_calls[%d] is of type %q; the policy calls functions", param, i, clip(c.Type))
			}
			out.ToolCalls = append(out.ToolCalls, chat.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
	case chat.ToolRole:
		out.ToolCallID = m.ToolCallID
	}
	r.Messages = append(r.Messages, out)
	return nil
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	} `json:"function"`
}

// readChatChoice reads tool_choice: a word or one function.
func readChatChoice(raw json.RawMessage, r *request) error {
	if isNull(raw) {
		return nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return r.choose("tool_choice", word)
	}
	var object struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &object) != nil || object.Type != "function" {
		return unsupported("tool_choice", "tool_choice is none of auto, none, required and an object that names a function")
	}
	return r.chooseTool("tool_choice", object.Function.Name)
}

// chatFormat is a request's response_format.
type chatFormat struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

func (f *chatFormat) read(r *request) error {
	if f == nil {
		return nil
	}
	switch f.Type {
	case "", "text":
	case "json_object":
		r.Format.Kind = formatObject
	case "json_schema":
		if isNull(f.JSONSchema.Schema) {
			return invalid("response_format.json_schema.schema", "response_format lacks its schema")
		}
		r.Format = format{Kind: formatSchema, Name: f.JSONSchema.Name, Schema: f.JSONSchema.Schema}
	default:
		return unsupported("response_format.type", "response_format.type %q is unknown", clip(f.Type))
	}
	return nil
}
