package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/wire"
)

// ErrPolicy says that parts do not make a policy, and which one is wrong.
var ErrPolicy = errors.New("bad policy")

// MaxBytes bounds a policy's weights: a Snapshot holds them in memory.
const MaxBytes int64 = 4 << 30

// Tensor is a named array of weights.
type Tensor = safetensors.Tensor

// Snapshot is a policy in memory. New makes it; nobody changes it afterwards, so it is safe for concurrent use.
type Snapshot struct {
	// ConfigJSON is the model's config.json in Hugging Face's terms.
	ConfigJSON []byte
	Tokenizer  *tokenizer.Tokenizer
	Template   chat.TemplateName
	Generation GenerationConfig
	// Tensors are the weights, BF16 or F32, in order of name, with Hugging Face's names.
	Tensors []Tensor
	// State is the digest of Tensors.
	State Digest

	vocab int // the config's vocab_size
}

// New checks the parts of a policy, puts tensors and stop tokens in order and computes the state digest. The
// snapshot keeps the slices' contents. It fails with ErrPolicy when a part is over a limit of package wire, when the
// template does not work with the tokenizer, or when the model has no room for the tokenizer's vocabulary.
func New(config []byte, tok *tokenizer.Tokenizer, template chat.TemplateName, generation GenerationConfig, tensors []Tensor) (*Snapshot, error) {
	vocab, err := checkConfig(config, tok.VocabSize())
	if err != nil {
		return nil, err
	}
	if _, err := chat.NewTemplate(template, tok); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	generation, err = generation.canonical(tok.VocabSize())
	if err != nil {
		return nil, err
	}
	s := &Snapshot{ConfigJSON: config, Tokenizer: tok, Template: template, Generation: generation, vocab: vocab}
	return s.WithTensors(tensors)
}

// WithTensors is the same policy with other weights: what a train step makes. It fails with ErrPolicy.
func (s *Snapshot) WithTensors(tensors []Tensor) (*Snapshot, error) {
	sorted := slices.SortedFunc(slices.Values(tensors), func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	if len(sorted) == 0 || len(sorted) > wire.MaxTensors {
		return nil, fmt.Errorf("%w: %d tensors, not 1 to %d", ErrPolicy, len(sorted), wire.MaxTensors)
	}
	var total int64
	for i, t := range sorted {
		if err := t.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
		}
		switch {
		case i > 0 && t.Name == sorted[i-1].Name:
			return nil, fmt.Errorf("%w: two tensors are named %q", ErrPolicy, t.Name)
		case len(t.Name) > wire.MaxNameBytes:
			return nil, fmt.Errorf("%w: tensor name %q has %d bytes, at most %d", ErrPolicy, t.Name, len(t.Name), wire.MaxNameBytes)
		case t.DType != safetensors.BF16 && t.DType != safetensors.F32:
			return nil, fmt.Errorf("%w: tensor %q is %v, not BF16 or F32", ErrPolicy, t.Name, t.DType)
		case len(t.Data) == 0:
			return nil, fmt.Errorf("%w: tensor %q has no elements", ErrPolicy, t.Name)
		}
		if total += int64(len(t.Data)); total > MaxBytes {
			return nil, fmt.Errorf("%w: weights are over %d bytes", ErrPolicy, MaxBytes)
		}
	}
	next := *s
	next.Tensors = sorted
	next.State = stateDigest(tensorRefs(sorted))
	return &next, nil
}

// Digest identifies the policy; see the package comment for its definition.
func (s *Snapshot) Digest() Digest {
	h := newHash("lightswarm/policy/1")
	h.text(s.ConfigJSON)
	tok := s.Tokenizer.Digest()
	h.Write(tok[:])
	h.text([]byte(s.Template))
	h.integer(uint64(len(s.Generation.Stop)))
	for _, id := range s.Generation.Stop {
		h.integer(uint64(id))
	}
	h.Write(s.State[:])
	return h.digest()
}

// VocabSize is the number of the model's token ids: at least the tokenizer's. The ids that the tokenizer lacks pad the
// model's matrices. They have a probability like any other, so a policy may sample one; they stand for no text.
func (s *Snapshot) VocabSize() int { return s.vocab }

// Vocabulary is what the policy's tokens write, for grammars. It takes a moment: callers keep it.
func (s *Snapshot) Vocabulary() *grammar.Vocabulary {
	template, err := chat.NewTemplate(s.Template, s.Tokenizer)
	if err != nil {
		panic("policy: Vocabulary: a snapshot that New did not make: " + err.Error())
	}
	call, args, end := template.Marks()
	return grammar.NewVocabulary(s.Tokenizer, s.VocabSize(), grammar.Marks{Call: call, Args: args, End: end})
}

// Bytes is the size of the weights.
func (s *Snapshot) Bytes() int64 {
	var n int64
	for _, t := range s.Tensors {
		n += int64(len(t.Data))
	}
	return n
}

// checkConfig checks what every model's config must say, and returns its vocab_size; the rest is the engine's to judge.
func checkConfig(config []byte, tokens int) (vocab int, err error) {
	if len(config) > wire.MaxConfigBytes {
		return 0, fmt.Errorf("%w: config.json has %d bytes, at most %d", ErrPolicy, len(config), wire.MaxConfigBytes)
	}
	if !utf8.Valid(config) {
		return 0, fmt.Errorf("%w: config.json is not UTF-8", ErrPolicy)
	}
	var c struct {
		VocabSize int `json:"vocab_size"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return 0, fmt.Errorf("%w: config.json: %w", ErrPolicy, err)
	}
	if c.VocabSize < tokens {
		return 0, fmt.Errorf("%w: config.json has a vocab_size of %d, the tokenizer has %d tokens", ErrPolicy, c.VocabSize, tokens)
	}
	return c.VocabSize, nil
}

// tensorRefs describes tensors as a manifest does, in the same order.
func tensorRefs(tensors []Tensor) []wire.TensorRef {
	refs := make([]wire.TensorRef, len(tensors))
	for i, t := range tensors {
		shape := make([]uint64, len(t.Shape))
		for k, d := range t.Shape {
			shape[k] = uint64(d)
		}
		refs[i] = wire.TensorRef{Name: t.Name, DType: t.DType.String(), Shape: shape, Digest: sha256.Sum256(t.Data)}
	}
	return refs
}

// stateDigest is the digest of the weights that refs describe; see the package comment for its definition.
func stateDigest(refs []wire.TensorRef) Digest {
	sorted := slices.SortedFunc(slices.Values(refs), func(a, b wire.TensorRef) int { return cmp.Compare(a.Name, b.Name) })
	h := newHash("lightswarm/state/1")
	h.integer(uint64(len(sorted)))
	for _, r := range sorted {
		h.text([]byte(r.Name))
		h.text([]byte(r.DType))
		h.integer(uint64(len(r.Shape)))
		for _, d := range r.Shape {
			h.integer(d)
		}
		h.Write(r.Digest[:])
	}
	return h.digest()
}

// hasher writes what the package comment calls integers and texts.
type hasher struct{ hash.Hash }

func newHash(domain string) hasher {
	h := hasher{sha256.New()}
	h.Write([]byte(domain + "\x00"))
	return h
}

func (h hasher) integer(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

func (h hasher) text(b []byte) {
	h.integer(uint64(len(b)))
	h.Write(b)
}

func (h hasher) digest() Digest { return Digest(h.Sum(nil)) }
