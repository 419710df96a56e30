package transformer

import (
	"fmt"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/policy/safetensors"
)

// A Parameter is one named weight of a model: a view of Parameters.Flat.
type Parameter struct {
	// Name is the tensor's name in a Llama checkpoint.
	Name string
	// Rows and Columns are its shape; Rows is 0 for a vector, a norm's gain.
	Rows, Columns int
	// Values are the weights, row by row. A matrix maps Columns inputs to Rows outputs.
	Values []float32
}

func (p *Parameter) shape() []int {
	if p.Rows == 0 {
		return []int{p.Columns}
	}
	return []int{p.Rows, p.Columns}
}

// Parameters are the weights of one model in one flat vector. The order is the checkpoint's: embedding, layers, final
// norm, head; inside a layer, query, key and value lie side by side, and so do gate and up, so that each of the two
// runs of matrices is one matrix to a kernel.
type Parameters struct {
	Config Config
	Flat   []float32
	// Named holds every weight once, in the order of Flat.
	Named []Parameter

	embed  []float32 // [Vocab][Hidden]
	layers []layerParameters
	norm   []float32 // [Hidden]
	head   []float32 // [Vocab][Hidden]; embed when the embeddings are tied
}

// layerParameters are the views of one layer, the adjacent matrices fused.
type layerParameters struct {
	attentionNorm []float32 // [Hidden]
	qkv           []float32 // [qkvWidth][Hidden]
	output        []float32 // [Hidden][queryWidth]
	mlpNorm       []float32 // [Hidden]
	gateUp        []float32 // [2*Intermediate][Hidden]
	down          []float32 // [Hidden][Intermediate]
}

// NewParameters returns the weights of a model of shape c, all zero. It panics if c is not valid.
func NewParameters(c Config) *Parameters {
	if err := c.Validate(); err != nil {
		panic("transformer: " + err.Error())
	}
	return viewParameters(c, make([]float32, c.Parameters()))
}

// viewParameters lays the names of c's weights over flat.
func viewParameters(c Config, flat []float32) *Parameters {
	p := &Parameters{Config: c, Flat: flat, layers: make([]layerParameters, c.Layers)}
	at := 0
	name := func(name string, rows, columns int) {
		n := max(rows, 1) * columns
		p.Named = append(p.Named, Parameter{name, rows, columns, flat[at : at+n : at+n]})
		at += n
	}
	// since returns what was named from offset start on.
	since := func(start int) []float32 { return flat[start:at:at] }

	name("model.embed_tokens.weight", c.Vocab, c.Hidden)
	p.embed = since(0)
	for i := range p.layers {
		l, prefix := &p.layers[i], fmt.Sprintf("model.layers.%d.", i)
		start := at
		name(prefix+"input_layernorm.weight", 0, c.Hidden)
		l.attentionNorm = since(start)
		start = at
		name(prefix+"self_attn.q_proj.weight", c.queryWidth(), c.Hidden)
		name(prefix+"self_attn.k_proj.weight", c.kvWidth(), c.Hidden)
		name(prefix+"self_attn.v_proj.weight", c.kvWidth(), c.Hidden)
		l.qkv = since(start)
		start = at
		name(prefix+"self_attn.o_proj.weight", c.Hidden, c.queryWidth())
		l.output = since(start)
		start = at
		name(prefix+"post_attention_layernorm.weight", 0, c.Hidden)
		l.mlpNorm = since(start)
		start = at
		name(prefix+"mlp.gate_proj.weight", c.Intermediate, c.Hidden)
		name(prefix+"mlp.up_proj.weight", c.Intermediate, c.Hidden)
		l.gateUp = since(start)
		start = at
		name(prefix+"mlp.down_proj.weight", c.Hidden, c.Intermediate)
		l.down = since(start)
	}
	start := at
	name("model.norm.weight", 0, c.Hidden)
	p.norm = since(start)
	p.head = p.embed
	if !c.TieEmbeddings {
		start = at
		name("lm_head.weight", c.Vocab, c.Hidden)
		p.head = since(start)
	}
	return p
}

// Clone returns a copy of p that shares nothing with it.
func (p *Parameters) Clone() *Parameters {
	return viewParameters(p.Config, append([]float32(nil), p.Flat...))
}

// RoundBF16 rounds every weight to bfloat16, ties to even: what a release of p would hold.
func (p *Parameters) RoundBF16() { roundBF16(p.Flat, p.Flat) }

// roundBF16 sets dst to src rounded to bfloat16. They have one length, and may be one slice.
func roundBF16(dst, src []float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = safetensors.Float32FromBF16(safetensors.BF16FromFloat32(v))
	}
}

// Tensors encodes p as the tensors of a checkpoint, rounded to dtype.
func (p *Parameters) Tensors(dtype safetensors.DType) []safetensors.Tensor {
	tensors := make([]safetensors.Tensor, len(p.Named))
	for i := range p.Named {
		n := &p.Named[i]
		tensors[i] = safetensors.FromFloat32s(n.Name, dtype, n.shape(), n.Values)
	}
	return tensors
}

// FromTensors reads the weights of a model of shape c from the tensors of a checkpoint, in any order. It refuses a
// tensor that is missing, unknown, there twice, of another shape, or not finite.
func FromTensors(c Config, tensors []safetensors.Tensor) (*Parameters, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if want := c.tensors(); len(tensors) != want {
		return nil, fmt.Errorf("model has %d tensors, its config asks for %d", len(tensors), want)
	}
	byName := make(map[string]*safetensors.Tensor, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		if byName[t.Name] != nil {
			return nil, fmt.Errorf("tensor %q is there twice", t.Name)
		}
		byName[t.Name] = t
	}
	p := NewParameters(c)
	for i := range p.Named {
		n := &p.Named[i]
		t := byName[n.Name]
		if t == nil {
			return nil, fmt.Errorf("tensor %q is missing", n.Name)
		}
		if !slices.Equal(t.Shape, n.shape()) {
			return nil, fmt.Errorf("tensor %q has shape %v, the config asks for %v", n.Name, t.Shape, n.shape())
		}
		if err := t.Validate(); err != nil {
			return nil, err
		}
		t.AppendFloat32s(n.Values[:0])
		for j, v := range n.Values {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("tensor %q: element %d is %v", n.Name, j, v)
			}
		}
	}
	return p, nil
}

// tensors is the number of tensors of a checkpoint of shape c.
func (c *Config) tensors() int {
	n := 2 + 9*c.Layers
	if !c.TieEmbeddings {
		n++
	}
	return n
}
