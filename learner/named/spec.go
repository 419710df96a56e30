package named

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a specification: a kind's name and parameters as name=value, between spaces, in any order. Its error is as
// that of New.
func (t Table[T]) Parse(spec string) (Choice[T], error) {
	words := strings.Fields(spec)
	if len(words) == 0 {
		return Choice[T]{}, fmt.Errorf("no %s is named; use %s", t.Part, list(t.Names(), "or"))
	}
	if _, err := t.kind(words[0]); err != nil {
		return Choice[T]{}, err
	}
	values := make(map[string]float64, len(words)-1)
	for _, word := range words[1:] {
		name, text, ok := strings.Cut(word, "=")
		v, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			return Choice[T]{}, fmt.Errorf("%s %s: %q is not a parameter and a number; write it like name=0.5", t.Part, words[0], word)
		}
		if _, twice := values[name]; twice {
			return Choice[T]{}, fmt.Errorf("%s %s: %s is there twice", t.Part, words[0], name)
		}
		values[name] = v
	}
	return t.New(words[0], values)
}
