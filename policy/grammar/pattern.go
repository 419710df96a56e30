package grammar

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPattern bounds a pattern, in bytes.
const maxPattern = 512

// escapes are what may follow a backslash in a pattern besides punctuation: what regular expressions of JavaScript, which
// JSON schemas are written in, and of Go take for the same.
const escapes = "dDwWsSnrtf"

// pattern takes a JSON string in which a regular expression is found. Of what the expression leaves open, such as by a
// dot, it takes printable ASCII only.
func (c *compiler) pattern(pattern, path string) {
	if len(pattern) > maxPattern {
		c.unsupported("pattern", path, "it has %d bytes, at most %d", len(pattern), maxPattern)
		return
	}
	for rest := pattern; ; {
		at := strings.IndexAny(rest, `\([`)
		if at < 0 {
			break
		}
		mark := rest[at]
		rest = rest[at+1:]
		next, _ := utf8.DecodeRuneInString(rest)
		word := '0' <= next && next <= '9' || 'a' <= next|0x20 && next|0x20 <= 'z'
		punctuation := next > ' ' && next < 0x7f && !word
		switch {
		case mark == '\\' && !punctuation && !strings.ContainsRune(escapes, next),
			mark == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:"),
			mark == '[' && (strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "^]") || strings.Contains(rest, "[:")):
			c.unsupported("pattern", path, "%q is not understood", clip(string(mark)+rest))
			return
		}
		if mark == '\\' {
			rest = rest[utf8.RuneLen(next):]
		}
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		c.unsupported("pattern", path, "%s", err)
		return
	}
	parts := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		parts = parsed.Sub
	}
	c.text(`"`)
	if len(parts) > 0 && parts[0].Op == syntax.OpBeginText {
		parts = parts[1:]
	} else {
		c.many(c.character)
	}
	end := len(parts) > 0 && parts[len(parts)-1].Op == syntax.OpEndText
	if end {
		parts = parts[:len(parts)-1]
	}
	for _, part := range parts {
		c.expression(part, path)
	}
	if !end {
		c.many(c.character)
	}
	c.text(`"`)
}

// expression takes what a part of a pattern matches.
func (c *compiler) expression(r *syntax.Regexp, path string) {
	if c.err != nil || c.full() {
		return // what is too large is refused in the end
	}
	sub := func() { c.expression(r.Sub[0], path) }
	switch r.Op {
	case syntax.OpEmptyMatch:
	case syntax.OpLiteral:
		if r.Flags&syntax.FoldCase != 0 {
			c.unsupported("pattern", path, "it ignores case")
			return
		}
		for _, char := range r.Rune {
			c.text(spelt(char))
		}
	case syntax.OpCharClass:
		c.characters(r.Rune, path)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		c.characters([]rune{' ', '~'}, path)
	case syntax.OpCapture:
		sub()
	case syntax.OpStar:
		c.many(sub)
	case syntax.OpPlus:
		sub()
		c.many(sub)
	case syntax.OpQuest:
		c.optional(sub)
	case syntax.OpRepeat:
		for range r.Min {
			sub()
		}
		if r.Max < 0 {
			c.many(sub)
		} else {
			c.upTo(r.Max-r.Min, sub)
		}
	case syntax.OpConcat:
		for _, part := range r.Sub {
			c.expression(part, path)
		}
	case syntax.OpAlternate:
		var ways []func()
		for _, part := range r.Sub {
			ways = append(ways, func() { c.expression(part, path) })
		}
		c.choice(ways...)
	default:
		c.unsupported("pattern", path, "%q is not understood", clip(r.String()))
	}
}

// characters takes one of the characters of some ranges: printable ASCII, or others if they are single. What a negation
// leaves over is not meant to be single: whether \S takes a vertical tab is what dialects differ in.
func (c *compiler) characters(ranges []rune, path string) {
	negated := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	var plain class
	var texts []string
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if low == high && !negated && (low < ' ' || low > '~') {
			texts = append(texts, spelt(low))
		}
		for char := max(low, ' '); char <= min(high, '~'); char++ {
			last := len(plain) - 1
			switch b := byte(char); {
			case b == '"' || b == '\\':
				texts = append(texts, spelt(char))
			case last >= 0 && plain[last].high == b-1:
				plain[last].high = b
			default:
				plain = append(plain, byteRange{b, b})
			}
		}
	}
	var ways []func()
	if len(plain) > 0 {
		ways = append(ways, func() { c.class(plain...) })
	}
	if len(texts) > 0 {
		ways = append(ways, func() { c.oneOf(texts) })
	}
	if len(ways) == 0 {
		c.unsupported("pattern", path, "%s has no printable character of ASCII", fmt.Sprintf("%q", ranges))
		return
	}
	c.choice(ways...)
}

// spelt is a character in a JSON string.
func spelt(char rune) string {
	quoted := quote(string(char))
	return quoted[1 : len(quoted)-1]
}
