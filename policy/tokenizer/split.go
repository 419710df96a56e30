package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// Pattern is the rule by which text is cut into pieces, as the regular expression that it is known by (that of
// Qwen's tokenizers). The alternatives, tried in order at each position:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)      an English contraction
//	[^\r\n\p{L}\p{N}]?\p{L}+          a word; it may carry one leading space or mark
//	\p{N}                             one digit, always alone
//	" ?[^\s\p{L}\p{N}]+[\r\n]*"       a run of punctuation, with a space before and line ends after it
//	\s*[\r\n]+                        blank lines
//	\s+(?!\S)                         spaces, except the last one before a word
//	\s+                               spaces
//
// A byte that is not part of valid UTF-8 counts as punctuation.
const Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// class is what Pattern distinguishes.
type class uint8

const (
	mark class = iota
	letter
	number
	space
	newline // \r or \n
	end     // no text left
)

// classify is the class and length in bytes of the first character of s.
func classify(s string) (class, int) {
	if s == "" {
		return end, 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1:
		return mark, 1
	case unicode.IsLetter(r):
		return letter, n
	case unicode.IsNumber(r):
		return number, n
	case unicode.IsSpace(r):
		return space, n
	}
	return mark, n
}

// ascii holds the class of each one-byte character.
var ascii = func() (t [utf8.RuneSelf]class) {
	for i := range t {
		r := rune(i)
		switch {
		case r == '\r' || r == '\n':
			t[i] = newline
		case unicode.IsLetter(r):
			t[i] = letter
		case unicode.IsNumber(r):
			t[i] = number
		case unicode.IsSpace(r):
			t[i] = space
		}
	}
	return t
}()

// next is the length of the first piece of s, which is not empty.
func next(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	first, n := classify(s)
	switch first {
	case letter:
		return n + run(s[n:], letter)
	case number:
		return n
	case newline:
		return blank(s)
	}
	if c, _ := classify(s[n:]); c == letter {
		return n + run(s[n:], letter)
	}
	if first == mark {
		return punctuation(s, 0)
	}
	if c, _ := classify(s[n:]); s[0] == ' ' && c == mark {
		return punctuation(s, 1)
	}
	return blank(s)
}

// contraction is the length of an English contraction at the start of s, or 0. Besides the letters themselves, the
// long s (U+017F) is an s without case.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	if len(s) > 2 && s[1:3] == "ſ" {
		return 3
	}
	return 0
}

// run is the length of the characters of class c that s starts with.
func run(s string, c class) int {
	at := 0
	for {
		got, n := classify(s[at:])
		if got != c {
			return at
		}
		at += n
	}
}

// punctuation is the length of the marks of s from at on, and the line ends after them.
func punctuation(s string, at int) int {
	at += run(s[at:], mark)
	return at + run(s[at:], newline)
}

// blank is the length of the piece at the start of s, which starts with white space: up to the last line end in
// it; or else all of it, without the last character if text follows.
func blank(s string) int {
	lines, last, at := 0, 0, 0
	for {
		c, n := classify(s[at:])
		if c != space && c != newline {
			if lines > 0 {
				return lines
			}
			if c == end || last == 0 {
				return at
			}
			return last
		}
		last = at
		at += n
		if c == newline {
			lines = at
		}
	}
}
