package chat

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/lightswarm/lightswarm/policy/tokenizer"
)

// TemplateName identifies a template; it is a part of a policy's identity.
type TemplateName string

// Lightswarm1 is the template that doc.go describes.
const Lightswarm1 TemplateName = "lightswarm-1"

// The special tokens of lightswarm-1.
const (
	padToken       = "<|pad|>"
	systemToken    = "<|system|>"
	userToken      = "<|user|>"
	assistantToken = "<|assistant|>"
	toolToken      = "<|tool|>"
	toolsToken     = "<|tools|>"
	callToken      = "<|call|>"
	argsToken      = "<|args|>"
	endToken       = "<|end|>"
)

// Specials are the special tokens that a tokenizer needs for the template, in the order to give them ids.
func Specials() []string {
	return []string{
		padToken, systemToken, userToken, assistantToken, toolToken, toolsToken, callToken, argsToken, endToken,
	}
}

// ErrTemplate says that a template is unknown or that a tokenizer lacks its special tokens.
var ErrTemplate = errors.New("bad chat template")

// ErrConversation says that messages or tools cannot be rendered, and which.
var ErrConversation = errors.New("bad conversation")

// Template renders and parses for one tokenizer. It is immutable and safe for concurrent use.
type Template struct {
	name TemplateName
	tok  *tokenizer.Tokenizer

	system, user, assistant, tool, tools, call, args, end int32
}

// NewTemplate is the named template over tok. It fails with ErrTemplate.
func NewTemplate(name TemplateName, tok *tokenizer.Tokenizer) (*Template, error) {
	if name != Lightswarm1 {
		return nil, fmt.Errorf("%w: %q is unknown; this program knows %q", ErrTemplate, name, Lightswarm1)
	}
	t := &Template{name: name, tok: tok}
	for token, id := range map[string]*int32{
		padToken:    new(int32), // no prompt has it; trainers of batches want one
		systemToken: &t.system, userToken: &t.user, assistantToken: &t.assistant,
		toolToken: &t.tool, toolsToken: &t.tools, callToken: &t.call, argsToken: &t.args, endToken: &t.end,
	} {
		var ok bool
		if *id, ok = tok.Special(token); !ok {
			return nil, fmt.Errorf("%w: the tokenizer lacks %s", ErrTemplate, token)
		}
	}
	return t, nil
}

// Name is the template's name.
func (t *Template) Name() TemplateName { return t.name }

// Stop is the token that ends every completion.
func (t *Template) Stop() int32 { return t.end }

// Marks are the tokens that a completion has besides text: before a call's name, before its arguments, and at its end.
func (t *Template) Marks() (call, args, end int32) { return t.call, t.args, t.end }

// Render is the prompt that asks for the assistant's next message. It fails with ErrConversation.
func (t *Template) Render(msgs []Message, tools []Tool) ([]int32, error) {
	var out []int32
	for _, tool := range tools {
		text, err := describe(tool)
		if err != nil {
			return nil, err
		}
		out = t.tok.AppendEncode(append(out, t.tools), text)
	}
	var open calls
	for i, m := range msgs {
		switch m.Role {
		case System:
			out = t.tok.AppendEncode(append(out, t.system), m.Content)
		case User:
			out = t.tok.AppendEncode(append(out, t.user), m.Content)
		case Assistant:
			if err := t.checkAssistant(m); err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			out = append(append(out, t.assistant), t.RenderCompletion(m)...)
			open = newCalls(m.ToolCalls)
		case ToolRole:
			index, inOrder, err := open.answer(m.ToolCallID)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			out = append(out, t.tool)
			if !inOrder {
				out = append(t.tok.AppendEncode(out, strconv.Itoa(index)), t.args)
			}
			out = t.tok.AppendEncode(out, m.Content)
		default:
			return nil, fmt.Errorf("message %d: %w: unknown role %q", i, ErrConversation, clip(string(m.Role)))
		}
	}
	return append(out, t.assistant), nil
}

// RenderCompletion is the completion, ending in <|end|>, that a policy would sample for m: m.Tokens if there are
// any, else its canonical form. The names of its tool calls must be valid.
func (t *Template) RenderCompletion(m Message) []int32 {
	if m.Tokens != nil {
		return append([]int32(nil), m.Tokens...)
	}
	out := t.tok.Encode(m.Content)
	for _, c := range m.ToolCalls {
		out = t.tok.AppendEncode(append(out, t.call), c.Name)
		out = t.tok.AppendEncode(append(out, t.args), c.Arguments)
	}
	return append(out, t.end)
}

// checkAssistant refuses an assistant message that no completion could be.
func (t *Template) checkAssistant(m Message) error {
	for _, id := range m.Tokens {
		// An id that the tokenizer lacks may be one of the model's: see policy.Snapshot.VocabSize.
		if id < 0 {
			return fmt.Errorf("%w: token id %d is negative", ErrConversation, id)
		}
	}
	for _, c := range m.ToolCalls {
		if !ValidToolName(c.Name) {
			return fmt.Errorf("%w: tool name %q", ErrConversation, clip(c.Name))
		}
	}
	return nil
}

// calls are the calls of one assistant message and which of them are answered.
type calls struct {
	ids      []string
	answered []bool
}

func newCalls(all []ToolCall) calls {
	c := calls{answered: make([]bool, len(all))}
	for _, call := range all {
		c.ids = append(c.ids, call.ID)
	}
	return c
}

// answer marks the call with an id as answered, or with "" the first open one. inOrder says that it was the first
// open one.
func (c calls) answer(id string) (index int, inOrder bool, err error) {
	first := -1
	for i, done := range c.answered {
		if done {
			continue
		}
		if first < 0 {
			first = i
		}
		if id == "" || c.ids[i] == id {
			c.answered[i] = true
			return i, i == first, nil
		}
	}
	return 0, false, fmt.Errorf("%w: tool message answers call %q, which the assistant message before it does not ask for or which has an answer", ErrConversation, clip(id))
}

// clip shortens text from outside before it enters an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
