package gateway

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// responses is the dialect of OpenAI's Responses API, the default of OpenAI's and Vercel's agent libraries. No response
// is kept as a conversation to go on from (previous_response_id): agents send their history, of which items may be
// named by id.
type responses struct{}

// decode implements dialect.
func (responses) decode(body []byte) (*request, error) {
	var q struct {
		samplingFields
		Model              string           `json:"model"`
		Instructions       json.RawMessage  `json:"instructions"`
		Input              json.RawMessage  `json:"input"`
		Tools              []responsesTool  `json:"tools"`
		ToolChoice         json.RawMessage  `json:"tool_choice"`
		ParallelToolCalls  *bool            `json:"parallel_tool_calls"`
		Text               *responsesText   `json:"text"`
		MaxOutputTokens    int              `json:"max_output_tokens"`
		Include            []string         `json:"include"`
		Stream             bool             `json:"stream"`
		Background         bool             `json:"background"`
		PreviousResponseID *string          `json:"previous_response_id"`
		Conversation       json.RawMessage  `json:"conversation"`
		Prompt             *json.RawMessage `json:"prompt"`
	}
	if err := decodeJSON(body, &q); err != nil {
		return nil, err
	}
	switch {
	case q.PreviousResponseID != nil && *q.PreviousResponseID != "":
		return nil, unsupported("previous_response_id", "responses are not kept: send the conversation as input instead of previous_response_id")
	case !isNull(q.Conversation):
		return nil, unsupported("conversation", "conversations are not kept: send the conversation as input")
	case q.Prompt != nil:
		return nil, unsupported("prompt", "there are no stored prompts: send instructions and input")
	case q.Background:
		return nil, unsupported("background", "there are no background responses")
	case q.MaxOutputTokens < 0:
		return nil, invalid("max_output_tokens", "max_output_tokens is %d, want at least 1", q.MaxOutputTokens)
	}
	r := &request{
		Model: q.Model, Agent: roleOf(q.Model), Samples: 1, MaxTokens: q.MaxOutputTokens, Stream: q.Stream,
		SingleCall: q.ParallelToolCalls != nil && !*q.ParallelToolCalls, Sampling: q.samplingFields,
	}
	for _, name := range q.Include {
		r.LogProbs = r.LogProbs || name == "message.output_text.logprobs"
	}
	for _, tool := range q.Tools {
		if tool.Type != "function" {
			continue // one that OpenAI would run; nobody runs it here, and agents list them beside their own
		}
		r.Tools = append(r.Tools, tool.tool())
		r.strict(tool.Name, tool.Strict)
	}
	if err := q.Text.read(r); err != nil {
		return nil, err
	}
	if err := readResponsesChoice(q.ToolChoice, r); err != nil {
		return nil, err
	}
	if err := readInstructions(q.Instructions, r); err != nil {
		return nil, err
	}
	if err := readInput(q.Input, r); err != nil {
		return nil, err
	}
	if len(r.Messages) == 0 {
		return nil, invalid("input", "input is empty, want a text or items")
	}
	return r, nil
}

// responsesTool is a tool in a request, and in a response, which repeats it.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func (t responsesTool) tool() chat.Tool {
	return chat.Tool{Name: t.Name, Description: t.Description, Parameters: parameters(t.Parameters)}
}

// responsesText is a request's "text": the form of the answer.
type responsesText struct {
	Format struct {
		Type   string          `json:"type"`
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"format"`
}

func (t *responsesText) read(r *request) error {
	if t == nil {
		return nil
	}
	switch t.Format.Type {
	case "", "text":
	case "json_object":
		r.Format.Kind = formatObject
	case "json_schema":
		if isNull(t.Format.Schema) {
			return invalid("text.format.schema", "text.format lacks its schema")
		}
		r.Format = format{Kind: formatSchema, Name: t.Format.Name, Schema: t.Format.Schema}
	default:
		return unsupported("text.format.type", "text.format.type %q is unknown", clip(t.Format.Type))
	}
	return nil
}

// readResponsesChoice reads tool_choice: a word, one function, or the tools that are allowed of those listed.
func readResponsesChoice(raw json.RawMessage, r *request) error {
	if isNull(raw) {
		return nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return r.choose("tool_choice", word)
	}
	var object struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Mode  string `json:"mode"`
		Tools []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return invalid("tool_choice", "tool_choice is neither a word nor an object that names a tool")
	}
	switch object.Type {
	case "function":
		return r.chooseTool("tool_choice", object.Name)
	case "allowed_tools":
		allowed := map[string]bool{}
		for _, t := range object.Tools {
			if t.Type == "function" {
				allowed[t.Name] = true
			}
		}
		var kept []chat.Tool
		for _, t := range r.Tools {
			if allowed[t.Name] {
				kept = append(kept, t)
			}
		}
		r.Tools = kept
		return r.choose("tool_choice.mode", orElse(object.Mode, "auto"))
	default:
		return unsupported("tool_choice", "tool_choice of type %q is unknown; functions can be chosen", clip(object.Type))
	}
}

// choose sets the choice that a word means in OpenAI's APIs.
func (r *request) choose(param, word string) error {
	switch word {
	case "auto":
		r.Choice = toolChoice{}
	case "none":
		r.Choice = toolChoice{Kind: chooseNone}
	case "required":
		r.Choice = toolChoice{Kind: chooseRequired}
	default:
		return invalid(param, "%s is %q, want auto, none, required or a tool", param, clip(word))
	}
	return nil
}

// chooseTool sets the choice of one of the request's tools.
func (r *request) chooseTool(param, name string) error {
	for _, t := range r.Tools {
		if t.Name == name {
			r.Choice = toolChoice{Kind: chooseNamed, Name: name}
			return nil
		}
	}
	return invalid(param, "%s names the tool %q, which is not among the tools", param, clip(name))
}

// readInstructions reads a text, or items as of the input.
func readInstructions(raw json.RawMessage, r *request) error {
	var text string
	if !isNull(raw) && json.Unmarshal(raw, &text) != nil {
		return readInput(raw, r)
	}
	if text != "" {
		r.Messages = append(r.Messages, chat.Message{Role: chat.System, Content: text})
	}
	return nil
}

// readParts decodes content that is a list of parts, or a text, which stands for the one part that of makes of it, or
// null, which is no part.
func readParts[T any](param string, raw []byte, of func(text string) T) ([]T, error) {
	raw = bytes.TrimSpace(raw)
	if isNull(raw) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []T{of(text)}, nil
	}
	var parts []T
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, invalid(param, "%s is neither a text nor a list of parts", param)
	}
	return parts, nil
}

// clip shortens what an agent wrote before it enters an error.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
