package transformer

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/policy/safetensors"
	"pgregory.net/rapid"
)

func TestTensorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		p := lively(c, rapid.Uint64().Draw(t, "seed"))
		dtype := rapid.SampledFrom([]safetensors.DType{safetensors.BF16, safetensors.F32}).Draw(t, "dtype")
		tensors := p.Tensors(dtype)
		slices.Reverse(tensors)
		got, err := FromTensors(c, tensors)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Flat, p.Flat) {
			t.Fatal("weights changed")
		}
	})
}

func TestFromTensorsRefuses(t *testing.T) {
	c := Config{Hidden: 4, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 2, Intermediate: 3, Vocab: 5, Context: 8, RopeTheta: 1e4, NormEpsilon: 1e-6}
	for want, change := range map[string]func([]safetensors.Tensor) []safetensors.Tensor{
		"has 11 tensors":    func(s []safetensors.Tensor) []safetensors.Tensor { return s[1:] },
		"there twice":       func(s []safetensors.Tensor) []safetensors.Tensor { s[1] = s[0]; return s },
		"is missing":        func(s []safetensors.Tensor) []safetensors.Tensor { s[3].Name = "lm_head.bias"; return s },
		"has shape [4 3]":   func(s []safetensors.Tensor) []safetensors.Tensor { s[7].Shape = []int{4, 3}; return s }, // gate_proj
		"element 2 is":      func(s []safetensors.Tensor) []safetensors.Tensor { s[0].Data[5], s[0].Data[4] = 0x7f, 0xc0; return s },
		"element 0 is +Inf": func(s []safetensors.Tensor) []safetensors.Tensor { s[0].Data[1], s[0].Data[0] = 0x7f, 0x80; return s },
		"bytes of data":     func(s []safetensors.Tensor) []safetensors.Tensor { s[2].Data = s[2].Data[2:]; return s },
	} {
		if _, err := FromTensors(c, change(Init(c, 1).Tensors(safetensors.BF16))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := FromTensors(Config{}, nil); err == nil {
		t.Error("an empty config was accepted")
	}
}

func TestInitIsSeeded(t *testing.T) {
	c := sizes[0].c
	a, b, other := Init(c, 1), Init(c, 1), Init(c, 2)
	if !slices.Equal(a.Flat, b.Flat) {
		t.Error("one seed gave two models")
	}
	if slices.Equal(a.Flat, other.Flat) {
		t.Error("two seeds gave one model")
	}
	rounded := a.Clone()
	rounded.RoundBF16()
	if !slices.Equal(a.Flat, rounded.Flat) {
		t.Error("the weights are not bf16 values")
	}
}
