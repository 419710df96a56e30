package telemetry

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	// MaxBody bounds the body of an export, in bytes after decompression. It is what the specification of OTLP recommends.
	MaxBody = 20 << 20
	// maxParts bounds the messages and lists inside a body, each of which takes memory however short it is written.
	maxParts = 1 << 18
	// maxDepth bounds how deeply they nest.
	maxDepth = 64
)

// Form is how a body is written.
type Form uint8

// The forms of OTLP/HTTP.
const (
	Protobuf Form = iota + 1
	JSON
)

// FormOf reads a Content-Type. Where there is none of OTLP's the form is Protobuf, which answers are then written in.
func FormOf(contentType string) (f Form, ok bool) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == "application/x-protobuf":
		return Protobuf, true
	case err == nil && media == "application/json":
		return JSON, true
	}
	return Protobuf, false
}

// ContentType is the form's.
func (f Form) ContentType() string {
	if f == JSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// Decode reads the body of an export, given its Content-Type and Content-Encoding. Spans without ids, which nothing can
// refer to, are left out and counted as broken. Errors are *Fault.
func Decode(contentType, encoding string, body []byte) (spans []Span, broken int, err error) {
	form, ok := FormOf(contentType)
	if !ok {
		return nil, 0, &Fault{Status: 415, Message: fmt.Sprintf("content type %.80q: want application/x-protobuf or application/json", contentType)}
	}
	if body, err = decompress(encoding, body); err != nil {
		return nil, 0, err
	}
	traces := &tracepb.TracesData{} // has the fields of ExportTraceServiceRequest, without the server that comes with that
	switch form {
	case Protobuf:
		err = countWire(traces.ProtoReflect().Descriptor(), body)
		if err == nil {
			err = proto.UnmarshalOptions{RecursionLimit: maxDepth, DiscardUnknown: true}.Unmarshal(body, traces)
		}
	case JSON:
		err = countJSON(body)
		if err == nil {
			err = protojson.UnmarshalOptions{RecursionLimit: maxDepth, DiscardUnknown: true}.Unmarshal(body, traces)
		}
	}
	var fault *Fault
	switch {
	case errors.As(err, &fault):
		return nil, 0, fault
	case err != nil:
		return nil, 0, &Fault{Status: 400, Message: "the body is no export of traces: " + err.Error()}
	}
	for _, resource := range traces.ResourceSpans {
		whole := newAttributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span, ok := read(s, form)
				if !ok {
					broken++
					continue
				}
				span.belong(newAttributes(s.GetAttributes()), whole)
				spans = append(spans, span)
			}
		}
	}
	return spans, broken, nil
}

// decompress undoes a body's encoding, up to MaxBody.
func decompress(encoding string, body []byte) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(r, MaxBody+1))
		}
		if err != nil {
			return nil, &Fault{Status: 400, Message: "the body is no gzip: " + err.Error()}
		}
	default:
		return nil, &Fault{Status: 415, Message: fmt.Sprintf("content encoding %.80q: want gzip or none", encoding)}
	}
	if len(body) > MaxBody {
		return nil, &Fault{Status: 413, Message: fmt.Sprintf("the export has more than %d bytes; export fewer spans at once", MaxBody)}
	}
	return body, nil
}
