package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func BenchmarkEncode(b *testing.B) {
	tok := trained(b)
	text := strings.Join(corpus, "\n")
	b.SetBytes(int64(len(text)))
	var ids []int32
	for b.Loop() {
		ids = tok.AppendEncode(ids[:0], text)
	}
}

func BenchmarkEncodeWithoutCache(b *testing.B) {
	tok := trained(b)
	word := strings.Repeat("apples", 100)
	b.SetBytes(int64(len(word)))
	var ids []int32
	for b.Loop() {
		ids = tok.AppendEncode(ids[:0], word)
	}
}

func BenchmarkTrain(b *testing.B) {
	for b.Loop() {
		if _, err := Train(slices.Values(corpus), 400, marks); err != nil {
			b.Fatal(err)
		}
	}
}
