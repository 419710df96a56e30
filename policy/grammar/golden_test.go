package grammar

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Grammars are in bundles, and masks in what is trained on: neither may change. Each line of the golden file is what is
// demanded, the grammar's bytes, and a digest of the masks along some completions within it.
func TestGolden(t *testing.T) {
	const file = "testdata/golden.txt"
	v, _ := vocabulary(t, 330)
	var got strings.Builder
	for _, c := range []struct {
		name   string
		demand Demand
	}{
		{"object", Demand{Object: true}},
		{"schema", Demand{Schema: []byte(answerSchema)}},
		{"recursion", Demand{Schema: []byte(`{"type":"array","items":{"anyOf":[{"$ref":"#"},{"enum":["a",1,null]}]},"maxItems":3}`)}},
		{"pattern", Demand{Schema: []byte(`{"pattern":"^[a-c]{2,4}-\\d+$"}`)}},
		{"call", Demand{Calls: 2, Tools: []Tool{{Name: "now"}, {Name: "get", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer"}}}`)}}}},
		{"text", Demand{Text: true, Calls: 1, Tools: []Tool{{Name: "now"}}}},
	} {
		g := compile(t, c.demand)
		a, h := NewAutomaton(g, v), sha256.New()
		random := rand.New(rand.NewPCG(8, 8))
		for _, room := range []int{5, 20, 60} {
			m := a.NewMatcher(room)
			tokens, _ := sample(t, a, room, random)
			for _, token := range tokens {
				for _, word := range m.Allowed() {
					h.Write(binary.LittleEndian.AppendUint64(nil, word))
				}
				m.Advance(token)
			}
		}
		fmt.Fprintf(&got, "%s %x %x\n", c.name, g.Bytes(), h.Sum(nil))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}
