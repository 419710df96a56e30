package gateway

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// message is the body of an answer.
type message struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []messageBlock `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        messageUsage   `json:"usage"`
}

// messageBlock is a text or a tool_use.
type messageBlock struct {
	Type string `json:"type"`
	*messageText
	*messageToolUse
}

type messageText struct {
	Text string `json:"text"`
}

type messageToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type messageUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// encode implements dialect.
func (messages) encode(_ *request, a *answer) ([]byte, error) { return json.Marshal(newMessage(a)) }

// newMessage is the message that an answer makes.
func newMessage(a *answer) message {
	c := a.Choices[0]
	out := message{
		ID: textItemPrefix + a.ID, Type: "message", Role: "assistant", Model: a.Model,
		Usage: messageUsage{InputTokens: a.Usage.Prompt, OutputTokens: a.Usage.Completion},
	}
	reason := "end_turn"
	content, calls := c.Message.Content, c.Message.ToolCalls
	if !objects(calls) {
		content, calls = spell(content, calls), nil
	}
	switch {
	case c.Finish == finishLength:
		reason = "max_tokens"
	case len(calls) > 0:
		reason = "tool_use"
	}
	out.StopReason = &reason
	if content != "" || len(calls) == 0 {
		out.Content = append(out.Content, messageBlock{Type: "text", messageText: &messageText{content}})
	}
	for _, call := range calls {
		out.Content = append(out.Content, messageBlock{
			Type: "tool_use", messageToolUse: &messageToolUse{ID: call.ID, Name: call.Name, Input: input(call)},
		})
	}
	return out
}

// objects reports whether the arguments of all calls are what a tool_use can hold: a JSON object, or nothing.
func objects(calls []chat.ToolCall) bool {
	for _, call := range calls {
		var object map[string]json.RawMessage
		if json.Unmarshal(input(call), &object) != nil || object == nil {
			return false
		}
	}
	return true
}

// input is a call's arguments as its policy wrote them.
func input(call chat.ToolCall) json.RawMessage {
	if strings.TrimSpace(call.Arguments) == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(call.Arguments)
}

// spell writes calls as text, for those that are no tool_use: clients expect an object and fail on anything else,
// whereas it is the policy that has to see what it wrote.
func spell(content string, calls []chat.ToolCall) string {
	var b strings.Builder
	b.WriteString(content)
	for _, call := range calls {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(call.Name + " " + call.Arguments)
	}
	return b.String()
}

// fault implements dialect.
func (messages) fault(e *apiError) []byte {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return mustJSON(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{messagesErrorType(e.Status), e.Message}})
}

// messagesErrorType is Anthropic's word for a status.
func messagesErrorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case status >= http.StatusInternalServerError:
		return "api_error"
	default:
		return "invalid_request_error"
	}
}
