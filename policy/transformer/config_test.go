package transformer

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestConfigRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawConfig(t)
		got, err := ParseConfig(want.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("config changed (-want +got):\n%s", diff)
		}
	})
}

// A config.json as transformers writes it, with fields that do not matter and without those that have defaults.
const foreignConfig = `{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 1, "eos_token_id": 2,
  "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.04, "intermediate_size": 1536,
  "max_position_embeddings": 2048, "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true,
  "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 49152
}`

func TestParseForeignConfig(t *testing.T) {
	got, err := ParseConfig([]byte(foreignConfig))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Hidden: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, Intermediate: 1536, Vocab: 49152, Context: 2048,
		RopeTheta: 100000, NormEpsilon: 1e-5, TieEmbeddings: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	newer := strings.Replace(foreignConfig, `"rope_scaling": null, "rope_theta": 100000`,
		`"rope_parameters": {"rope_theta": 100000, "rope_type": "default"}`, 1)
	if again, err := ParseConfig([]byte(newer)); err != nil || again != want {
		t.Errorf("with rope_parameters: %+v, %v", again, err)
	}
	if n := got.Parameters(); n != 134515008 { // what SmolLM2-135M has
		t.Errorf("%d weights", n)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for _, edit := range [][2]string{
		{`"silu"`, `"gelu"`},
		{`"llama"`, `"mistral"`},
		{`"rope_scaling": null`, `"rope_scaling": {"type": "linear", "factor": 2}`},
		{`"use_cache": true`, `"rope_parameters": {"rope_type": "llama3", "factor": 8}`},
		{`"use_cache": true`, `"rope_parameters": {"rope_theta": 0}`},
		{`"use_cache": true`, `"attention_bias": true`},
		{`"use_cache": true`, `"mlp_bias": true`},
		{`"use_cache": true`, `"head_dim": 63`},
		{`"use_cache": true`, `"head_dim": -2`},
		{`"hidden_size": 576`, `"hidden_size": 0`},
		{`"hidden_size": 576`, `"hidden_size": 1e30`},
		{`"hidden_size": 576`, `"hidden_size": 65536`}, // too many weights
		{`"num_hidden_layers": 30`, `"num_hidden_layers": 1000000`},
		{`"use_cache": true`, `"head_dim": 1024, "max_position_embeddings": 65536`},
		{`"num_key_value_heads": 3`, `"num_key_value_heads": 9, "head_dim": 1024, "num_hidden_layers": 200`},
		{`"num_attention_heads": 9`, `"num_attention_heads": 10`},
		{`"vocab_size": 49152`, `"vocab_size": -1`},
		{`"max_position_embeddings": 2048`, `"max_position_embeddings": 100000000`},
		{`"rms_norm_eps": 1e-05`, `"rms_norm_eps": 0`},
		{`"rope_theta": 100000`, `"rope_theta": 0.5`},
		{`{`, ``},
		{`"llama"`, `"` + strings.Repeat("x", MaxConfigBytes) + `"`},
	} {
		data := strings.Replace(foreignConfig, edit[0], edit[1], 1)
		if data == foreignConfig {
			t.Fatalf("%q is not in the config", edit[0])
		}
		if _, err := ParseConfig([]byte(data)); !errors.Is(err, ErrConfig) {
			t.Errorf("%.60q: %v", edit[1], err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(foreignConfig))
	f.Add([]byte(`{"hidden_size":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			return
		}
		again, err := ParseConfig(c.JSON())
		if err != nil || again != c {
			t.Fatalf("%+v reads back as %+v: %v", c, again, err)
		}
	})
}
