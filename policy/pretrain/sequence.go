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

// encode is a conversation as one training sequence, in which what the policy says is trained if it is taught, and the
// length of the longest completion. Every prompt of the conversation extends the one before and its completion, so one pass
// trains all its calls.
func encode(t *chat.Template, c Conversation) (s transformer.Sequence, longest int, err error) {
	for _, i := range c.Said {
		if i < 0 || i >= len(c.Messages) || c.Messages[i].Role != chat.Assistant {
			return s, 0, fmt.Errorf("message %d is none of the assistant's", i)
		}
		prompt, err := t.Render(c.Messages[:i], c.Tools)
		if err != nil {
			return s, 0, err
		}
		if len(prompt) < len(s.Tokens) || !slices.Equal(prompt[:len(s.Tokens)], s.Tokens) {
			return s, 0, fmt.Errorf("the prompt of message %d does not extend the one before", i)
		}
		completion := t.RenderCompletion(c.Messages[i])
		longest = max(longest, len(completion))
		s.Tokens = append(prompt, completion...)
		for k := range completion {
			if !c.Untaught {
				s.Train = append(s.Train, int32(len(prompt)+k))
			}
		}
	}
	if len(s.Tokens) == 0 {
		return s, 0, errors.New("there is nothing in it that the policy says")
	}
	return s, longest, nil
}

// sequences encodes a demonstration that a rollout could do.
func (r *run) sequences(d Demonstration) (shown []transformer.Sequence, err error) {
	l := TooLongError{Context: r.Model.Context, MaxCompletion: r.MaxCompletion}
	if shown, err = l.add(r.template, d); err != nil {
		return nil, err
	}
	if l.Demonstrations > 0 {
		return nil, &l
	}
	return shown, nil
}

// add counts a demonstration, and encodes it.
func (e *TooLongError) add(t *chat.Template, d Demonstration) (shown []transformer.Sequence, err error) {
	if len(d) == 0 {
		return nil, errors.New("it has no conversation")
	}
	over := false
	for i, c := range d {
		s, longest, err := encode(t, c)
		if err != nil {
			return nil, fmt.Errorf("conversation %d: %w", i, err)
		}
		if len(s.Tokens) > e.Tokens {
			e.Tokens, e.Role = len(s.Tokens), c.Role
		}
		if longest > e.Completion {
			e.Completion, e.CompletionRole = longest, c.Role
		}
		over = over || len(s.Tokens) > e.Context || e.MaxCompletion > 0 && longest > e.MaxCompletion
		shown = append(shown, s)
	}
	e.Seen++
	if over {
		e.Demonstrations++
	}
	return shown, nil
}

// checkLengths looks for demonstrations that are too long, so that all that is to be said of them is said at once.
func (r *run) checkLengths() error {
	for _, all := range []struct {
		name  string
		shown iter.Seq2[Demonstration, error]
		n     int
	}{{"held-out demonstration", r.Right, r.HeldOut}, {"demonstration", r.Demonstrations, r.TokenizerTexts}} {
		l := TooLongError{Context: r.Model.Context, MaxCompletion: r.MaxCompletion}
		for d, err := range all.shown {
			if l.Seen == all.n {
				break
			}
			if err == nil {
				_, err = l.add(r.template, d)
			}
			if err != nil {
				return fmt.Errorf("%s %d: %w", all.name, l.Seen, err)
			}
		}
		if l.Demonstrations > 0 {
			return &l
		}
	}
	return nil
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
			if failed != nil {
				*err = fmt.Errorf("demonstration %d: %w", shown, failed)
				return
			}
			for i, c := range d {
				s, _, failed := encode(template, c)
				if failed != nil {
					*err = fmt.Errorf("demonstration %d: conversation %d: %w", shown, i, failed)
					return
				}
				if !eachText(tok, s.Tokens, yield) {
					return
				}
			}
			shown++
		}
	}
}

// eachText yields the texts between special tokens, until it is told to stop.
func eachText(tok *tokenizer.Tokenizer, tokens []int32, yield func(string) bool) bool {
	from := 0
	for at, id := range tokens {
		if tok.IsSpecial(id) {
			if from < at && !yield(tok.Decode(tokens[from:at])) {
				return false
			}
			from = at + 1
		}
	}
	return true
}
