package telemetry

import (
	"encoding/hex"
	"encoding/json"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// The attributes, of a resource or a span, by which Agent Lightning's tracers say what a span is of.
const (
	lightningRollout = "agentlightning.rollout_id"
	lightningAttempt = "agentlightning.attempt_id"
)

// belong notes which rollout and attempt a span is of: its own attributes count before those of its resource.
func (s *Span) belong(own, resource attributes) {
	for _, a := range []attributes{own, resource} {
		if s.Rollout == "" {
			s.Rollout = a.text(lightningRollout)
		}
		if s.Attempt == "" {
			s.Attempt = a.text(lightningAttempt)
		}
	}
}

// lightningSpan is a span as Agent Lightning's store takes them, in JSON. Ids are in hexadecimal, times in seconds since
// 1970.
type lightningSpan struct {
	Rollout string `json:"rollout_id"`
	Attempt string `json:"attempt_id"`
	Trace   string `json:"trace_id"`
	Span    string `json:"span_id"`
	Parent  string `json:"parent_id"`
	Name    string `json:"name"`
	Status  struct {
		Code string `json:"status_code"`
	} `json:"status"`
	Attributes map[string]any `json:"attributes"`
	Events     []struct {
		Name       string         `json:"name"`
		Attributes map[string]any `json:"attributes"`
	} `json:"events"`
	Links []struct {
		Context struct {
			Trace string `json:"trace_id"`
			Span  string `json:"span_id"`
		} `json:"context"`
	} `json:"links"`
	Start float64 `json:"start_time"`
	End   float64 `json:"end_time"`
}

// DecodeLightning reads a span that an Agent Lightning client posts by itself. Errors are *Fault.
func DecodeLightning(body []byte) (Span, error) {
	if len(body) > MaxBody {
		return Span{}, &Fault{Status: 413, Message: "the span is too large"}
	}
	if err := countJSON(body); err != nil {
		return Span{}, &Fault{Status: 413, Message: "the span has too many parts, or does not end"}
	}
	var q lightningSpan
	if err := json.Unmarshal(body, &q); err != nil {
		return Span{}, &Fault{Status: 422, Message: "the body is no span: " + err.Error()}
	}
	s := &tracepb.Span{
		TraceId: unhex(q.Trace), SpanId: unhex(q.Span), ParentSpanId: unhex(q.Parent), Name: q.Name,
		StartTimeUnixNano: nanoseconds(q.Start), EndTimeUnixNano: nanoseconds(q.End), Attributes: keyValues(q.Attributes),
	}
	if q.Status.Code == "ERROR" {
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	}
	for _, e := range q.Events {
		s.Events = append(s.Events, &tracepb.Span_Event{Name: e.Name, Attributes: keyValues(e.Attributes)})
	}
	for _, l := range q.Links {
		s.Links = append(s.Links, &tracepb.Span_Link{TraceId: unhex(l.Context.Trace), SpanId: unhex(l.Context.Span)})
	}
	span, ok := read(s, Protobuf)
	if !ok {
		return Span{}, &Fault{Status: 422, Message: "trace_id or span_id is missing: want 32 and 16 hexadecimal digits"}
	}
	span.Rollout, span.Attempt = clip(q.Rollout), clip(q.Attempt)
	return span, nil
}

// unhex is an id, or nothing if the text is none.
func unhex(text string) []byte {
	id, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return id
}

// nanoseconds are those of a time in seconds; 0 for one that no clock shows.
func nanoseconds(seconds float64) uint64 {
	if !(seconds > 0 && seconds < 1e10) {
		return 0
	}
	return uint64(seconds * 1e9)
}

// keyValues are attributes in OTLP's form. No list or object matters here.
func keyValues(a map[string]any) []*commonpb.KeyValue {
	var list []*commonpb.KeyValue
	for name, v := range a {
		value := &commonpb.AnyValue{}
		switch v := v.(type) {
		case string:
			value.Value = &commonpb.AnyValue_StringValue{StringValue: v}
		case float64:
			value.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: v}
		case bool:
			value.Value = &commonpb.AnyValue_BoolValue{BoolValue: v}
		default:
			continue
		}
		list = append(list, &commonpb.KeyValue{Key: name, Value: value})
	}
	return list
}
