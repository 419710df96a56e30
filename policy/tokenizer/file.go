package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxFileBytes bounds the JSON that Load reads.
const MaxFileBytes = 16 << 20

// file is tokenizer.json.
type file struct {
	Version       string       `json:"version"`
	Truncation    any          `json:"truncation"`
	Padding       any          `json:"padding"`
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    any          `json:"normalizer"`
	PreTokenizer  *stage       `json:"pre_tokenizer"`
	PostProcessor *stage       `json:"post_processor"`
	Decoder       *stage       `json:"decoder"`
	Model         model        `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// stage is a pre-tokenizer, post-processor or decoder.
type stage struct {
	Type           string   `json:"type"`
	PreTokenizers  []stage  `json:"pretokenizers,omitempty"`
	Pattern        *pattern `json:"pattern,omitempty"`
	Behavior       string   `json:"behavior,omitempty"`
	Invert         *bool    `json:"invert,omitempty"`
	AddPrefixSpace *bool    `json:"add_prefix_space,omitempty"`
	TrimOffsets    *bool    `json:"trim_offsets,omitempty"`
	UseRegex       *bool    `json:"use_regex,omitempty"`
}

type pattern struct {
	Regex string `json:"Regex"`
}

type model struct {
	Type                    string     `json:"type"`
	Dropout                 *float64   `json:"dropout"`
	UnkToken                *string    `json:"unk_token"`
	ContinuingSubwordPrefix *string    `json:"continuing_subword_prefix"`
	EndOfWordSuffix         *string    `json:"end_of_word_suffix"`
	FuseUnk                 bool       `json:"fuse_unk"`
	ByteFallback            bool       `json:"byte_fallback"`
	IgnoreMerges            bool       `json:"ignore_merges"`
	Vocab                   vocabulary `json:"vocab"`
	Merges                  []joint    `json:"merges"`
}

// vocabulary is the tokens in order of id; in JSON a map from token to id, which this keeps in order of id.
type vocabulary []string

// MarshalJSON writes the map.
func (v vocabulary) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for id, token := range v {
		sep := byte(',')
		if id == 0 {
			sep = '{'
		}
		b.WriteByte(sep)
		b.Write(quote(token))
		fmt.Fprintf(&b, ":%d", id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads the map. Ids that have no token become "", to be filled by added tokens.
func (v *vocabulary) UnmarshalJSON(data []byte) error {
	var ids map[string]int32
	if err := json.Unmarshal(data, &ids); err != nil {
		return err
	}
	if len(ids) > MaxVocab {
		return fmt.Errorf("%d tokens, at most %d", len(ids), MaxVocab)
	}
	for token, id := range ids {
		if err := v.set(id, token); err != nil {
			return err
		}
	}
	return nil
}

// set gives a token its id.
func (v *vocabulary) set(id int32, token string) error {
	if id < 0 || id >= MaxVocab {
		return fmt.Errorf("token %q has id %d, not 0 to %d", clip(token), id, MaxVocab-1)
	}
	for int(id) >= len(*v) {
		*v = append(*v, "")
	}
	if old := (*v)[id]; old != "" && old != token {
		return fmt.Errorf("tokens %q and %q both have id %d", clip(old), clip(token), id)
	}
	(*v)[id] = token
	return nil
}

// joint is a merge: in JSON two tokens in a list or, in older files, in one text with a space between.
type joint [2]string

// UnmarshalJSON reads either form.
func (j *joint) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		left, right, ok := strings.Cut(s, " ")
		if !ok {
			return fmt.Errorf("merge %q is not two tokens", clip(s))
		}
		*j = joint{left, right}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("merge of %d tokens", len(list))
	}
	*j = joint(list)
	return nil
}

// MarshalJSON writes the tokenizer as tokenizer.json. The same tokenizer gives the same bytes.
func (t *Tokenizer) MarshalJSON() ([]byte, error) {
	no := false
	f := file{
		Version: "1.0",
		PreTokenizer: &stage{Type: "Sequence", PreTokenizers: []stage{
			{Type: "Split", Pattern: &pattern{Pattern}, Behavior: "Isolated", Invert: &no},
			{Type: "ByteLevel", AddPrefixSpace: &no, TrimOffsets: &no, UseRegex: &no},
		}},
		Decoder:     &stage{Type: "ByteLevel", AddPrefixSpace: &no, TrimOffsets: &no, UseRegex: &no},
		AddedTokens: []addedToken{},
		Model:       model{Type: "BPE", Merges: []joint{}},
	}
	for _, s := range t.Specials() {
		f.AddedTokens = append(f.AddedTokens, addedToken{ID: s.ID, Content: s.Name, Special: true})
	}
	for i, b := range t.tokens {
		if t.special[i] {
			f.Model.Vocab = append(f.Model.Vocab, string(b))
		} else {
			f.Model.Vocab = append(f.Model.Vocab, spell(b))
		}
	}
	for _, p := range t.pairs {
		f.Model.Merges = append(f.Model.Merges, joint{spell(t.tokens[p.left]), spell(t.tokens[p.right])})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("encode tokenizer: %w", err)
	}
	return b.Bytes(), nil
}

// Load reads tokenizer.json. It fails with ErrTokenizer for anything that would make this package encode
// differently from the program that wrote the file, and names it.
func Load(data []byte) (*Tokenizer, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%w: file of %d bytes, at most %d", ErrTokenizer, len(data), MaxFileBytes)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: file is not UTF-8", ErrTokenizer)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var f file
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrTokenizer, err)
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return nil, fmt.Errorf("%w: text after the JSON", ErrTokenizer)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f.build()
}

// check refuses what this package does not do.
func (f *file) check() error {
	unsupported := func(what string) error { return fmt.Errorf("%w: %s is not supported", ErrTokenizer, what) }
	m := f.Model
	switch {
	case f.Version != "1.0":
		return unsupported(fmt.Sprintf("version %q", clip(f.Version)))
	case f.Truncation != nil:
		return unsupported("truncation")
	case f.Padding != nil:
		return unsupported("padding")
	case f.Normalizer != nil:
		return unsupported("a normalizer")
	case f.PostProcessor != nil && f.PostProcessor.Type != "ByteLevel":
		return unsupported(fmt.Sprintf("post-processor %q", clip(f.PostProcessor.Type)))
	case f.Decoder == nil || f.Decoder.Type != "ByteLevel":
		return unsupported("a decoder other than ByteLevel")
	case m.Type != "BPE":
		return unsupported(fmt.Sprintf("model %q", clip(m.Type)))
	case m.Dropout != nil && *m.Dropout != 0:
		return unsupported("dropout")
	case m.UnkToken != nil && *m.UnkToken != "":
		return unsupported("an unknown token")
	case m.ContinuingSubwordPrefix != nil && *m.ContinuingSubwordPrefix != "":
		return unsupported("a continuing subword prefix")
	case m.EndOfWordSuffix != nil && *m.EndOfWordSuffix != "":
		return unsupported("an end of word suffix")
	case m.IgnoreMerges:
		return unsupported("ignore_merges")
	case m.ByteFallback:
		return unsupported("byte_fallback (tokens <0x00>…) instead of a byte-level alphabet")
	}
	p := f.PreTokenizer
	if p == nil || p.Type != "Sequence" || len(p.PreTokenizers) != 2 {
		return unsupported("a pre-tokenizer other than Split and ByteLevel")
	}
	cut, level := p.PreTokenizers[0], p.PreTokenizers[1]
	switch {
	case cut.Type != "Split" || cut.Pattern == nil || cut.Behavior != "Isolated" || set(cut.Invert, false):
		return unsupported("a first pre-tokenizer other than an isolating Split")
	case cut.Pattern.Regex != Pattern:
		return unsupported(fmt.Sprintf("the split pattern %q", clip(cut.Pattern.Regex)))
	case level.Type != "ByteLevel" || set(level.AddPrefixSpace, true) || set(level.UseRegex, true):
		return unsupported("a second pre-tokenizer other than a plain ByteLevel")
	}
	return nil
}

// set is the value of an optional switch.
func set(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

// build turns a checked file into a tokenizer.
func (f *file) build() (*Tokenizer, error) {
	all := f.Model.Vocab
	if len(f.AddedTokens) > MaxVocab || len(f.Model.Merges) > MaxVocab {
		return nil, fmt.Errorf("%w: %d added tokens and %d merges, at most %d each", ErrTokenizer, len(f.AddedTokens), len(f.Model.Merges), MaxVocab)
	}
	var specials []Special
	for _, a := range f.AddedTokens {
		if a.Content == "" {
			return nil, fmt.Errorf("%w: an added token is empty", ErrTokenizer)
		}
		if err := all.set(a.ID, a.Content); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrTokenizer, err)
		}
		specials = append(specials, Special{a.ID, a.Content})
	}
	isSpecial := make(map[int32]bool, len(specials))
	for _, s := range specials {
		isSpecial[s.ID] = true
	}
	tokens := make([][]byte, len(all))
	ids := make(map[string]int32, len(all))
	for id, token := range all {
		if token == "" {
			return nil, fmt.Errorf("%w: no token has id %d", ErrTokenizer, id)
		}
		if isSpecial[int32(id)] {
			tokens[id] = []byte(token)
			continue
		}
		b, ok := unspell(token)
		if !ok {
			return nil, fmt.Errorf("%w: token %q is not in the byte-level alphabet", ErrTokenizer, clip(token))
		}
		tokens[id] = b
		ids[token] = int32(id)
	}
	pairs := make([]pair, len(f.Model.Merges))
	for rank, j := range f.Model.Merges {
		left, ok := ids[j[0]]
		right, ok2 := ids[j[1]]
		if !ok || !ok2 {
			return nil, fmt.Errorf("%w: merge %d joins %q and %q, which are not both tokens", ErrTokenizer, rank, clip(j[0]), clip(j[1]))
		}
		pairs[rank] = pair{left, right}
	}
	return build(tokens, specials, pairs)
}

// quote is s as JSON, without HTML escapes.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// clip shortens text from outside before it enters an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
