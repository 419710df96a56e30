package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"unicode/utf8"
)

// Limits of a tokenizer. They bound what Load and New allocate.
const (
	MaxVocab      = 1 << 18
	MaxTokenBytes = 1 << 10
)

// ErrTokenizer says that a tokenizer's parts do not make a tokenizer.
var ErrTokenizer = errors.New("bad tokenizer")

// Special is a token that stands for a mark instead of text.
type Special struct {
	ID   int32
	Name string
}

// Tokenizer is immutable and safe for concurrent use.
type Tokenizer struct {
	tokens   [][]byte // bytes of each id; a special's name
	special  []bool
	specials map[string]int32
	bytes    [256]int32 // id of each single byte
	pairs    []pair     // merges in order of rank
	merges   map[pair]merge
	cache    cache
	digest   [32]byte
}

// pair is two adjacent tokens.
type pair struct{ left, right int32 }

// merge is what a pair becomes.
type merge struct{ rank, id int32 }

// build makes a tokenizer out of its parts: tokens[i] is what token i stands for, specials are the ids among them
// that are marks, and pairs are the merges in order of rank. It fails with ErrTokenizer.
func build(tokens [][]byte, specials []Special, pairs []pair) (*Tokenizer, error) {
	if len(tokens) > MaxVocab || len(pairs) > MaxVocab {
		return nil, fmt.Errorf("%w: %d tokens and %d merges, at most %d each", ErrTokenizer, len(tokens), len(pairs), MaxVocab)
	}
	t := &Tokenizer{
		tokens:   tokens,
		special:  make([]bool, len(tokens)),
		specials: make(map[string]int32, len(specials)),
		pairs:    pairs,
		merges:   make(map[pair]merge, len(pairs)),
	}
	for _, s := range specials {
		if s.ID < 0 || int(s.ID) >= len(tokens) || string(tokens[s.ID]) != s.Name || !utf8.ValidString(s.Name) {
			return nil, fmt.Errorf("%w: special token %q has id %d", ErrTokenizer, s.Name, s.ID)
		}
		if _, twice := t.specials[s.Name]; twice || t.special[s.ID] {
			return nil, fmt.Errorf("%w: special token %q is there twice", ErrTokenizer, s.Name)
		}
		t.specials[s.Name] = s.ID
		t.special[s.ID] = true
	}
	ids := make(map[string]int32, len(tokens))
	for i, b := range tokens {
		if len(b) == 0 || len(b) > MaxTokenBytes {
			return nil, fmt.Errorf("%w: token %d has %d bytes, not 1 to %d", ErrTokenizer, i, len(b), MaxTokenBytes)
		}
		if t.special[i] {
			continue
		}
		if j, twice := ids[string(b)]; twice {
			return nil, fmt.Errorf("%w: tokens %d and %d are both %q", ErrTokenizer, j, i, b)
		}
		ids[string(b)] = int32(i)
		if _, mark := t.specials[spell(b)]; mark {
			return nil, fmt.Errorf("%w: token %d is spelled like special token %q", ErrTokenizer, i, spell(b))
		}
	}
	for b := range t.bytes {
		id, ok := ids[string([]byte{byte(b)})]
		if !ok {
			return nil, fmt.Errorf("%w: byte %#02x has no token", ErrTokenizer, b)
		}
		t.bytes[b] = id
	}
	for rank, p := range pairs {
		if !t.plain(p.left) || !t.plain(p.right) {
			return nil, fmt.Errorf("%w: merge %d joins tokens %d and %d, which are not both text", ErrTokenizer, rank, p.left, p.right)
		}
		id, ok := ids[string(tokens[p.left])+string(tokens[p.right])]
		if !ok {
			return nil, fmt.Errorf("%w: merge %d makes %q%q, which is no token", ErrTokenizer, rank, tokens[p.left], tokens[p.right])
		}
		if _, twice := t.merges[p]; twice {
			return nil, fmt.Errorf("%w: merge %d is there twice", ErrTokenizer, rank)
		}
		t.merges[p] = merge{int32(rank), id}
	}
	t.digest = t.sum()
	return t, nil
}

// plain reports whether id is a token that stands for text.
func (t *Tokenizer) plain(id int32) bool {
	return id >= 0 && int(id) < len(t.tokens) && !t.special[id]
}

// VocabSize is the number of tokens, special ones included; ids are 0 to VocabSize-1.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// Special is the id of the special token of that name.
func (t *Tokenizer) Special(name string) (int32, bool) {
	id, ok := t.specials[name]
	return id, ok
}

// IsSpecial reports whether id is a special token's.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.special) && t.special[id]
}

// Specials are the special tokens in order of id.
func (t *Tokenizer) Specials() []Special {
	all := make([]Special, 0, len(t.specials))
	for name, id := range t.specials {
		all = append(all, Special{id, name})
	}
	slices.SortFunc(all, func(a, b Special) int { return int(a.ID - b.ID) })
	return all
}

// Token is the bytes that id stands for, for a special token its name; nil if there is no such id. The caller does
// not change them.
func (t *Tokenizer) Token(id int32) []byte {
	if id < 0 || int(id) >= len(t.tokens) {
		return nil
	}
	return t.tokens[id]
}

// replacement is what an id outside the vocabulary decodes to: U+FFFD.
const replacement = "\uFFFD"

// AppendDecode appends the bytes that ids stand for. Special tokens become their names and ids outside the
// vocabulary U+FFFD. A single token may be a part of a UTF-8 sequence.
func (t *Tokenizer) AppendDecode(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		if b := t.Token(id); b != nil {
			dst = append(dst, b...)
		} else {
			dst = append(dst, replacement...)
		}
	}
	return dst
}

// Decode is AppendDecode to a string: the exact text for ids that Encode made.
func (t *Tokenizer) Decode(ids []int32) string { return string(t.AppendDecode(nil, ids)) }

// digestDomain separates a tokenizer's digest from every other hash.
const digestDomain = "lightswarm/tokenizer/1"

// Digest identifies what the tokenizer does. It is the sha256 of, in this order and without separators (integers
// are 4 bytes little-endian, texts are their length as an integer and then their bytes):
//
//	"lightswarm/tokenizer/1", the byte 0
//	text Pattern
//	integer V, the size of the vocabulary; then for each id the byte 1 if it is special, else 0, and its text
//	integer M, the number of merges; then for each in order of rank the integers left id and right id
func (t *Tokenizer) Digest() [32]byte { return t.digest }

func (t *Tokenizer) sum() [32]byte {
	h := sha256.New()
	h.Write([]byte(digestDomain + "\x00"))
	writeText(h, []byte(Pattern))
	writeInt(h, len(t.tokens))
	for i, b := range t.tokens {
		if t.special[i] {
			h.Write([]byte{1})
		} else {
			h.Write([]byte{0})
		}
		writeText(h, b)
	}
	writeInt(h, len(t.pairs))
	for _, p := range t.pairs {
		writeInt(h, int(p.left))
		writeInt(h, int(p.right))
	}
	return [32]byte(h.Sum(nil))
}

func writeInt(h hash.Hash, n int) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(n))
	h.Write(b[:])
}

func writeText(h hash.Hash, b []byte) {
	writeInt(h, len(b))
	h.Write(b)
}
