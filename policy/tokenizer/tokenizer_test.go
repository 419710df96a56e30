package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

// corpus is what the tests' tokenizer learns from.
var corpus = []string{
	"What is 12 plus 30? Use the calculator. What is 7 times 8? Use the calculator.",
	`{"expression":"12+30"} {"expression":"7*8"} {"expression":"(4-1)*9"}`,
	"The answer is 42. The answer is 56. The answer isn't 27, it's 28; we'll see.",
	"Anna has 5 apples and buys 3 more. How many apples does Anna have now?",
	"Où est la gare? Größe, naïve, 東京は日本の首都です。 Привет, мир!  Ça va?",
	"func main() {\n\tfmt.Println(\"hello\")\n}\n\n\n  indented   text\r\n",
	"<|end|> is only text here, and so is <|call|>.",
}

var marks = []string{"<|pad|>", "<|call|>", "<|end|>"}

func trained(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Train(slices.Values(corpus), 400, marks)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// text draws strings that look like text, are odd Unicode, or are any bytes.
func text() *rapid.Generator[string] {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"What", " is", "12", "'s", "'LL", "'ſ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2028",
			"calculator", " answer", `{"`, `":"`, "é", "日本", "٣", "½", "<|end|>", "\xff", "\xe6\x97", "!", " ?", "🙂", "\u0301"}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }),
	)
	return rapid.Map(rapid.SliceOfN(word, 0, 12), func(words []string) string { return strings.Join(words, "") })
}

func TestRoundTrip(t *testing.T) {
	tok := trained(t)
	rapid.Check(t, func(t *rapid.T) {
		s := text().Draw(t, "text")
		ids := tok.Encode(s)
		if got := tok.Decode(ids); got != s {
			t.Fatalf("%q became %q", s, got)
		}
		for _, id := range ids {
			if tok.IsSpecial(id) {
				t.Fatalf("text became the special token %d", id)
			}
		}
		if again := tok.Encode(s); !slices.Equal(ids, again) {
			t.Fatalf("from the cache %v, before %v", again, ids)
		}
	})
}

// naive is the definition of encoding a piece: merge the pair of lowest rank, leftmost first.
func naive(t *Tokenizer, piece string) []int32 {
	var ids []int32
	for i := range len(piece) {
		ids = append(ids, t.bytes[piece[i]])
	}
	for {
		best, at := merge{rank: int32(len(t.pairs))}, -1
		for i := range len(ids) - 1 {
			if m, ok := t.merges[pair{ids[i], ids[i+1]}]; ok && m.rank < best.rank {
				best, at = m, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.id)
	}
}

func TestMergerIsTheDefinition(t *testing.T) {
	// Many merges over two letters overlap in every way.
	tok, err := Train(slices.Values([]string{"aababbabaababbbaaabbabababbbbaabaaaabbbabba", "abbaabbababaabab"}), 300, nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 80, -1).Draw(t, "piece")
		var m merger
		if diff := cmp.Diff(naive(tok, piece), m.encode(tok, nil, piece)); diff != "" {
			t.Fatalf("%s: %s", piece, diff)
		}
	})
}

func TestEncodeIsSafeForConcurrentUse(t *testing.T) {
	tok := trained(t)
	want := tok.Encode(strings.Join(corpus, "\n"))
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 20 {
				if got := tok.Encode(strings.Join(corpus, "\n")); !slices.Equal(got, want) {
					t.Error("another goroutine changed an encoding")
					return
				}
			}
		})
	}
	g.Wait()
}

func TestDecodeTakesAnyID(t *testing.T) {
	tok := trained(t)
	end, ok := tok.Special("<|end|>")
	if !ok || !tok.IsSpecial(end) {
		t.Fatal("no special token <|end|>")
	}
	ids := append(tok.Encode("a"), end, -1, int32(tok.VocabSize()), 1<<31-1)
	if got, want := tok.Decode(ids), "a<|end|>\uFFFD\uFFFD\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if tok.IsSpecial(-1) || tok.IsSpecial(1<<30) {
		t.Error("ids outside the vocabulary are special")
	}
	if _, ok := tok.Special("<|user|>"); ok {
		t.Error("an unknown special token")
	}
	if diff := cmp.Diff([]Special{{0, "<|pad|>"}, {1, "<|call|>"}, {2, "<|end|>"}}, tok.Specials()); diff != "" {
		t.Error(diff)
	}
}

// TestReference compares with an independent implementation: reference.json holds what Hugging Face's tokenizers
// made, with our tokenizer.json, of each text (see reference.py).
func TestReference(t *testing.T) {
	tok := trained(t)
	data, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/tokenizer.json"
	if *update {
		if err := os.WriteFile(golden, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Fatalf("training gives another tokenizer than %s; if that is meant, run with -update and then reference.py", golden)
	}
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text   string
		Pieces []string
		IDs    []int32
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		var pieces []string
		for rest := c.Text; rest != ""; {
			n := next(rest)
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if diff := cmp.Diff(c.Pieces, pieces); diff != "" {
			t.Errorf("pieces of %q: %s", c.Text, diff)
		}
		if diff := cmp.Diff(c.IDs, tok.Encode(c.Text)); diff != "" {
			t.Errorf("ids of %q: %s", c.Text, diff)
		}
	}
}

func TestLongPieceIsNotQuadratic(t *testing.T) {
	// Long without a place to cut: quadratic merging would take minutes.
	tok := trained(t)
	s := strings.Repeat("apples", 1<<15)
	if got := tok.Decode(tok.Encode(s)); got != s {
		t.Error("a long word does not round-trip")
	}
}

func FuzzEncode(f *testing.F) {
	tok := trained(f)
	for _, s := range corpus {
		f.Add([]byte(s))
	}
	f.Add([]byte("\xff\xfe '\xc5\xbf 1\u00a0\n "))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids := tok.Encode(string(b))
		if got := tok.AppendDecode(nil, ids); !bytes.Equal(got, b) {
			t.Fatalf("%q became %q", b, got)
		}
	})
}

func FuzzLoad(f *testing.F) {
	tok, err := Train(slices.Values(corpus), 300, marks)
	if err != nil {
		f.Fatal(err)
	}
	data, err := tok.MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(bytes.ReplaceAll(data, []byte(`["a","n"]`), []byte(`"a n"`)))
	f.Add([]byte(`{"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Load(data)
		if err != nil {
			if !errors.Is(err, ErrTokenizer) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		again, err := tok.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Load(again)
		if err != nil {
			t.Fatalf("a loaded tokenizer does not load again: %v", err)
		}
		if back.Digest() != tok.Digest() {
			t.Fatal("the digest changed")
		}
		const s = "What is 12+30? \xff"
		if got := tok.Decode(tok.Encode(s)); got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
