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
type history struct {
	said    map[string][]saying // by meaning
	longest int                 // of the meanings
}

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
		context = extend(context, meaningOf(m).text)
	}
	key := string(meaningOf(message).text)
	h.said[key] = append(h.said[key], saying{context, message.ToolCalls, tokens})
	h.longest = max(h.longest, len(key))
}

// attach returns the conversation with the tokens of those messages that the policy wrote. Of several that say the
// same it takes the one with the same call ids, then one that was said in the same place, then one that is the same
// to the letter, then the last. Messages that only together say what the policy wrote become one.
func (h *history) attach(conversation []chat.Message) []chat.Message {
	meanings := make([]meaning, len(conversation))
	for i, m := range conversation {
		meanings[i] = meaningOf(m)
	}
	out := make([]chat.Message, 0, len(conversation))
	var context [sha256.Size]byte
	for len(conversation) > 0 {
		m, text, length := h.whole(conversation, meanings)
		conversation, meanings = conversation[length:], meanings[length:]
		if m.Role == chat.Assistant && m.Tokens == nil {
			best := -1
			for _, s := range h.said[string(text)] {
				if rank := s.rank(m, context); rank >= best {
					best, m.Tokens = rank, s.tokens
				}
			}
		}
		context = extend(context, text)
		out = append(out, m)
	}
	return out
}

// whole is the first message of a conversation with its meaning, and how many of its messages say it. There are
// frameworks that make of a text with calls a message for the text and one for the calls, or one for each call.
func (h *history) whole(conversation []chat.Message, meanings []meaning) (m chat.Message, text []byte, length int) {
	const most = 1 + chat.MaxToolCalls // messages that one can fall into
	m, text, length = conversation[0], meanings[0].text, 1
	joined := slices.Clip(text)
	for i, part := range conversation[:min(most, len(conversation))] {
		if part.Role != chat.Assistant || part.Tokens != nil || i > 0 && part.Content != "" || len(joined) > h.longest {
			break
		}
		if i == 0 {
			continue
		}
		joined = append(joined, meanings[i].calls()...)
		if len(h.said[string(joined)]) > 0 {
			text, length = slices.Clip(joined), i+1
		}
	}
	if length > 1 {
		m.ToolCalls = nil
		for _, part := range conversation[:length] {
			m.ToolCalls = append(m.ToolCalls, part.ToolCalls...)
		}
	}
	return m, text, length
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

// extend is the context after one more message, of which it takes the meaning.
func extend(context [sha256.Size]byte, text []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(context[:])
	h.Write(text)
	return [sha256.Size]byte(h.Sum(nil))
}

// meaning is equal for messages that say the same: ids do not matter, nor how the JSON of arguments is written. What
// several messages mean together is the meaning of the first, followed by the calls of each of the others.
type meaning struct {
	text []byte
	head int // the length of what comes before the calls
}

func meaningOf(m chat.Message) meaning {
	var b []byte
	part := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	part(string(m.Role))
	part(m.Content)
	head := len(b)
	for _, c := range m.ToolCalls {
		part(c.Name)
		part(canonical(c.Arguments))
	}
	return meaning{b, head}
}

func (m meaning) calls() []byte { return m.text[m.head:] }

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
