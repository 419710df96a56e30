package bundle

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	g := newGenerator(1, 0.5)
	for range 20 {
		want := g.group(8)
		data, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		again, err := Encode(got)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatal("not deterministic")
		}
	}
}
