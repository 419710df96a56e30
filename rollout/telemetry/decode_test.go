package telemetry

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json; charset=utf-8"
)

// payload is an export in JSON.
func payload(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inProtobuf is the same export in protobuf.
func inProtobuf(t testing.TB, body []byte) []byte {
	t.Helper()
	var traces tracepb.TracesData
	if err := protojson.Unmarshal(body, &traces); err != nil {
		t.Fatal(err)
	}
	unhex := func(b *[]byte) {
		raw, err := hex.DecodeString(base64.StdEncoding.EncodeToString(*b))
		if err != nil {
			t.Fatal(err)
		}
		*b = raw
	}
	for _, s := range traces.ResourceSpans[0].ScopeSpans[0].Spans {
		unhex(&s.TraceId)
		unhex(&s.SpanId)
		unhex(&s.ParentSpanId)
	}
	return encode(t, &traces)
}

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// export is a request with spans.
func export(spans ...*tracepb.Span) *tracepb.TracesData {
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}}}}}
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every form of an export gives the same spans.
func TestForms(t *testing.T) {
	for _, name := range dialectNames {
		body := payload(t, name)
		want, broken, err := Decode(jsonType, "", body)
		if err != nil || broken > 0 || len(want) < 5 {
			t.Fatalf("%s: %d spans, %d broken, %v", name, len(want), broken, err)
		}
		binary := inProtobuf(t, body)
		for _, c := range []struct {
			contentType, encoding string
			body                  []byte
		}{
			{jsonType, "gzip", gzipped(t, body)},
			{protobufType, "", binary},
			{protobufType, "GZIP", gzipped(t, binary)},
			{protobufType, "identity", binary},
		} {
			got, broken, err := Decode(c.contentType, c.encoding, c.body)
			if diff := cmp.Diff(want, got); diff != "" || broken > 0 || err != nil {
				t.Errorf("%s, %s %s: %d broken, %v, (-want +got):\n%s", name, c.contentType, c.encoding, broken, err, diff)
			}
		}
	}
}

func TestRefusedBodies(t *testing.T) {
	one := encode(t, export(&tracepb.Span{TraceId: make([]byte, 16)}))
	spans := make([]*tracepb.Span, maxParts)
	for i := range spans {
		spans[i] = &tracepb.Span{}
	}
	many := encode(t, export(spans...))
	deep := &commonpb.AnyValue{}
	for range 2 * maxDepth {
		deep = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{deep}}}}
	}
	nested := encode(t, export(&tracepb.Span{Attributes: []*commonpb.KeyValue{{Key: "deep", Value: deep}}}))
	// Texts in a list take memory, too.
	refs := []*commonpb.EntityRef{{IdKeys: make([]string, maxParts)}}
	lists := encode(t, &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: &resourcepb.Resource{EntityRefs: refs}}}})
	for name, c := range map[string]struct {
		contentType, encoding string
		body                  []byte
		status                int
	}{
		"no type":               {"", "", one, 415},
		"another type":          {"text/plain", "", one, 415},
		"another encoding":      {protobufType, "br", one, 415},
		"no gzip":               {protobufType, "gzip", one, 400},
		"half a gzip":           {protobufType, "gzip", gzipped(t, one)[:20], 400},
		"a bomb":                {protobufType, "gzip", gzipped(t, make([]byte, MaxBody+1)), 413},
		"too large":             {protobufType, "", make([]byte, MaxBody+1), 413},
		"no protobuf":           {protobufType, "", []byte("hello"), 400},
		"cut":                   {protobufType, "", one[:len(one)-1], 400},
		"too many spans":        {protobufType, "", many, 413},
		"too many texts":        {protobufType, "", lists, 413},
		"too deep":              {protobufType, "", nested, 413},
		"no JSON":               {jsonType, "", []byte("hello"), 400},
		"no export":             {jsonType, "", []byte(`{"resourceSpans":7}`), 400},
		"an open text":          {jsonType, "", []byte(`{"resourceSpans":"`), 400},
		"JSON, too many spans":  {jsonType, "", []byte(`{"resourceSpans":[` + strings.Repeat("{},", 2*maxParts) + `{}]}`), 413},
		"JSON, too deep":        {jsonType, "", []byte(strings.Repeat("[", 1000)), 413},
		"JSON in protobuf":      {protobufType, "", []byte(`{"resourceSpans":[]}`), 400},
		"an id that is no text": {jsonType, "", []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":7}]}]}]}`), 400},
	} {
		spans, _, err := Decode(c.contentType, c.encoding, c.body)
		var fault *Fault
		if !errors.As(err, &fault) || fault.Status != c.status || fault.Message == "" || spans != nil {
			t.Errorf("%s: %d spans, %v", name, len(spans), err)
		}
	}
}

// Spans that nothing can refer to are counted, those of newer programs are read as far as they are known.
func TestBrokenAndUnknown(t *testing.T) {
	for body, want := range map[string][2]int{
		`{}`: {0, 0},
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}`:                                                                     {0, 1},
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000000","spanId":"00000000000000a1"}]}]}]}`:       {0, 1},
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174"}]}]}]}`:       {1, 0},
		`{"resourceSpans":[{"new":{"a":[1]},"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"abcd"}]}]}]}`:   {0, 1},
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"zz8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"}]}],"x":1}]}`: {0, 1},
	} {
		spans, broken, err := Decode(jsonType, "", []byte(body))
		if err != nil || len(spans) != want[0] || broken != want[1] {
			t.Errorf("%s: %d spans, %d broken, %v", body, len(spans), broken, err)
		}
	}
}

// What is kept of a span does not depend on how long its texts are.
func TestLongTextsAreNoNames(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	text := func(key, value string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
	}
	body := encode(t, export(&tracepb.Span{
		TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{2}, 8), Name: long,
		Attributes: []*commonpb.KeyValue{text("gen_ai.response.id", long), text("gen_ai.agent.name", long), text("agent.name", "solver")},
	}))
	got, _, err := Decode(protobufType, "", body)
	want := []Span{{
		ID: ID{[16]byte(bytes.Repeat([]byte{1}, 16)), [8]byte(bytes.Repeat([]byte{2}, 8))}, Kind: KindCall, Agents: []string{"solver"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}
