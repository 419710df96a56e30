package calc

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEvaluate(t *testing.T) {
	for expression, want := range map[string]string{
		"37+12":                         "49",
		" 4 * 37 - 12 ":                 "136",
		"2+3*4-5":                       "9",
		"(2+3)*(4-5)":                   "-5",
		"10-3-2":                        "5",
		"3--4":                          "7",
		"-(2+3)*2":                      "-10",
		"007":                           "7",
		"99999999999*99999999999":       "9999999999800000000001",
		"":                              "error: expected a number at 0",
		"2+":                            "error: expected a number at 2",
		"(2+3":                          "error: expected ) at 4",
		"2)":                            "error: unexpected character at 1",
		"2 3":                           "error: unexpected character at 2",
		"7/2":                           "error: unexpected character at 1",
		"x":                             "error: expected a number at 0",
		"2\x00":                         "error: unexpected character at 1",
		"2+\x003":                       "error: expected a number at 2",
		strings.Repeat("(", 200):        "error: nested too deeply at 32",
		strings.Repeat("-", 200):        "error: nested too deeply at 32",
		strings.Repeat("1", 257):        "error: more than 256 characters",
		strings.Repeat("1+", 127) + "1": "128",
	} {
		if got := Evaluate(expression); got != want {
			t.Errorf("Evaluate(%q) = %q, want %q", expression, got, want)
		}
	}
}

// TestEvaluateFollowsTheGrammar renders random syntax trees with only the parentheses that precedence needs.
func TestEvaluateFollowsTheGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, _, want := tree(t, 4)
		if len(text) > MaxExpression {
			t.Skip("too long")
		}
		if got := Evaluate(text); got != want.String() {
			t.Fatalf("Evaluate(%q) = %q, want %s", text, got, want)
		}
	})
}

// tree returns an expression, the precedence of its outermost operator (1 sum, 2 product, 3 number) and its value.
func tree(t *rapid.T, depth int) (text string, precedence int, value *big.Int) {
	operator := rapid.SampledFrom([]string{"", "+", "-", "*"}).Draw(t, "operator")
	if depth == 0 || operator == "" {
		n := rapid.Int64Range(0, 99999).Draw(t, "number")
		return big.NewInt(n).String(), 3, big.NewInt(n)
	}
	left, leftPrecedence, a := tree(t, depth-1)
	right, rightPrecedence, b := tree(t, depth-1)
	precedence = 1
	if operator == "*" {
		precedence = 2
	}
	if leftPrecedence < precedence {
		left = "(" + left + ")"
	}
	if rightPrecedence <= precedence {
		right = "(" + right + ")"
	}
	value = new(big.Int)
	switch operator {
	case "+":
		value.Add(a, b)
	case "-":
		value.Sub(a, b)
	case "*":
		value.Mul(a, b)
	}
	return left + operator + right, precedence, value
}

func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"37+12", "(2+3)*4", "3--4", "2)", "\x00", "((((", "9*9*9*9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		got := Evaluate(expression)
		if len(got) > MaxExpression+2 {
			t.Fatalf("Evaluate(%q) has %d characters", expression, len(got))
		}
		if _, ok := new(big.Int).SetString(got, 10); !ok && !strings.HasPrefix(got, "error: ") {
			t.Fatalf("Evaluate(%q) = %q", expression, got)
		}
	})
}
