package main

import (
	"strings"
	"testing"
)

func TestCalculate(t *testing.T) {
	const wrong = "error: not an expression of whole numbers"
	for expression, want := range map[string]string{
		"7": "7", " 83 - 14 + 23 ": "92", "2+3*4": "14", "(2+3)*4": "20", "10-4-3": "3", "--2": "2", "-(1+2)*3": "-9",
		"99999999999*99999999999": "9999999999800000000001",
		"":                        wrong, "(": wrong, "(1": wrong, "1)": wrong, "1+": wrong, "*1": wrong, "1 2": wrong, "x": wrong, "0x10": wrong, "1_0": wrong,
		"6/2": wrong, strings.Repeat("(", longest+1): wrong, strings.Repeat("1", longest): strings.Repeat("1", longest),
	} {
		if got := calculate(expression); got != want {
			t.Errorf("%.20q: %s, want %s", expression, got, want)
		}
	}
}
