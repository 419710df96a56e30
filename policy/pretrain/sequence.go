package pretrain

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// encode is a conversation as one training sequence in which the assistant's tokens are trained. Every prompt of the
// conversation extends the one before and its completion, so one pass trains all its calls.
func encode(t *chat.Template, messages []chat.Message, tools []chat.Tool) (transformer.Sequence, error) {
	var s transformer.Sequence
	for i, m := range messages {
		if m.Role != chat.Assistant {
			continue
		}
		prompt, err := t.Render(messages[:i], tools)
		if err != nil {
			return s, err
		}
		if len(prompt) < len(s.Tokens) || !slices.Equal(prompt[:len(s.Tokens)], s.Tokens) {
			return s, fmt.Errorf("the prompt of message %d does not extend the one before", i)
		}
		completion := t.RenderCompletion(m)
		s.Tokens = append(prompt, completion...)
		for k := range completion {
			s.Train = append(s.Train, int32(len(prompt)+k))
		}
	}
	if len(s.Train) == 0 {
		return s, errors.New("the conversation has no assistant message")
	}
	return s, nil
}

// texts yields every text of the first n conversations, as the template encodes them, until one cannot be rendered;
// err then says why. The template's tokenizer needs no merges: the texts lie between the special tokens.
func texts(tok *tokenizer.Tokenizer, conversations iter.Seq[[]chat.Message], tools []chat.Tool, n int, err *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		template, failed := chat.NewTemplate(chat.Lightswarm1, tok)
		if failed != nil {
			*err = failed
			return
		}
		shown := 0
		for messages := range conversations {
			if shown == n {
				return
			}
			shown++
			s, failed := encode(template, messages, tools)
			if failed != nil {
				*err = fmt.Errorf("demonstration %d: %w", shown-1, failed)
				return
			}
			from := 0
			for at, id := range s.Tokens {
				if tok.IsSpecial(id) {
					if from < at && !yield(tok.Decode(s.Tokens[from:at])) {
						return
					}
					from = at + 1
				}
			}
		}
	}
}
