package chat

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPiecesAreTheText(t *testing.T) {
	tm := template(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.Int32Range(0, int32(tm.tok.VocabSize()+9))).Draw(t, "ids")
		pieces := tm.Pieces(ids)
		if len(pieces) != len(ids) || strings.Join(pieces, "") != tm.tok.Decode(ids) {
			t.Fatalf("%q of %v", pieces, ids)
		}
	})
}

func TestCheckPrompt(t *testing.T) {
	tm := template(t)
	if err := tm.CheckPrompt(append(tm.Continue("<|end|>"), tm.end)); err != nil {
		t.Error(err)
	}
	for _, ids := range [][]int32{nil, {-1}, {1, int32(tm.tok.VocabSize())}} {
		if err := tm.CheckPrompt(ids); !errors.Is(err, ErrConversation) {
			t.Errorf("%v: %v", ids, err)
		}
	}
}
