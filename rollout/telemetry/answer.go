package telemetry

import (
	"encoding/json"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Accepted is the body of the answer, with status 200, to an export that was taken: an ExportTraceServiceResponse. If
// spans were rejected it says how many, and why; exporters do not send those again.
func Accepted(f Form, rejected int, why string) []byte {
	switch {
	case rejected == 0 && f == JSON:
		return []byte("{}")
	case rejected == 0:
		return nil
	case f == JSON:
		// In JSON, OTLP writes 64-bit numbers as text.
		return mustJSON(map[string]any{"partialSuccess": map[string]string{
			"rejectedSpans": strconv.Itoa(rejected), "errorMessage": why,
		}})
	}
	partial := protowire.AppendTag(nil, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// Fault is why an export was not taken.
type Fault struct {
	// Status is that of HTTP. Exporters try again after 429, 502, 503 and 504 alone.
	Status  int
	Message string
}

func (f *Fault) Error() string { return f.Message }

// codes are google.rpc's, which a Status carries, by HTTP's.
var codes = map[int]int{400: 3, 401: 16, 404: 5, 405: 12, 409: 9, 413: 8, 415: 3, 429: 8, 503: 14}

// Body is the body of the answer: a google.rpc.Status.
func (f *Fault) Body(form Form) []byte {
	code, ok := codes[f.Status]
	if !ok {
		code = 2 // UNKNOWN
	}
	if form == JSON {
		return mustJSON(map[string]any{"code": code, "message": f.Message})
	}
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), f.Message)
}

// mustJSON encodes a value of this file, all of which can be.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("telemetry: " + err.Error())
	}
	return b
}
