package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFileRoundTrip(t *testing.T) {
	tok := trained(t)
	data, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if back.Digest() != tok.Digest() || back.VocabSize() != tok.VocabSize() {
		t.Error("the loaded tokenizer differs")
	}
	if diff := cmp.Diff(tok.Specials(), back.Specials()); diff != "" {
		t.Error(diff)
	}
	again, err := back.MarshalJSON()
	if err != nil || string(again) != string(data) {
		t.Errorf("the loaded tokenizer is written differently (%v)", err)
	}
}

// edit replaces old, which must be there, by new in the test tokenizer's file.
func edit(t *testing.T, edits ...string) []byte {
	t.Helper()
	data, err := trained(t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s := string(data)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(s, edits[i]) {
			t.Fatalf("the file has no %s", edits[i])
		}
		s = strings.Replace(s, edits[i], edits[i+1], 1)
	}
	return []byte(s)
}

func TestLoadReadsOtherSpellings(t *testing.T) {
	tok := trained(t)
	for name, data := range map[string][]byte{
		"merges as text":     edit(t, `["Ġ","a"]`, `"Ġ a"`),
		"marks in one place": edit(t, `"<|pad|>":0,"<|call|>":1,"<|end|>":2,`, ``),
		"post-processor":     edit(t, `"post_processor":null`, `"post_processor":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}`),
		"empty prefix":       edit(t, `"continuing_subword_prefix":null`, `"continuing_subword_prefix":""`),
	} {
		got, err := Load(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got.Digest() != tok.Digest() {
			t.Errorf("%s: another tokenizer", name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":        {nil, "EOF"},
		"no JSON":        {[]byte("x"), "invalid character"},
		"not UTF-8":      {[]byte("{\"\xff\":1}"), "UTF-8"},
		"too large":      {make([]byte, MaxFileBytes+1), "at most"},
		"text after":     {edit(t, "]}}\n", "]}} {}"), "after the JSON"},
		"version":        {edit(t, `"version":"1.0"`, `"version":"2.0"`), "version"},
		"unknown field":  {edit(t, `"version":"1.0"`, `"version":"1.0","more":1`), "more"},
		"normalizer":     {edit(t, `"normalizer":null`, `"normalizer":{"type":"NFC"}`), "normalizer"},
		"truncation":     {edit(t, `"truncation":null`, `"truncation":{}`), "truncation"},
		"padding":        {edit(t, `"padding":null`, `"padding":{}`), "padding"},
		"other pattern":  {edit(t, `\\p{N}| ?`, `\\p{N}{1,3}| ?`), "split pattern"},
		"other model":    {edit(t, `"type":"BPE"`, `"type":"WordPiece"`), "WordPiece"},
		"ignore merges":  {edit(t, `"ignore_merges":false`, `"ignore_merges":true`), "ignore_merges"},
		"byte fallback":  {edit(t, `"byte_fallback":false`, `"byte_fallback":true`), "byte_fallback"},
		"dropout":        {edit(t, `"dropout":null`, `"dropout":0.1`), "dropout"},
		"unknown token":  {edit(t, `"unk_token":null`, `"unk_token":"x"`), "unknown token"},
		"prefix":         {edit(t, `"continuing_subword_prefix":null`, `"continuing_subword_prefix":"##"`), "prefix"},
		"suffix":         {edit(t, `"end_of_word_suffix":null`, `"end_of_word_suffix":"</w>"`), "suffix"},
		"prefix space":   {edit(t, `"add_prefix_space":false`, `"add_prefix_space":true`), "ByteLevel"},
		"decoder":        {edit(t, `"decoder":{"type":"ByteLevel"`, `"decoder":{"type":"Fuse"`), "decoder"},
		"gap in ids":     {edit(t, `"a":100,`, ``), "no token has id 100"},
		"id twice":       {edit(t, `"a":100,`, `"a":101,`), "both have id 101"},
		"huge id":        {edit(t, `"a":100,`, `"a":2000000000,`), "has id"},
		"negative id":    {edit(t, `"a":100,`, `"a":-1,`), "has id"},
		"no byte":        {edit(t, `"a":100,`, `"aaaa":100,`), "which are not both tokens"},
		"bad alphabet":   {edit(t, `"a":100,`, `"日":100,`), "alphabet"},
		"merge of none":  {edit(t, `["Ġ","a"]`, `["Ġ","qqq"]`), "which are not both tokens"},
		"merge to none":  {edit(t, `["Ġ","a"]`, `["q","z"]`), "which is no token"},
		"merge twice":    {edit(t, `["Ġ","a"]`, `["Ġ","a"],["Ġ","a"]`), "twice"},
		"merge of three": {edit(t, `["Ġ","a"]`, `["Ġ","a","b"]`), "merge of 3"},
		"empty special":  {edit(t, `"content":"<|pad|>"`, `"content":""`), "empty"},
		"other special":  {edit(t, `"content":"<|pad|>"`, `"content":"<|pod|>"`), "both have id 0"},
	} {
		_, err := Load(c.data)
		if !errors.Is(err, ErrTokenizer) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q in it", name, err, c.says)
		}
	}
}

func TestDigestCoversEverything(t *testing.T) {
	base := trained(t)
	seen := map[[32]byte]string{base.Digest(): "base"}
	for name, train := range map[string]func() (*Tokenizer, error){
		"vocabulary": func() (*Tokenizer, error) { return Train(slices.Values(corpus), 300, marks) },
		"specials": func() (*Tokenizer, error) {
			return Train(slices.Values(corpus), 400, []string{"<|pad|>", "<|end|>", "<|call|>"})
		},
		"texts": func() (*Tokenizer, error) { return Train(slices.Values(corpus[1:]), 400, marks) },
	} {
		tok, err := train()
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[tok.Digest()]; twice {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[tok.Digest()] = name
	}
	// The order of two merges that do not touch each other changes what some text becomes.
	swapped := slices.Clone(base.pairs)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	tok, err := build(base.tokens, base.Specials(), swapped)
	if err != nil {
		t.Fatal(err)
	}
	if _, twice := seen[tok.Digest()]; twice {
		t.Error("the digest does not cover the order of merges")
	}
}

func TestAlphabet(t *testing.T) {
	for b, want := range map[byte]string{' ': "Ġ", '\n': "Ċ", 'a': "a", 0: "Ā", 0xad: "Ń", 0xff: "ÿ", 0x7f: "ġ"} {
		if got := spell([]byte{b}); got != want {
			t.Errorf("byte %#02x is %q, want %q", b, got, want)
		}
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	if back, ok := unspell(spell(all)); !ok || !slices.Equal(back, all) {
		t.Error("the alphabet does not round-trip")
	}
	if _, ok := unspell("a b"); ok {
		t.Error("a space is in the alphabet")
	}
}
