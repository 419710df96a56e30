package chat

import "fmt"

// Continue is the prompt that asks for what follows a text: its ids alone, without any mark.
func (t *Template) Continue(text string) []int32 { return t.tok.Encode(text) }

// CheckPrompt fails with ErrConversation unless ids can be a prompt: at least one, all of them the tokenizer's.
func (t *Template) CheckPrompt(ids []int32) error {
	if len(ids) == 0 {
		return fmt.Errorf("%w: the prompt is empty", ErrConversation)
	}
	for i, id := range ids {
		if id < 0 || int(id) >= t.tok.VocabSize() {
			return fmt.Errorf("%w: token %d of the prompt is %d, the vocabulary has %d", ErrConversation, i, id, t.tok.VocabSize())
		}
	}
	return nil
}

// Pieces are the bytes that each id stands for, special tokens spelled out. One alone need not be UTF-8.
func (t *Template) Pieces(ids []int32) []string {
	pieces := make([]string, len(ids))
	for i := range ids {
		pieces[i] = t.tok.Decode(ids[i : i+1])
	}
	return pieces
}
