package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
)

// maxAsked bounds what is recorded of what a request asks of sampling, in bytes.
const maxAsked = 512

// samplingFields are the parameters of sampling that requests of any dialect may have, as they were sent. They are
// recorded, not followed.
type samplingFields struct {
	Temperature json.RawMessage `json:"temperature"`
	TopP        json.RawMessage `json:"top_p"`
	TopK        json.RawMessage `json:"top_k"`
	MinP        json.RawMessage `json:"min_p"`
	Seed        json.RawMessage `json:"seed"`
	Presence    json.RawMessage `json:"presence_penalty"`
	Frequency   json.RawMessage `json:"frequency_penalty"`
	Repetition  json.RawMessage `json:"repetition_penalty"`
	Bias        json.RawMessage `json:"logit_bias"`
}

// asked is what the request asks of sampling, in the same words for all dialects: a JSON object in printable ASCII, ""
// for nothing. Where it would be too long, the longest values are null.
func (r *request) asked() string {
	f := r.Sampling
	members := map[string]json.RawMessage{
		"temperature": f.Temperature, "top_p": f.TopP, "top_k": f.TopK, "min_p": f.MinP, "seed": f.Seed,
		"presence_penalty": f.Presence, "frequency_penalty": f.Frequency, "repetition_penalty": f.Repetition, "logit_bias": f.Bias,
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return isNull(value) })
	if r.MaxTokens > 0 {
		members["max_tokens"] = mustJSON(r.MaxTokens)
	}
	if r.Samples > 1 {
		members["n"] = mustJSON(r.Samples)
	}
	if len(r.Stop) > 0 {
		members["stop"] = mustJSON(r.Stop)
	}
	if len(members) == 0 {
		return ""
	}
	for {
		text := ascii(mustJSON(members))
		if len(text) <= maxAsked {
			return text
		}
		longest := slices.MaxFunc(slices.Sorted(maps.Keys(members)), func(a, b string) int { return len(members[a]) - len(members[b]) })
		members[longest] = json.RawMessage("null")
	}
}

// ascii is JSON with all else than printable ASCII escaped.
func ascii(text []byte) string {
	var out strings.Builder
	for _, c := range string(text) {
		switch {
		case c >= ' ' && c <= '~':
			out.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	return out.String()
}
