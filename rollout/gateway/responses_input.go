package gateway

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// responsesItem is one entry of a Responses input. One without a type is a message.
type responsesItem struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	// Of a message.
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// Of a function_call and a function_call_output.
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// textPart is a part of a message's content.
type textPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// readInput adds the messages that an input's items say.
func readInput(raw json.RawMessage, r *request) error {
	items, err := readParts("input", raw, func(text string) responsesItem {
		content, _ := json.Marshal(text) // a string can be encoded
		return responsesItem{Role: "user", Content: content}
	})
	if err != nil {
		return err
	}
	for i, item := range items {
		if err := item.read("input["+strconv.Itoa(i)+"]", r); err != nil {
			return err
		}
	}
	return nil
}

// read adds one item to the messages. The parts of one answer come as several items: a text begins a message of the
// assistant, calls continue the one before them.
func (item responsesItem) read(param string, r *request) error {
	switch item.Type {
	case "", "message":
		role, ok := roles[item.Role]
		if !ok {
			return invalid(param+".role", "%s.role is %q, want user, assistant, system or developer", param, clip(item.Role))
		}
		text, err := readText(param+".content", item.Content)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, chat.Message{Role: role, Content: text})
	case "function_call":
		m := r.lastAssistant()
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
	case "function_call_output":
		text, err := readText(param+".output", item.Output)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, chat.Message{Role: chat.ToolRole, ToolCallID: item.CallID, Content: text})
	case "item_reference":
		return item.recall(param, r)
	case "reasoning":
		// The policy has none, so this is another model's, which that model alone may read.
	default:
		return unsupported(param+".type", "%s is of type %q; want message, function_call, function_call_output or item_reference", param, clip(item.Type))
	}
	return nil
}

// roles are those that a message may have in OpenAI's APIs.
var roles = map[string]chat.Role{
	"user": chat.User, "assistant": chat.Assistant, "system": chat.System, "developer": chat.System,
}

// lastAssistant is the message that calls belong in: the last one if it is the assistant's, else a new one.
func (r *request) lastAssistant() *chat.Message {
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != chat.Assistant {
		r.Messages = append(r.Messages, chat.Message{Role: chat.Assistant})
	}
	return &r.Messages[len(r.Messages)-1]
}

// readText reads content of which all is text.
func readText(param string, raw json.RawMessage) (string, error) {
	parts, err := readParts(param, raw, func(text string) textPart { return textPart{Type: "text", Text: text} })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text", "summary_text":
			b.WriteString(p.Text)
		case "refusal":
			b.WriteString(p.Refusal)
		default:
			return "", unsupported(param, "%s[%d] is of type %q; the policy reads text alone", param, i, clip(p.Type))
		}
	}
	return b.String(), nil
}

// The ids of output items are made of their answer's id, so that an item_reference can be told from its id alone.
const (
	textItemPrefix = "msg_"
	callItemPrefix = "fc_"
)

func textItemID(a *answer) string        { return textItemPrefix + a.ID }
func callItemID(a *answer, i int) string { return callItemPrefix + a.ID + "_" + strconv.Itoa(i) }

// recalled is a part of an earlier answer that a request names by id instead of repeating it.
type recalled struct {
	// Message is an index into the request's messages: of the assistant message that the part belongs in.
	Message int
	// Call is an index into that message's tool calls, -1 for its text.
	Call int
	// Answer is the id of the answer, Part the index of its tool call, -1 for its text.
	Answer string
	Part   int
	// Param is the field that names it.
	Param string
}

// recall leaves a place in the messages for the item that an item_reference names.
func (item responsesItem) recall(param string, r *request) error {
	param += ".id"
	if id, ok := strings.CutPrefix(item.ID, textItemPrefix); ok {
		r.Messages = append(r.Messages, chat.Message{Role: chat.Assistant})
		r.Recalled = append(r.Recalled, recalled{Message: len(r.Messages) - 1, Call: -1, Answer: id, Part: -1, Param: param})
		return nil
	}
	if id, ok := strings.CutPrefix(item.ID, callItemPrefix); ok {
		if at := strings.LastIndexByte(id, '_'); at >= 0 {
			if part, err := strconv.ParseUint(id[at+1:], 10, 16); err == nil {
				m := r.lastAssistant()
				m.ToolCalls = append(m.ToolCalls, chat.ToolCall{})
				r.Recalled = append(r.Recalled, recalled{
					Message: len(r.Messages) - 1, Call: len(m.ToolCalls) - 1, Answer: id[:at], Part: int(part), Param: param,
				})
				return nil
			}
		}
	}
	return invalid(param, "%s is %q, which no item of this rollout has", param, clip(item.ID))
}

// resolve puts the parts that a request recalls in their places. answers finds the message of one of the rollout's
// answers by the answer's id.
func (r *request) resolve(answers func(id string) (chat.Message, bool)) error {
	for _, p := range r.Recalled {
		from, ok := answers(p.Answer)
		if !ok || p.Part >= len(from.ToolCalls) {
			return invalid(p.Param, "%s names an item that this rollout has not made", p.Param)
		}
		if p.Call < 0 {
			r.Messages[p.Message].Content = from.Content
		} else {
			r.Messages[p.Message].ToolCalls[p.Call] = from.ToolCalls[p.Part]
		}
	}
	return nil
}
