package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naiveTrain is the definition in Train's comment: count all pairs anew for each merge.
func naiveTrain(texts []string, vocab int, specials []string) []pair {
	var words [][]int32
	for _, text := range texts {
		for text != "" {
			n := next(text)
			var ids []int32
			for i := range n {
				ids = append(ids, int32(len(specials))+int32(text[i]))
			}
			words = append(words, ids)
			text = text[n:]
		}
	}
	var spelled []string
	taken := map[string]bool{}
	for _, s := range specials {
		spelled = append(spelled, s)
		taken[s] = true
	}
	for b := range 256 {
		spelled = append(spelled, spell([]byte{byte(b)}))
		taken[spelled[len(spelled)-1]] = true
	}
	var merged []pair
	for len(spelled) < vocab {
		counts := map[pair]int{}
		for _, w := range words {
			for i := range len(w) - 1 {
				counts[pair{w[i], w[i+1]}]++
			}
		}
		best, most := pair{}, 1
		for p, n := range counts {
			if taken[spelled[p.left]+spelled[p.right]] {
				continue
			}
			if n > most || n == most && n > 1 && (p.left < best.left || p.left == best.left && p.right < best.right) {
				best, most = p, n
			}
		}
		if most < 2 {
			break
		}
		id := int32(len(spelled))
		spelled = append(spelled, spelled[best.left]+spelled[best.right])
		taken[spelled[id]] = true
		merged = append(merged, best)
		for i, w := range words {
			var joined []int32
			for k := 0; k < len(w); k++ {
				if k+1 < len(w) && w[k] == best.left && w[k+1] == best.right {
					joined = append(joined, id)
					k++
				} else {
					joined = append(joined, w[k])
				}
			}
			words[i] = joined
		}
	}
	return merged
}

func TestTrainIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("aab bc1é|<")), 0, 60, -1)
		texts := rapid.SliceOfN(letters, 0, 4).Draw(t, "texts")
		specials := rapid.SampledFrom([][]string{nil, {"ab"}, {"<|", "ba", "Ġb"}}).Draw(t, "specials")
		vocab := 256 + len(specials) + rapid.IntRange(0, 30).Draw(t, "merges")
		tok, err := Train(slices.Values(texts), vocab, specials)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naiveTrain(texts, vocab, specials), tok.pairs, cmp.AllowUnexported(pair{})); diff != "" {
			t.Fatal(diff)
		}
		slices.Reverse(texts)
		again, err := Train(slices.Values(texts), vocab, specials)
		if err != nil || again.Digest() != tok.Digest() {
			t.Fatalf("another order of texts gives another tokenizer (%v)", err)
		}
	})
}

func TestTrainedTokenizer(t *testing.T) {
	tok := trained(t)
	for text, want := range map[string]string{
		"What is 12": "What| is| |1|2",
		"The answer": "The| answer",
	} {
		var got []string
		for _, id := range tok.Encode(text) {
			got = append(got, string(tok.Token(id)))
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q is %s, want %s", text, s, want)
		}
	}
	for id := range int32(tok.VocabSize()) {
		token := tok.Token(id)
		if len(token) > 1 && !tok.IsSpecial(id) && slices.ContainsFunc(token, func(b byte) bool { return b >= '0' && b <= '9' }) {
			t.Errorf("token %q has a digit in it", token)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	none := slices.Values([]string(nil))
	for name, train := range map[string]func() (*Tokenizer, error){
		"too small":     func() (*Tokenizer, error) { return Train(none, 258, marks) },
		"too large":     func() (*Tokenizer, error) { return Train(none, MaxVocab+1, marks) },
		"twice":         func() (*Tokenizer, error) { return Train(none, 300, []string{"x|", "x|"}) },
		"empty special": func() (*Tokenizer, error) { return Train(none, 300, []string{""}) },
		"a byte":        func() (*Tokenizer, error) { return Train(none, 300, []string{"a"}) },
		"not UTF-8":     func() (*Tokenizer, error) { return Train(none, 300, []string{"\xff\xff"}) },
	} {
		if _, err := train(); !errors.Is(err, ErrTokenizer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
