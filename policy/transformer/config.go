package transformer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Bounds on what a config may ask for. They keep a config that came off the wire from costing more than the machine
// can give before a single weight was read.
const (
	// MaxConfigBytes is the size of the largest config.json that is parsed.
	MaxConfigBytes = 1 << 16
	// MaxParameters is the largest number of weights of a model: 4 GiB in float32.
	MaxParameters = 1 << 30

	maxWidth   = 1 << 16
	maxLayers  = 1 << 10
	maxHeads   = 1 << 10
	maxHeadDim = 1 << 10
	maxVocab   = 1 << 20
	maxContext = 1 << 17

	// maxRotary bounds the tables of rotary positions, Context*HeadDim numbers: 128 Ki positions of 128.
	maxRotary = 1 << 24
	// maxTokenBytes bounds the keys and values of one token.
	maxTokenBytes = 4 << 20
)

// ErrConfig is wrapped by every error about a config that this package cannot run.
var ErrConfig = errors.New("model config")

// Config is the shape of a model, under the names of a Llama config.json.
type Config struct {
	// Hidden is d, the width of the residual stream.
	Hidden int `json:"hidden_size"`
	Layers int `json:"num_hidden_layers"`
	// Heads is the number of query heads; KVHeads, a divisor of it, the number of key and value heads that they share.
	Heads   int `json:"num_attention_heads"`
	KVHeads int `json:"num_key_value_heads"`
	// HeadDim is the width of one head: even, and free of Hidden/Heads.
	HeadDim int `json:"head_dim"`
	// Intermediate is the width of the feed-forward layer.
	Intermediate int `json:"intermediate_size"`
	// Vocab is the number of token ids.
	Vocab int `json:"vocab_size"`
	// Context is the largest number of tokens of a sequence, prompt and completion together.
	Context int `json:"max_position_embeddings"`
	// RopeTheta is the base of the rotary position embedding.
	RopeTheta float64 `json:"rope_theta"`
	// NormEpsilon is added to the mean square inside RMSNorm.
	NormEpsilon float64 `json:"rms_norm_eps"`
	// TieEmbeddings makes the output head the transpose of the embedding.
	TieEmbeddings bool `json:"tie_word_embeddings"`
}

// configFile is config.json as it is read and written: what Config holds, and the fields whose values would change
// what the model computes.
type configFile struct {
	Architectures []string `json:"architectures,omitempty"`
	ModelType     string   `json:"model_type,omitempty"`
	Config
	HiddenAct      string          `json:"hidden_act,omitempty"`
	AttentionBias  bool            `json:"attention_bias"`
	MLPBias        bool            `json:"mlp_bias"`
	RopeScaling    json.RawMessage `json:"rope_scaling,omitempty"`
	RopeParameters *ropeParameters `json:"rope_parameters,omitempty"`
	TorchDType     string          `json:"torch_dtype,omitempty"`
}

// ropeParameters is where newer writers of the family put rope_theta and rope_scaling.
type ropeParameters struct {
	Type  string   `json:"rope_type"`
	Theta *float64 `json:"rope_theta"`
}

// ParseConfig reads a config.json of the Llama family. Absent fields get the family's defaults. It refuses, with an
// error that wraps ErrConfig, features that would change what the model computes and sizes beyond this package's bounds.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > MaxConfigBytes {
		return Config{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrConfig, len(data), MaxConfigBytes)
	}
	var f configFile
	f.RopeTheta, f.NormEpsilon = 10000, 1e-6
	if err := json.Unmarshal(data, &f); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	switch {
	case f.ModelType != "" && f.ModelType != "llama":
		return Config{}, fmt.Errorf("%w: model_type %q is not llama", ErrConfig, f.ModelType)
	case f.HiddenAct != "" && f.HiddenAct != "silu":
		return Config{}, fmt.Errorf("%w: hidden_act %q is not silu", ErrConfig, f.HiddenAct)
	case f.AttentionBias || f.MLPBias:
		return Config{}, fmt.Errorf("%w: biases are not supported", ErrConfig)
	case len(f.RopeScaling) > 0 && !bytes.Equal(f.RopeScaling, []byte("null")):
		return Config{}, fmt.Errorf("%w: rope_scaling is not supported", ErrConfig)
	}
	if p := f.RopeParameters; p != nil {
		if p.Type != "" && p.Type != "default" {
			return Config{}, fmt.Errorf("%w: rope_type %q is not supported", ErrConfig, p.Type)
		}
		if p.Theta != nil {
			f.RopeTheta = *p.Theta
		}
	}
	c := f.Config
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	return c, c.Validate()
}

// JSON is c as a config.json that other programs of the Llama family read. The same config gives the same bytes.
func (c Config) JSON() []byte {
	b, err := json.MarshalIndent(configFile{
		Architectures: []string{"LlamaForCausalLM"},
		ModelType:     "llama",
		Config:        c,
		HiddenAct:     "silu",
		TorchDType:    "bfloat16",
	}, "", "  ")
	if err != nil {
		panic("transformer: " + err.Error()) // only a NaN or an infinity, which Validate refuses
	}
	return append(b, '\n')
}

// Validate says whether this package can run a model of shape c. Its errors wrap ErrConfig.
func (c Config) Validate() error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"hidden_size", c.Hidden, maxWidth},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxHeads},
		{"num_key_value_heads", c.KVHeads, maxHeads},
		{"head_dim", c.HeadDim, maxHeadDim},
		{"intermediate_size", c.Intermediate, maxWidth},
		{"vocab_size", c.Vocab, maxVocab},
		{"max_position_embeddings", c.Context, maxContext},
	} {
		if f.value < 1 || f.value > f.max {
			return fmt.Errorf("%w: %s is %d, which is outside 1..%d", ErrConfig, f.name, f.value, f.max)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%w: %d query heads do not share %d key heads evenly", ErrConfig, c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("%w: head_dim %d is odd", ErrConfig, c.HeadDim)
	case !(c.RopeTheta >= 1 && c.RopeTheta <= 1e12):
		return fmt.Errorf("%w: rope_theta %v is outside 1..1e12", ErrConfig, c.RopeTheta)
	case !(c.NormEpsilon >= 1e-12 && c.NormEpsilon <= 1):
		return fmt.Errorf("%w: rms_norm_eps %v is outside 1e-12..1", ErrConfig, c.NormEpsilon)
	}
	if n := c.Context * c.HeadDim; n > maxRotary {
		return fmt.Errorf("%w: %d positions of %d numbers each, the limit is %d together", ErrConfig, c.Context, c.HeadDim, maxRotary)
	}
	if n := 4 * 2 * int64(c.Layers) * int64(c.kvWidth()); n > maxTokenBytes {
		return fmt.Errorf("%w: the keys and values of a token take %d bytes, the limit is %d", ErrConfig, n, maxTokenBytes)
	}
	if n := c.parameters(); n > MaxParameters {
		return fmt.Errorf("%w: %d weights, the limit is %d", ErrConfig, n, MaxParameters)
	}
	return nil
}

// Parameters is the number of weights of a model of shape c.
func (c Config) Parameters() int { return int(c.parameters()) }

// parameters cannot overflow for sizes within the bounds: each product is below 2^43.
func (c *Config) parameters() int64 {
	d, f, v := int64(c.Hidden), int64(c.Intermediate), int64(c.Vocab)
	layer := 2*d + d*int64(c.qkvWidth()) + d*int64(c.queryWidth()) + 3*d*f
	n := v*d + d
	if !c.TieEmbeddings {
		n += v * d
	}
	return n + int64(c.Layers)*layer
}

// queryWidth is the width of all query heads together, and of the attention's output before o_proj.
func (c *Config) queryWidth() int { return c.Heads * c.HeadDim }

// kvWidth is the width of all key heads together, and of all value heads.
func (c *Config) kvWidth() int { return c.KVHeads * c.HeadDim }

// qkvWidth is the width of queries, keys and values together.
func (c *Config) qkvWidth() int { return c.queryWidth() + 2*c.kvWidth() }

// scale is what attention scores are multiplied with.
func (c *Config) scale() float32 { return float32(1 / math.Sqrt(float64(c.HeadDim))) }
