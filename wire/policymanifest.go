package wire

import (
	"fmt"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// PolicyManifest lists what a policy is made of. Its encoding is one block, whose CID is the policy's anchor.
type PolicyManifest struct {
	// ConfigJSON is the model's config.json in Hugging Face's terms.
	ConfigJSON []byte
	// Tokenizer is the block with tokenizer.json.
	Tokenizer CID
	// Template names the chat template's version.
	Template string
	// GenerationJSON is the generation config: stop tokens and limits.
	GenerationJSON []byte
	Tensors        []TensorRef
	// Blocks hold the safetensors file, in order.
	Blocks      []BlockRef
	StateDigest [32]byte
}

// TensorRef names one tensor of a policy and the digest of its bytes.
type TensorRef struct {
	Name string
	// DType is in safetensors' spelling: "BF16" or "F32".
	DType string
	// Shape has no dimensions for a scalar.
	Shape []uint64
	// Digest is sha256 over the tensor's stored bytes.
	Digest [32]byte
}

// BlockRef names a block and its length, 1 to MaxBlockBytes.
type BlockRef struct {
	CID   CID
	Bytes uint32
}

// maxTensorElements bounds one tensor and keeps products of dimensions inside 64 bits.
const maxTensorElements = 1 << 40

// Bytes is the length of the safetensors file that the blocks hold.
func (m PolicyManifest) Bytes() uint64 {
	var n uint64
	for _, b := range m.Blocks {
		n += uint64(b.Bytes)
	}
	return n
}

// Validate returns a *ValidationError that names the first field at fault.
func (m PolicyManifest) Validate() error {
	r := check("policy manifest")
	r.between("config_json", uint64(len(m.ConfigJSON)), 2, MaxConfigBytes)
	r.definedCID("tokenizer_cid", m.Tokenizer)
	r.name("template", m.Template, MaxNameBytes)
	r.between("generation_json", uint64(len(m.GenerationJSON)), 2, MaxConfigBytes)
	r.require(len(m.Tensors) > 0, "tensors", "must not be empty")
	r.atMost("tensors", len(m.Tensors), MaxTensors)
	names := make(map[string]bool)
	for i, t := range m.Tensors {
		if r.err != nil {
			return r.err
		}
		field := fmt.Sprintf("tensors[%d]", i)
		r.name(field+".name", t.Name, MaxNameBytes)
		r.require(!names[t.Name], field+".name", "must differ from the other tensors'")
		names[t.Name] = true
		r.require(t.DType == "BF16" || t.DType == "F32", field+".dtype", "must be BF16 or F32")
		r.atMost(field+".shape", len(t.Shape), MaxTensorRank)
		elements := uint64(1)
		for _, d := range t.Shape {
			if d == 0 || d > maxTensorElements/elements {
				r.fail(field+".shape", "must have dimensions of at least 1 whose product is at most 2^40")
				break
			}
			elements *= d
		}
		r.setDigest(field+".digest", t.Digest)
	}
	r.require(len(m.Blocks) > 0, "blocks", "must not be empty")
	r.atMost("blocks", len(m.Blocks), MaxPolicyBlocks)
	for i, b := range m.Blocks {
		if r.err != nil {
			return r.err
		}
		field := fmt.Sprintf("blocks[%d]", i)
		r.definedCID(field+".cid", b.CID)
		r.between(field+".bytes", uint64(b.Bytes), 1, MaxBlockBytes)
	}
	r.setDigest("state_digest", m.StateDigest)
	return r.err
}

// EncodePolicyManifest validates m and returns its deterministic encoding.
func EncodePolicyManifest(m PolicyManifest) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	p := &wirepb.PolicyManifest{
		Major:          Major,
		ConfigJson:     m.ConfigJSON,
		TokenizerCid:   m.Tokenizer.Bytes(),
		Template:       m.Template,
		GenerationJson: m.GenerationJSON,
		StateDigest:    digestBytes(m.StateDigest),
	}
	for _, t := range m.Tensors {
		p.Tensors = append(p.Tensors, &wirepb.TensorRef{
			Name: t.Name, Dtype: t.DType, Shape: t.Shape, Digest: digestBytes(t.Digest),
		})
	}
	for _, b := range m.Blocks {
		p.Blocks = append(p.Blocks, &wirepb.BlockRef{Cid: b.CID.Bytes(), Bytes: b.Bytes})
	}
	return marshal("policy manifest", MaxPolicyManifestBytes, p)
}

// DecodePolicyManifest decodes and validates a policy manifest.
func DecodePolicyManifest(raw []byte) (PolicyManifest, error) {
	var p wirepb.PolicyManifest
	if err := unmarshal("policy manifest", MaxPolicyManifestBytes, raw, &p); err != nil {
		return PolicyManifest{}, err
	}
	if err := checkMajor("policy manifest", p.Major); err != nil {
		return PolicyManifest{}, err
	}
	r := check("policy manifest")
	r.atMost("tensors", len(p.Tensors), MaxTensors)
	r.atMost("blocks", len(p.Blocks), MaxPolicyBlocks)
	if r.err != nil {
		return PolicyManifest{}, r.err
	}
	m := PolicyManifest{
		ConfigJSON:     p.ConfigJson,
		Tokenizer:      r.cid("tokenizer_cid", p.TokenizerCid),
		Template:       p.Template,
		GenerationJSON: p.GenerationJson,
		Tensors:        make([]TensorRef, 0, len(p.Tensors)),
		Blocks:         make([]BlockRef, 0, len(p.Blocks)),
		StateDigest:    r.digest("state_digest", p.StateDigest),
	}
	for i, t := range p.Tensors {
		m.Tensors = append(m.Tensors, TensorRef{
			Name: t.Name, DType: t.Dtype, Shape: t.Shape, Digest: r.digest(fmt.Sprintf("tensors[%d].digest", i), t.Digest),
		})
	}
	for i, b := range p.Blocks {
		m.Blocks = append(m.Blocks, BlockRef{CID: r.cid(fmt.Sprintf("blocks[%d].cid", i), b.Cid), Bytes: b.Bytes})
	}
	if r.err != nil {
		return PolicyManifest{}, r.err
	}
	return m, m.Validate()
}
