package bundle

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOlderReadersMissWhatWasAsked: a reader of minor 0 finds all else in its place, and a bundle that says nothing of
// what was asked is the file that it was before it could.
func TestOlderReadersMissWhatWasAsked(t *testing.T) {
	for name, prepare := range map[string]func(*Bundle) *Bundle{
		"plain":    func(b *Bundle) *Bundle { return b },
		"grammars": constrain,
	} {
		t.Run(name, func(t *testing.T) {
			silent := prepare(newGenerator(11, 0.5).group(8))
			plain, err := Encode(silent)
			if err != nil {
				t.Fatal(err)
			}
			data, err := Encode(ask(prepare(newGenerator(11, 0.5).group(8))))
			if err != nil {
				t.Fatal(err)
			}
			if plain[len(magic)+1] != minorPlain || data[len(magic)+1] != minorAsked {
				t.Fatalf("the minors are %d and %d", plain[len(magic)+1], data[len(magic)+1])
			}
			if more := len(data) - len(plain); more > 100 {
				t.Errorf("what was asked takes %d bytes", more)
			}
			older := bytes.Clone(data)
			older[len(magic)+1] = minorPlain
			got, err := Decode(older, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(silent, got, sameBits); d != "" {
				t.Error(d)
			}
		})
	}
}
