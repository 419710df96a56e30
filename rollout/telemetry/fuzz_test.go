package telemetry

import (
	"errors"
	"math"
	"testing"
)

// Whatever comes, decoding ends in spans within their bounds or in a fault, and reading them ends.
func FuzzDecode(f *testing.F) {
	for _, name := range dialectNames {
		body := payload(f, name)
		binary := inProtobuf(f, body)
		f.Add(byte(0), body)
		f.Add(byte(1), gzipped(f, body))
		f.Add(byte(2), binary)
		f.Add(byte(3), gzipped(f, binary))
	}
	f.Fuzz(func(t *testing.T, form byte, body []byte) {
		contentType, encoding := jsonType, ""
		if form&2 != 0 {
			contentType = protobufType
		}
		if form&1 != 0 {
			encoding = "gzip"
		}
		spans, _, err := Decode(contentType, encoding, body)
		var fault *Fault
		if err != nil && (!errors.As(err, &fault) || len(fault.Body(JSON)) == 0) {
			t.Fatalf("no fault: %v", err)
		}
		if len(spans) > 2*maxParts {
			t.Fatalf("%d spans", len(spans))
		}
		for _, s := range spans {
			texts := append([]string{s.Tool, s.ToolCall, s.Response}, s.Agents...)
			for _, r := range s.Rewards {
				texts = append(texts, r.Name, r.Response)
				if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
					t.Fatalf("a reward is %v", r.Value)
				}
			}
			for _, text := range texts {
				if len(text) > maxText {
					t.Fatalf("a text has %d bytes", len(text))
				}
			}
			if len(s.Rewards) > maxRewards || len(s.Agents) > maxAgents || s.End < s.Start {
				t.Fatalf("%+v", s)
			}
		}
		var trace Trace
		rejected := trace.Add(spans)
		reading := trace.Read(recorded, roles)
		if trace.Len()+rejected > len(spans) || len(reading.Tools) > len(spans) {
			t.Fatalf("%d spans make %d, %d rejected, and %d tools", len(spans), trace.Len(), rejected, len(reading.Tools))
		}
	})
}
