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

// encode is a conversation as one training sequence in which the assistant's tokens are trained, and the length of its
// longest completion. Every prompt of the conversation extends the one before and its completion, so one pass trains all
// its calls.
func encode(t *chat.Template, d Demonstration) (s transformer.Sequence, longest int, err error) {
	for i, m := range d.Messages {
		if m.Role != chat.Assistant {
			continue
		}
		prompt, err := t.Render(d.Messages[:i], d.Tools)
		if err != nil {
			return s, 0, err
		}
		if len(prompt) < len(s.Tokens) || !slices.Equal(prompt[:len(s.Tokens)], s.Tokens) {
			return s, 0, fmt.Errorf("the prompt of message %d does not extend the one before", i)
		}
		completion := t.RenderCompletion(m)
		longest = max(longest, len(completion))
		s.Tokens = append(prompt, completion...)
		for k := range completion {
			s.Train = append(s.Train, int32(len(prompt)+k))
		}
	}
	if len(s.Train) == 0 {
		return s, 0, errors.New("the conversation has no assistant message")
	}
	return s, longest, nil
}

// texts yields every text of the first n demonstrations, as the template encodes them, until one cannot be rendered;
// err then says why. The template's tokenizer needs no merges: the texts lie between the special tokens.
func texts(tok *tokenizer.Tokenizer, demonstrations iter.Seq2[Demonstration, error], n int, err *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		template, failed := chat.NewTemplate(chat.Lightswarm1, tok)
		if failed != nil {
			*err = failed
			return
		}
		shown := 0
		for d, failed := range demonstrations {
			if shown == n {
				return
			}
			shown++
			var s transformer.Sequence
			if failed == nil {
				s, _, failed = encode(template, d)
			}
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
