package telemetry

import (
	"strings"
	"testing"
)

// The answers are those of the specification of OTLP/HTTP, byte for byte.
func TestAnswers(t *testing.T) {
	fault := &Fault{Status: 413, Message: "large"}
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{Accepted(Protobuf, 0, ""), ""},
		{Accepted(JSON, 0, ""), "{}"},
		{Accepted(Protobuf, 300, "full"), "\x0a\x09\x08\xac\x02\x12\x04full"},
		{Accepted(JSON, 300, "full"), `{"partialSuccess":{"errorMessage":"full","rejectedSpans":"300"}}`},
		{fault.Body(Protobuf), "\x08\x08\x12\x05large"},
		{fault.Body(JSON), `{"code":8,"message":"large"}`},
		{(&Fault{Status: 500, Message: "x"}).Body(JSON), `{"code":2,"message":"x"}`},
	} {
		if string(c.got) != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestFormOf(t *testing.T) {
	for contentType, want := range map[string]Form{
		"application/x-protobuf": Protobuf, "Application/JSON; charset=utf-8": JSON, "": 0, "text/plain": 0, ";": 0,
	} {
		f, ok := FormOf(contentType)
		if ok != (want != 0) || ok && (f != want || !strings.HasPrefix(strings.ToLower(contentType), f.ContentType())) {
			t.Errorf("%q: %v, %v", contentType, f, ok)
		}
	}
}
