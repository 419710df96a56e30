package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/wire"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

const tinyConfig = `{"architectures":["LlamaForCausalLM"],"hidden_size":4,"vocab_size":280}`

// tinyParts are those of a small policy whose every byte is fixed.
func tinyParts(t testing.TB) (*tokenizer.Tokenizer, GenerationConfig, []Tensor) {
	t.Helper()
	tok, err := tokenizer.Train(slices.Values([]string{"What is 1 plus 2? What is 3 plus 4?"}), 275, chat.Specials())
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, 24)
	for i := range values {
		values[i] = float32(i-12) / 7
	}
	return tok, GenerationConfig{Stop: []int32{8}}, []Tensor{
		safetensors.FromFloat32s("model.norm.weight", safetensors.F32, []int{4}, values[:4]),
		safetensors.FromFloat32s("model.embed_tokens.weight", safetensors.BF16, []int{6, 4}, values),
		safetensors.FromFloat32s("scale", safetensors.F32, nil, values[:1]),
	}
}

func tiny(t testing.TB) *Snapshot {
	t.Helper()
	tok, generation, tensors := tinyParts(t)
	s, err := New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// large is tiny with more weights than one block holds.
func large(t testing.TB) *Snapshot {
	t.Helper()
	data := make([]byte, 3*wire.MaxBlockBytes)
	for i := range data {
		data[i] = byte(i*i>>8 + i>>20)
	}
	s, err := tiny(t).WithTensors([]Tensor{{Name: "w", DType: safetensors.BF16, Shape: []int{len(data) / 2}, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGolden pins the digests, and with them every policy that is in use.
func TestGolden(t *testing.T) {
	s := tiny(t)
	manifest, _, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	tok := s.Tokenizer.Digest()
	got := fmt.Sprintf("tokenizer %x\nstate %s\npolicy %s\nmanifest %s\n", tok, s.State, s.Digest(), manifest)
	const golden = "testdata/tiny.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("digests changed, and every network with them: %s", diff)
	}
}

// TestDigestsAreAsDocumented computes the digests again from the words of the package comment.
func TestDigestsAreAsDocumented(t *testing.T) {
	s := tiny(t)
	integer := func(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
	text := func(s string) []byte { return append(integer(len(s)), s...) }
	b := append([]byte("lightswarm/state/1\x00"), integer(3)...)
	for _, name := range []string{"model.embed_tokens.weight", "model.norm.weight", "scale"} {
		i := slices.IndexFunc(s.Tensors, func(t Tensor) bool { return t.Name == name })
		tensor := s.Tensors[i]
		b = slices.Concat(b, text(name), text(tensor.DType.String()), integer(len(tensor.Shape)))
		for _, d := range tensor.Shape {
			b = append(b, integer(d)...)
		}
		sum := sha256.Sum256(tensor.Data)
		b = append(b, sum[:]...)
	}
	state := sha256.Sum256(b)
	if state != s.State {
		t.Errorf("state digest is %s, documented is %x", s.State, state)
	}
	tok := s.Tokenizer.Digest()
	b = slices.Concat([]byte("lightswarm/policy/1\x00"), text(tinyConfig), tok[:], text("lightswarm-1"), integer(1), integer(8), state[:])
	if want := sha256.Sum256(b); want != s.Digest() {
		t.Errorf("policy digest is %s, documented is %x", s.Digest(), want)
	}
}

func TestDigestCoversEveryPart(t *testing.T) {
	tok, generation, tensors := tinyParts(t)
	other, err := tokenizer.Train(slices.Values([]string{"abab"}), 275, chat.Specials())
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*Tensor)) []Tensor {
		c := slices.Clone(tensors)
		c[0].Shape, c[0].Data = slices.Clone(c[0].Shape), slices.Clone(c[0].Data)
		change(&c[0])
		return c
	}
	make1 := func(config string, tok *tokenizer.Tokenizer, g GenerationConfig, tensors []Tensor) Digest {
		s, err := New([]byte(config), tok, chat.Lightswarm1, g, tensors)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	seen := map[Digest]string{}
	for name, d := range map[string]Digest{
		"base":       make1(tinyConfig, tok, generation, tensors),
		"config":     make1(tinyConfig+" ", tok, generation, tensors),
		"tokenizer":  make1(tinyConfig, other, generation, tensors),
		"generation": make1(tinyConfig, tok, GenerationConfig{Stop: []int32{7, 8}}, tensors),
		"name":       make1(tinyConfig, tok, generation, changed(func(t *Tensor) { t.Name = "model.norm.weighs" })),
		"shape":      make1(tinyConfig, tok, generation, changed(func(t *Tensor) { t.Shape = []int{2, 2} })),
		"dtype":      make1(tinyConfig, tok, generation, changed(func(t *Tensor) { t.DType, t.Shape = safetensors.BF16, []int{8} })),
		"one bit":    make1(tinyConfig, tok, generation, changed(func(t *Tensor) { t.Data[3] ^= 1 })),
		"one less":   make1(tinyConfig, tok, generation, tensors[1:]),
	} {
		if twin, twice := seen[d]; twice {
			t.Errorf("%s and %s have one digest", name, twin)
		}
		seen[d] = name
	}
	reversed := slices.Clone(tensors)
	slices.Reverse(reversed)
	if seen[make1(tinyConfig, tok, GenerationConfig{Stop: []int32{8, 8}}, reversed)] != "base" {
		t.Error("the digest depends on the order in which tensors or stop tokens were given")
	}
}

func TestVocabSizeIsTheModels(t *testing.T) {
	s := tiny(t)
	if s.VocabSize() != 280 || s.Tokenizer.VocabSize() >= 280 || large(t).VocabSize() != 280 {
		t.Errorf("the model has %d ids, the tokenizer %d, other weights %d", s.VocabSize(), s.Tokenizer.VocabSize(), large(t).VocabSize())
	}
}

func TestNewRefuses(t *testing.T) {
	tok, generation, tensors := tinyParts(t)
	bare, err := tokenizer.Train(slices.Values([]string{}), 256, nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(more ...Tensor) []Tensor { return append(slices.Clone(tensors), more...) }
	for name, make1 := range map[string]func() (*Snapshot, error){
		"no config":     func() (*Snapshot, error) { return New(nil, tok, chat.Lightswarm1, generation, tensors) },
		"config a list": func() (*Snapshot, error) { return New([]byte("[]"), tok, chat.Lightswarm1, generation, tensors) },
		"huge config": func() (*Snapshot, error) {
			return New([]byte(tinyConfig+strings.Repeat(" ", wire.MaxConfigBytes)), tok, chat.Lightswarm1, generation, tensors)
		},
		"small vocabulary": func() (*Snapshot, error) {
			return New([]byte(`{"vocab_size":200}`), tok, chat.Lightswarm1, generation, tensors)
		},
		"template": func() (*Snapshot, error) { return New([]byte(tinyConfig), tok, "chatml", generation, tensors) },
		"no marks": func() (*Snapshot, error) { return New([]byte(tinyConfig), bare, chat.Lightswarm1, generation, tensors) },
		"no stop": func() (*Snapshot, error) {
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, GenerationConfig{}, tensors)
		},
		"stop outside": func() (*Snapshot, error) {
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, GenerationConfig{Stop: []int32{300}}, tensors)
		},
		"no tensors": func() (*Snapshot, error) { return New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, nil) },
		"twice": func() (*Snapshot, error) {
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, with(tensors[0]))
		},
		"F16": func() (*Snapshot, error) {
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, with(Tensor{Name: "h", DType: safetensors.F16, Data: []byte{0, 0}}))
		},
		"long name": func() (*Snapshot, error) {
			name := strings.Repeat("n", wire.MaxNameBytes+1)
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, with(Tensor{Name: name, DType: safetensors.BF16, Data: []byte{0, 0}}))
		},
		"empty tensor": func() (*Snapshot, error) {
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, with(Tensor{Name: "e", DType: safetensors.F32, Shape: []int{0}}))
		},
		"wrong size": func() (*Snapshot, error) {
			return New([]byte(tinyConfig), tok, chat.Lightswarm1, generation, with(Tensor{Name: "e", DType: safetensors.F32}))
		},
	} {
		if _, err := make1(); !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDigestText(t *testing.T) {
	d := tiny(t).Digest()
	back, err := ParseDigest(d.String())
	if err != nil || back != d {
		t.Errorf("%s became %s (%v)", d, back, err)
	}
	j, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	back = Digest{}
	if err := json.Unmarshal(j, &back); err != nil || back != d || back.IsZero() {
		t.Errorf("%s became %s (%v)", j, back, err)
	}
	if d.Short() != d.String()[:12] {
		t.Errorf("short form is %s", d.Short())
	}
	for _, s := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("x", 64), strings.Repeat("0", 66)} {
		if _, err := ParseDigest(s); !errors.Is(err, ErrDigest) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// store is blocks by CID.
type store map[wire.CID][]byte

func (s store) get(_ context.Context, c wire.CID) ([]byte, error) {
	if b, ok := s[c]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("no block %s", c)
}

// put adds a block and returns its CID.
func (s store) put(b []byte) wire.CID {
	c := wire.SumCID(b)
	s[c] = b
	return c
}

// encoded is a snapshot's blocks.
func encoded(t testing.TB, s *Snapshot) (wire.CID, store) {
	t.Helper()
	manifest, blocks, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	all := store{}
	for _, b := range blocks {
		if len(b.Data) > wire.MaxBlockBytes {
			t.Fatalf("block of %d bytes", len(b.Data))
		}
		if all.put(b.Data) != b.CID {
			t.Fatal("a block has another's CID")
		}
	}
	return manifest, all
}

// same fails the test if two policies differ in anything.
func same(t *testing.T, want, got *Snapshot) {
	t.Helper()
	if got.Digest() != want.Digest() || got.State != want.State || got.Bytes() != want.Bytes() {
		t.Errorf("digest %s of state %s, want %s of %s", got.Digest(), got.State, want.Digest(), want.State)
	}
	equal := cmp.Comparer(func(a, b Tensor) bool {
		return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && bytes.Equal(a.Data, b.Data)
	})
	if diff := cmp.Diff(want.Tensors, got.Tensors, equal); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(want.ConfigJSON, got.ConfigJSON) || want.Template != got.Template || !slices.Equal(want.Generation.Stop, got.Generation.Stop) {
		t.Error("config, template or generation config changed")
	}
}

func TestBlocksRoundTrip(t *testing.T) {
	for name, s := range map[string]*Snapshot{"tiny": tiny(t), "large": large(t)} {
		manifest, blocks := encoded(t, s)
		got, err := Assemble(t.Context(), manifest, blocks.get)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, s, got)
		if again, _ := encoded(t, got); again != manifest {
			t.Errorf("%s: the assembled policy has another manifest", name)
		}
	}
	if _, blocks := encoded(t, large(t)); len(blocks) != 2+4 {
		t.Errorf("large policy has %d blocks", len(blocks))
	}
}

func TestAssembleRefuses(t *testing.T) {
	s := tiny(t)
	errGone := errors.New("gone")
	// Each case changes the manifest, or what is behind it.
	for name, c := range map[string]struct {
		change func(m *wire.PolicyManifest, blocks store)
		want   error
	}{
		"other bytes behind a CID": {func(m *wire.PolicyManifest, blocks store) {
			b := slices.Clone(blocks[m.Blocks[0].CID])
			b[len(b)-1] ^= 1
			blocks[m.Blocks[0].CID] = b
		}, wire.ErrCIDMismatch},
		"other tokenizer behind a CID": {func(m *wire.PolicyManifest, blocks store) { blocks[m.Tokenizer] = []byte("{}") }, wire.ErrCIDMismatch},
		"no tokenizer":                 {func(m *wire.PolicyManifest, blocks store) { m.Tokenizer = blocks.put([]byte("{}")) }, tokenizer.ErrTokenizer},
		"huge block": {func(m *wire.PolicyManifest, blocks store) {
			m.Tokenizer = blocks.put(make([]byte, wire.MaxBlockBytes+1))
		}, wire.ErrTooLarge},
		"other weights": {func(m *wire.PolicyManifest, blocks store) {
			b := slices.Clone(blocks[m.Blocks[0].CID])
			b[len(b)-1] ^= 1
			m.Blocks[0].CID = blocks.put(b)
		}, ErrPolicy},
		"no safetensors": {func(m *wire.PolicyManifest, blocks store) {
			m.Blocks[0].CID = blocks.put(bytes.Repeat([]byte{0xff}, int(m.Blocks[0].Bytes)))
		}, safetensors.ErrFormat},
		"shorter block": {func(m *wire.PolicyManifest, blocks store) {
			m.Blocks[0].CID = blocks.put(blocks[m.Blocks[0].CID][1:])
		}, ErrPolicy},
		"missing block":       {func(m *wire.PolicyManifest, blocks store) { delete(blocks, m.Blocks[0].CID) }, errGone},
		"missing tokenizer":   {func(m *wire.PolicyManifest, blocks store) { delete(blocks, m.Tokenizer) }, errGone},
		"wrong state digest":  {func(m *wire.PolicyManifest, _ store) { m.StateDigest[0] ^= 1 }, ErrPolicy},
		"wrong tensor digest": {func(m *wire.PolicyManifest, _ store) { m.Tensors[0].Digest[0] ^= 1 }, ErrPolicy},
		"consistently wrong tensor digest": {func(m *wire.PolicyManifest, _ store) {
			m.Tensors[0].Digest[0] ^= 1
			m.StateDigest = stateDigest(m.Tensors)
		}, ErrPolicy},
		"consistently wrong shape": {func(m *wire.PolicyManifest, _ store) {
			m.Tensors[0].Shape = []uint64{4, 6}
			m.StateDigest = stateDigest(m.Tensors)
		}, ErrPolicy},
		"tensors beyond the blocks": {func(m *wire.PolicyManifest, _ store) {
			m.Tensors[0].Shape = []uint64{1 << 20}
			m.StateDigest = stateDigest(m.Tensors)
		}, ErrPolicy},
		"tensors beyond memory": {func(m *wire.PolicyManifest, _ store) {
			m.Tensors[0].Shape = []uint64{1 << 38}
			m.StateDigest = stateDigest(m.Tensors)
		}, ErrPolicy},
		"blocks beyond the tensors": {func(m *wire.PolicyManifest, _ store) {
			m.Blocks = slices.Repeat([]wire.BlockRef{{CID: m.Blocks[0].CID, Bytes: wire.MaxBlockBytes}}, wire.MaxPolicyBlocks)
		}, ErrPolicy},
		"template":   {func(m *wire.PolicyManifest, _ store) { m.Template = "chatml" }, chat.ErrTemplate},
		"config":     {func(m *wire.PolicyManifest, _ store) { m.ConfigJSON = []byte("{}") }, ErrPolicy},
		"generation": {func(m *wire.PolicyManifest, _ store) { m.GenerationJSON = []byte(`{"eos_token_id":"x"}`) }, ErrPolicy},
		"no stop":    {func(m *wire.PolicyManifest, _ store) { m.GenerationJSON = []byte(`{}`) }, ErrPolicy},
	} {
		manifest, blocks := encoded(t, s)
		m, err := wire.DecodePolicyManifest(blocks[manifest])
		if err != nil {
			t.Fatal(err)
		}
		c.change(&m, blocks)
		raw, err := wire.EncodePolicyManifest(m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		get := func(ctx context.Context, cid wire.CID) ([]byte, error) {
			if _, ok := blocks[cid]; !ok {
				return nil, errGone
			}
			return blocks.get(ctx, cid)
		}
		if _, err := Assemble(t.Context(), blocks.put(raw), get); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Assemble(t.Context(), wire.SumCID([]byte("x")), store{wire.SumCID([]byte("x")): []byte("x")}.get); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a manifest that is none: %v", err)
	}
}

func TestAssembleEndsWithItsContext(t *testing.T) {
	manifest, blocks := encoded(t, large(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running atomic.Int32
	get := func(ctx context.Context, c wire.CID) ([]byte, error) {
		b, err := blocks.get(ctx, c)
		if err != nil || len(b) < wire.MaxBlockBytes {
			return b, err
		}
		running.Add(1)
		defer running.Add(-1)
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := Assemble(ctx, manifest, get); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := running.Load(); n != 0 {
		t.Errorf("%d calls are still running", n)
	}
}

func TestFolderRoundTrip(t *testing.T) {
	s := tiny(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := errors.Join(CheckDir(dir), s.WriteDir(dir)); err != nil {
		t.Fatal(err)
	}
	if err := CheckDir(dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("checking a folder that has a policy: %v", err)
	}
	if err := CheckDir(filepath.Join(dir, ConfigFile, "b")); err == nil {
		t.Error("a folder below a file was thought possible")
	}
	got, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s, got)
	if err := s.WriteDir(dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("writing over a policy: %v", err)
	}
	empty := t.TempDir()
	if err := s.WriteDir(empty + "/"); err != nil {
		t.Errorf("writing to an empty folder: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	generation, err := os.ReadFile(filepath.Join(dir, GenerationFile))
	if want := "{\n  \"eos_token_id\": [\n    8\n  ],\n  \"lightswarm_template\": \"lightswarm-1\"\n}\n"; err != nil || string(generation) != want {
		t.Errorf("generation_config.json is %s (%v)", generation, err)
	}
}

func TestReadDirRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		want          error
	}{
		"no weights":     {WeightsFile, "", safetensors.ErrFormat},
		"no template":    {GenerationFile, `{"eos_token_id":8}`, chat.ErrTemplate},
		"bad generation": {GenerationFile, `[]`, ErrPolicy},
		"bad tokenizer":  {TokenizerFile, `{}`, tokenizer.ErrTokenizer},
		"huge config":    {ConfigFile, strings.Repeat(" ", wire.MaxConfigBytes+1), ErrPolicy},
	} {
		dir := filepath.Join(t.TempDir(), "policy")
		if err := tiny(t).WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDir(dir); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDir(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %s: %v", c.file, err)
		}
	}
}

func TestGenerationConfigReadsOneOrMany(t *testing.T) {
	for in, want := range map[string][]int32{
		`{"eos_token_id":2}`: {2}, `{"eos_token_id":[2,3],"temperature":0.6}`: {2, 3}, `{}`: nil, `{"eos_token_id":null}`: nil,
	} {
		var g GenerationConfig
		if err := json.Unmarshal([]byte(in), &g); err != nil || !slices.Equal(g.Stop, want) {
			t.Errorf("%s is %v (%v)", in, g.Stop, err)
		}
	}
}

func FuzzAssemble(f *testing.F) {
	manifest, blocks := encoded(f, tiny(f))
	f.Add(blocks[manifest])
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > wire.MaxBlockBytes {
			return
		}
		s, err := Assemble(t.Context(), blocks.put(raw), blocks.get)
		if err == nil && s.State != stateDigest(tensorRefs(s.Tensors)) {
			t.Fatal("a policy without its state digest")
		}
		if cid := wire.SumCID(raw); cid != manifest {
			delete(blocks, cid)
		}
	})
}
