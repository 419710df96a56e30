package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/wire"
)

// Block is bytes and the CID that names them, at most wire.MaxBlockBytes.
type Block struct {
	CID  wire.CID
	Data []byte
}

func newBlock(data []byte) Block { return Block{wire.SumCID(data), data} }

// metadata marks our safetensors files as Hugging Face's loaders want it.
var metadata = map[string]string{"format": "pt"}

// Encode cuts the policy into blocks: the manifest, which is the first and whose CID is the policy's anchor, the
// tokenizer, and the weights' safetensors file in pieces of wire.MaxBlockBytes. The same snapshot gives the same
// blocks. It fails when a part is larger than a block or the policy larger than package wire allows.
func (s *Snapshot) Encode() (manifest wire.CID, blocks []Block, err error) {
	tok, err := s.Tokenizer.MarshalJSON()
	if err != nil {
		return wire.CID{}, nil, fmt.Errorf("encode policy: %w", err)
	}
	if len(tok) > wire.MaxBlockBytes {
		return wire.CID{}, nil, fmt.Errorf("encode policy: tokenizer.json has %d bytes; a block holds %d", len(tok), wire.MaxBlockBytes)
	}
	body, err := safetensors.Encode(safetensors.File{Tensors: s.Tensors, Metadata: metadata})
	if err != nil {
		return wire.CID{}, nil, fmt.Errorf("encode policy: %w", err)
	}
	generation, err := json.Marshal(s.Generation)
	if err != nil {
		return wire.CID{}, nil, fmt.Errorf("encode policy: %w", err)
	}
	blocks = []Block{{}, newBlock(tok)}
	m := wire.PolicyManifest{
		ConfigJSON:     s.ConfigJSON,
		Tokenizer:      blocks[1].CID,
		Template:       string(s.Template),
		GenerationJSON: generation,
		Tensors:        tensorRefs(s.Tensors),
		StateDigest:    s.State,
	}
	for piece := range slices.Chunk(body, wire.MaxBlockBytes) {
		b := newBlock(piece)
		m.Blocks = append(m.Blocks, wire.BlockRef{CID: b.CID, Bytes: uint32(len(piece))})
		blocks = append(blocks, b)
	}
	raw, err := wire.EncodePolicyManifest(m)
	if err != nil {
		return wire.CID{}, nil, fmt.Errorf("encode policy: %w", err)
	}
	blocks[0] = newBlock(raw)
	return blocks[0].CID, blocks, nil
}

// fetchers is how many blocks of a body Assemble asks for at a time.
const fetchers = 4

// Assemble fetches the policy whose manifest is named and verifies all of it: every block against its CID and its
// length in the manifest, every tensor against its digest, and the weights against the state digest. Sizes are
// checked against limits before anything is allocated for them. The caller still compares Digest with the one that
// a release names. get is called by several goroutines at a time and its bytes are not kept. Assemble returns after
// all running calls of get have, with the first error or when ctx ends.
func Assemble(ctx context.Context, manifest wire.CID, get func(context.Context, wire.CID) ([]byte, error)) (*Snapshot, error) {
	s, err := assemble(ctx, manifest, get)
	if err != nil {
		return nil, fmt.Errorf("assemble policy %s: %w", manifest, err)
	}
	return s, nil
}

func assemble(ctx context.Context, manifest wire.CID, get func(context.Context, wire.CID) ([]byte, error)) (*Snapshot, error) {
	raw, err := fetch(ctx, get, manifest)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	m, err := wire.DecodePolicyManifest(raw)
	if err != nil {
		return nil, err
	}
	size, err := bodySize(m)
	if err != nil {
		return nil, err
	}
	if stateDigest(m.Tensors) != m.StateDigest {
		return nil, fmt.Errorf("%w: the state digest is not that of the tensors listed", ErrPolicy)
	}
	generation, err := parseGeneration(m.GenerationJSON)
	if err != nil {
		return nil, err
	}
	raw, err = fetch(ctx, get, m.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	tok, err := tokenizer.Load(raw)
	if err != nil {
		return nil, err
	}
	body, err := fetchBody(ctx, get, m.Blocks, size)
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Decode(body)
	if err != nil {
		return nil, err
	}
	s, err := New(m.ConfigJSON, tok, chat.TemplateName(m.Template), generation, file.Tensors)
	if err != nil {
		return nil, err
	}
	// The state digest covers each tensor's name, dtype, shape and digest, so that this compares them all.
	if s.State != m.StateDigest {
		return nil, fmt.Errorf("%w: the weights are not those that the manifest lists", ErrPolicy)
	}
	return s, nil
}

// bodySize is the size of the safetensors file that a manifest's blocks make up. It refuses a manifest whose blocks
// do not add up to its tensors and at most a header.
func bodySize(m wire.PolicyManifest) (int64, error) {
	var tensors int64
	for _, r := range m.Tensors {
		dtype, err := safetensors.ParseDType(r.DType)
		if err != nil {
			return 0, err
		}
		shape := make([]int, len(r.Shape))
		for i, d := range r.Shape {
			if shape[i] = int(d); shape[i] < 0 || uint64(shape[i]) != d {
				return 0, fmt.Errorf("%w: tensor %q has dimension %d", ErrPolicy, r.Name, d)
			}
		}
		n, err := safetensors.ByteSize(r.Name, dtype, shape)
		if err != nil {
			return 0, err
		}
		if tensors += n; tensors > MaxBytes {
			return 0, fmt.Errorf("%w: weights are over %d bytes", ErrPolicy, MaxBytes)
		}
	}
	size := int64(m.Bytes())
	if int64(int(size)) != size {
		return 0, fmt.Errorf("%w: weights of %d bytes do not fit this machine's memory", ErrPolicy, size)
	}
	if size < tensors+8 || size > tensors+8+safetensors.MaxHeaderBytes {
		return 0, fmt.Errorf("%w: blocks add up to %d bytes, tensors to %d", ErrPolicy, size, tensors)
	}
	return size, nil
}

// fetch gets one block and verifies it.
func fetch(ctx context.Context, get func(context.Context, wire.CID) ([]byte, error), cid wire.CID) ([]byte, error) {
	data, err := get(ctx, cid)
	if err != nil {
		return nil, err
	}
	if len(data) > wire.MaxBlockBytes {
		return nil, fmt.Errorf("%w: block of %d bytes, at most %d", wire.ErrTooLarge, len(data), wire.MaxBlockBytes)
	}
	return data, cid.Verify(data)
}

// fetchBody gets the blocks of a body, several at a time, each into its place.
func fetchBody(ctx context.Context, get func(context.Context, wire.CID) ([]byte, error), refs []wire.BlockRef, size int64) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := make([]byte, size)
	type job struct {
		index int
		place []byte
	}
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range min(fetchers, len(refs)) {
		workers.Go(func() {
			for j := range jobs {
				data, err := fetch(ctx, get, refs[j.index].CID)
				if err == nil && len(data) != len(j.place) {
					err = fmt.Errorf("%w: it has %d bytes, the manifest says %d", ErrPolicy, len(data), len(j.place))
				}
				if err != nil {
					cancel(fmt.Errorf("block %d of %d: %w", j.index, len(refs), err))
					return
				}
				copy(j.place, data)
			}
		})
	}
	rest := body
	for i, ref := range refs {
		select {
		case jobs <- job{i, rest[:ref.Bytes]}:
			rest = rest[ref.Bytes:]
			continue
		case <-ctx.Done():
		}
		break
	}
	close(jobs)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return body, nil
}
