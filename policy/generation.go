package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/wire"
)

// MaxStopTokens bounds the stop tokens of a policy.
const MaxStopTokens = 64

// GenerationConfig says how a policy's completions end. Sampling is not here: it comes from the network's rules.
// Its JSON is that of Hugging Face's generation_config.json, of which other fields are ignored.
type GenerationConfig struct {
	// Stop are the tokens that end a completion, ascending: one to MaxStopTokens.
	Stop []int32 `json:"eos_token_id"`
}

// UnmarshalJSON reads one stop token or a list.
func (g *GenerationConfig) UnmarshalJSON(data []byte) error {
	var raw struct {
		Stop json.RawMessage `json:"eos_token_id"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw.Stop) == 0 || bytes.Equal(raw.Stop, []byte("null")) {
		g.Stop = nil
		return nil
	}
	if raw.Stop[0] == '[' {
		return json.Unmarshal(raw.Stop, &g.Stop)
	}
	g.Stop = make([]int32, 1)
	return json.Unmarshal(raw.Stop, &g.Stop[0])
}

// canonical is g in order and without duplicates. It fails with ErrPolicy.
func (g GenerationConfig) canonical(vocab int) (GenerationConfig, error) {
	stop := slices.Compact(slices.Sorted(slices.Values(g.Stop)))
	if len(stop) == 0 || len(stop) > MaxStopTokens {
		return g, fmt.Errorf("%w: generation config has %d stop tokens, not 1 to %d", ErrPolicy, len(stop), MaxStopTokens)
	}
	for _, id := range stop {
		if id < 0 || int(id) >= vocab {
			return g, fmt.Errorf("%w: stop token %d is outside the vocabulary of %d", ErrPolicy, id, vocab)
		}
	}
	return GenerationConfig{Stop: stop}, nil
}

// parseGeneration reads a generation config from outside. It fails with ErrPolicy.
func parseGeneration(data []byte) (g GenerationConfig, err error) {
	if len(data) > wire.MaxConfigBytes {
		return g, fmt.Errorf("%w: generation config has %d bytes, at most %d", ErrPolicy, len(data), wire.MaxConfigBytes)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return g, fmt.Errorf("%w: generation config: %w", ErrPolicy, err)
	}
	return g, nil
}
