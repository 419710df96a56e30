package telemetry

import (
	"encoding/base64"
	"encoding/hex"
	"math"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// attributes are those of a span or event, by name. Of two with one name, which is not allowed, the last counts.
type attributes map[string]*commonpb.AnyValue

func newAttributes(list []*commonpb.KeyValue) attributes {
	a := make(attributes, len(list))
	for _, kv := range list {
		a[kv.GetKey()] = kv.GetValue()
	}
	return a
}

// raw is the text of the first of the names that has one that is not empty.
func (a attributes) raw(names ...string) string {
	for _, name := range names {
		if s := a[name].GetStringValue(); s != "" {
			return s
		}
	}
	return ""
}

// text is the same, as a name or an id that is kept.
func (a attributes) text(names ...string) string { return clip(a.raw(names...)) }

// has says that an attribute is there, whatever its value.
func (a attributes) has(name string) bool { return a[name] != nil }

// number is a number, if it is one and finite.
func (a attributes) number(name string) (v float64, ok bool) {
	switch value := a[name].GetValue().(type) {
	case *commonpb.AnyValue_DoubleValue:
		v = value.DoubleValue
	case *commonpb.AnyValue_IntValue:
		v = float64(value.IntValue)
	default:
		return 0, false
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// read is what matters of a span; ok is false for one that has no ids.
func read(s *tracepb.Span, form Form) (Span, bool) {
	var out Span
	if !setID(out.ID.Trace[:], s.GetTraceId(), form) || !setID(out.ID.Span[:], s.GetSpanId(), form) {
		return Span{}, false
	}
	setID(out.Parent[:], s.GetParentSpanId(), form) // else it is a root
	out.Start, out.End = s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano()
	if out.End < out.Start {
		out.End = out.Start
	}
	interpret(&out, s, form)
	return out, true
}

// setID copies an id, and says whether it is one. JSON has them in hexadecimal, where protobuf's own form of JSON, which
// decoded them, has base64: encoding them again gives back what was written.
func setID(to, from []byte, form Form) bool {
	if form == JSON {
		var err error
		if from, err = hex.DecodeString(base64.StdEncoding.EncodeToString(from)); err != nil {
			return false
		}
	}
	if len(from) != len(to) {
		return false
	}
	zero := true
	for _, b := range from {
		zero = zero && b == 0
	}
	if !zero {
		copy(to, from)
	}
	return !zero
}
