package gateway

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// messages is the dialect of Anthropic's Messages API.
type messages struct{}

// decode implements dialect.
func (messages) decode(body []byte) (*request, error) {
	var q struct {
		samplingFields
		Model     string          `json:"model"`
		System    json.RawMessage `json:"system"`
		Messages  []messagesTurn  `json:"messages"`
		MaxTokens int             `json:"max_tokens"`
		Stop      []string        `json:"stop_sequences"`
		Stream    bool            `json:"stream"`
		Tools     []messagesTool  `json:"tools"`
		Choice    *messagesChoice `json:"tool_choice"`
		Output    struct {
			Format *messagesFormat `json:"format"`
		} `json:"output_config"`
	}
	if err := decodeJSON(body, &q); err != nil {
		return nil, err
	}
	if q.MaxTokens < 0 {
		return nil, invalid("max_tokens", "max_tokens is %d, want at least 1", q.MaxTokens)
	}
	if len(q.Messages) == 0 {
		return nil, invalid("messages", "messages is empty, want at least one")
	}
	r := &request{
		Model: q.Model, Agent: roleOf(q.Model), Samples: 1, MaxTokens: q.MaxTokens, Stop: q.Stop, Stream: q.Stream,
		IncludeUsage: true, Sampling: q.samplingFields,
	}
	for _, tool := range q.Tools {
		if tool.Type != "" && tool.Type != "custom" {
			continue // one of Anthropic's own; agents list them beside their own
		}
		r.Tools = append(r.Tools, tool.tool())
		r.strict(tool.Name, tool.Strict)
	}
	if err := q.Choice.read(r); err != nil {
		return nil, err
	}
	if err := q.Output.Format.read(r); err != nil {
		return nil, err
	}
	system, err := messagesText("system", q.System)
	if err != nil {
		return nil, err
	}
	if system != "" {
		r.Messages = append(r.Messages, chat.Message{Role: chat.System, Content: system})
	}
	for i, turn := range q.Messages {
		if err := turn.read("messages["+strconv.Itoa(i)+"]", r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// messagesTool is a tool that the agent runs itself.
type messagesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

func (t messagesTool) tool() chat.Tool {
	return chat.Tool{Name: t.Name, Description: t.Description, Parameters: parameters(t.InputSchema)}
}

// messagesChoice is tool_choice.
type messagesChoice struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	SingleCall bool   `json:"disable_parallel_tool_use"`
}

func (c *messagesChoice) read(r *request) error {
	if c == nil {
		return nil
	}
	r.SingleCall = c.SingleCall
	switch c.Type {
	case "auto":
	case "none":
		r.Choice.Kind = chooseNone
	case "any":
		r.Choice.Kind = chooseRequired
	case "tool":
		return r.chooseTool("tool_choice.name", c.Name)
	default:
		return invalid("tool_choice.type", "tool_choice.type is %q, want auto, any, tool or none", clip(c.Type))
	}
	return nil
}

// messagesFormat is the form of the answer.
type messagesFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

func (f *messagesFormat) read(r *request) error {
	switch {
	case f == nil:
		return nil
	case f.Type != "json_schema" || isNull(f.Schema):
		return invalid("output_config.format", "output_config.format is neither absent nor a json_schema")
	}
	r.Format = format{Kind: formatSchema, Schema: f.Schema}
	return nil
}

// messagesTurn is one entry of a conversation.
type messagesTurn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// messagesBlock is a part of a turn's content.
type messagesBlock struct {
	Type string `json:"type"`
	// Of a text.
	Text string `json:"text"`
	// Of a tool_use.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// Of a tool_result.
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func textBlock(text string) messagesBlock { return messagesBlock{Type: "text", Text: text} }

// read adds one turn to the messages. A turn of the user's makes one for each tool's result and each run of texts.
func (turn messagesTurn) read(param string, r *request) error {
	role := chat.Role(turn.Role)
	if role != chat.User && role != chat.Assistant && role != chat.System {
		return invalid(param+".role", "%s.role is %q, want user or assistant", param, clip(turn.Role))
	}
	param += ".content"
	blocks, err := readParts(param, turn.Content, textBlock)
	if err != nil {
		return err
	}
	var texts strings.Builder
	var calls []chat.ToolCall
	open := role == chat.Assistant || len(blocks) == 0 // a message of the turn's role is to be added
	say := func() {
		if open {
			r.Messages = append(r.Messages, chat.Message{Role: role, Content: texts.String(), ToolCalls: calls})
		}
		texts.Reset()
		open = false
	}
	for i, b := range blocks {
		switch {
		case b.Type == "text":
			texts.WriteString(b.Text)
			open = true
		case b.Type == "tool_use" && role == chat.Assistant:
			arguments := "{}"
			if !isNull(b.Input) {
				arguments = string(b.Input)
			}
			calls = append(calls, chat.ToolCall{ID: b.ID, Name: b.Name, Arguments: arguments})
		case b.Type == "tool_result" && role == chat.User:
			text, err := messagesText(param+"["+strconv.Itoa(i)+"].content", b.Content)
			if err != nil {
				return err
			}
			say()
			r.Messages = append(r.Messages, chat.Message{Role: chat.ToolRole, ToolCallID: b.ToolUseID, Content: text})
		case b.Type == "thinking" || b.Type == "redacted_thinking":
			// The policy has none, so this is another model's, which that model alone may read.
		default:
			return unsupported(param, "%s[%d] is of type %q, which the %s cannot say here; the policy reads text, tool_use and tool_result",
				param, i, clip(b.Type), role)
		}
	}
	say()
	return nil
}

// messagesText reads content of which all is text.
func messagesText(param string, raw json.RawMessage) (string, error) {
	blocks, err := readParts(param, raw, textBlock)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, block := range blocks {
		if block.Type != "text" {
			return "", unsupported(param, "%s[%d] is of type %q; the policy reads text alone", param, i, clip(block.Type))
		}
		b.WriteString(block.Text)
	}
	return b.String(), nil
}
