package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// history knows which tokens the policy's messages were sampled as. Agents send messages back as text, and frameworks
// write tool arguments anew, leave empty contents out and make up ids; encoding such a text would give other tokens.
// So a message that says the same as one that the policy wrote gets its tokens, and the next prompt continues what
// was sampled, exactly. It is not safe for concurrent use.
type history struct{ said map[string][]saying }

// saying is a message that the policy wrote.
type saying struct {
	context [sha256.Size]byte // of the conversation that it answered
	calls   []chat.ToolCall
	tokens  []int32
}

// add remembers that tokens were sampled in answer to a conversation, and that message is what the agent saw of them.
func (h *history) add(conversation []chat.Message, message chat.Message, tokens []int32) {
	if h.said == nil {
		h.said = map[string][]saying{}
	}
	var context [sha256.Size]byte
	for _, m := range conversation {
		context = extend(context, m)
	}
	key := meaning(message)
	h.said[key] = append(h.said[key], saying{context, message.ToolCalls, tokens})
}

// attach returns the conversation with the tokens of those messages that the policy wrote. Of several that say the
// same it takes the one with the same call ids, then one that was said in the same place, then one that is the same
// to the letter, then the last. Messages that only together say what the policy wrote become one.
func (h *history) attach(conversation []chat.Message) []chat.Message {
	out := make([]chat.Message, 0, len(conversation))
	var context [sha256.Size]byte
	for len(conversation) > 0 {
		m, length := h.whole(conversation)
		conversation = conversation[length:]
		if m.Role == chat.Assistant && m.Tokens == nil {
			best := -1
			for _, s := range h.said[meaning(m)] {
				if rank := s.rank(m, context); rank >= best {
					best, m.Tokens = rank, s.tokens
				}
			}
		}
		context = extend(context, m)
		out = append(out, m)
	}
	return out
}

// whole is the first message of a conversation, and how many of its messages say it. There are frameworks that make
// of a text with calls a message for the text and one for the calls, or one for each call.
func (h *history) whole(conversation []chat.Message) (m chat.Message, length int) {
	const most = 1 + chat.MaxToolCalls // messages that one can fall into
	joined, m, length := chat.Message{Role: chat.Assistant}, conversation[0], 1
	for i, part := range conversation[:min(most, len(conversation))] {
		if part.Role != chat.Assistant || part.Tokens != nil || i > 0 && part.Content != "" {
			break
		}
		joined.Content += part.Content
		joined.ToolCalls = append(joined.ToolCalls, part.ToolCalls...)
		if i > 0 && len(h.said[meaning(joined)]) > 0 {
			m, length = joined, i+1
			m.ToolCalls = slices.Clone(joined.ToolCalls)
		}
	}
	return m, length
}

func (s *saying) rank(m chat.Message, context [sha256.Size]byte) (rank int) {
	same := func(eq func(a, b chat.ToolCall) bool) bool { return slices.EqualFunc(s.calls, m.ToolCalls, eq) }
	if len(s.calls) > 0 && same(func(a, b chat.ToolCall) bool { return a.ID == b.ID }) {
		rank += 4
	}
	if s.context == context {
		rank += 2
	}
	if same(func(a, b chat.ToolCall) bool { return a.Arguments == b.Arguments }) {
		rank++
	}
	return rank
}

// extend is the context after one more message.
func extend(context [sha256.Size]byte, m chat.Message) [sha256.Size]byte {
	return sha256.Sum256(append(context[:], meaning(m)...))
}

// meaning is equal for messages that say the same: ids do not matter, nor how the JSON of arguments is written.
func meaning(m chat.Message) string {
	var b []byte
	part := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	part(string(m.Role))
	part(m.Content)
	for _, c := range m.ToolCalls {
		part(c.Name)
		part(canonical(c.Arguments))
	}
	return string(b)
}

// canonical writes JSON in one way, with numbers as JavaScript reads them. What is no JSON stays as it is; nothing
// at all is the empty object.
func canonical(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return arguments
	}
	return string(mustJSON(v))
}
