package grammar

import "strings"

var (
	digit    = byteRange{'0', '9'}
	positive = byteRange{'1', '9'}
	follows  = byteRange{0x80, 0xbf} // a byte of UTF-8 that is not a character's first
)

// value takes any JSON.
func (p *program) value() {
	p.call("value", func() {
		p.choice(
			p.string,
			p.number,
			p.object,
			p.array,
			func() { p.oneOf([]string{"true", "false", "null"}) },
		)
	})
}

// object takes any JSON object.
func (p *program) object() { p.mapOf(p.value) }

// mapOf takes an object whose members have any names, and values that value takes.
func (p *program) mapOf(value func()) {
	member := func() {
		p.string()
		p.text(":")
		value()
	}
	p.list("{", member, "}")
}

// array takes any JSON array.
func (p *program) array() { p.list("[", p.value, "]") }

// list takes any number of items.
func (p *program) list(open string, item func(), end string) {
	p.text(open)
	p.optional(func() {
		item()
		p.many(func() {
			p.text(",")
			item()
		})
	})
	p.text(end)
}

// string takes any JSON string, in its shortest spelling.
func (p *program) string() {
	p.call("string", func() {
		p.text(`"`)
		p.many(p.character)
		p.text(`"`)
	})
}

// boundedString takes a JSON string of low to high characters; high is -1 for any number.
func (p *program) boundedString(low, high int) {
	character := func() { p.call("character", p.character) }
	p.text(`"`)
	for range low {
		if p.full() {
			break
		}
		character()
	}
	if high < 0 {
		p.many(character)
	} else {
		p.upTo(high-low, character)
	}
	p.text(`"`)
}

// character takes one character of a JSON string. Only what has to be escaped is, and in the shortest way.
func (p *program) character() {
	p.choice(
		func() { p.class(byteRange{0x20, '!'}, byteRange{'#', '['}, byteRange{']', 0x7f}) },
		func() {
			p.text(`\`)
			p.choice(
				func() {
					p.class(byteRange{'"', '"'}, byteRange{'\\', '\\'}, byteRange{'b', 'b'}, byteRange{'f', 'f'},
						byteRange{'n', 'n'}, byteRange{'r', 'r'}, byteRange{'t', 't'})
				},
				func() {
					p.text("u00")
					p.choice(
						func() {
							p.text("0")
							p.class(byteRange{'0', '7'}, byteRange{'b', 'b'}, byteRange{'e', 'f'})
						},
						func() {
							p.text("1")
							p.class(digit, byteRange{'a', 'f'})
						},
					)
				},
			)
		},
		p.wide,
	)
}

// wide takes a character of UTF-8 that has more than one byte.
func (p *program) wide() {
	sequence := func(bytes ...byteRange) func() {
		return func() {
			for _, b := range bytes {
				p.class(b)
			}
		}
	}
	only := func(b byte) byteRange { return byteRange{b, b} }
	p.choice(
		sequence(byteRange{0xc2, 0xdf}, follows),
		sequence(only(0xe0), byteRange{0xa0, 0xbf}, follows),
		func() {
			p.class(byteRange{0xe1, 0xec}, byteRange{0xee, 0xef})
			p.class(follows)
			p.class(follows)
		},
		sequence(only(0xed), byteRange{0x80, 0x9f}, follows), // no surrogates
		sequence(only(0xf0), byteRange{0x90, 0xbf}, follows, follows),
		sequence(byteRange{0xf1, 0xf3}, follows, follows, follows),
		sequence(only(0xf4), byteRange{0x80, 0x8f}, follows, follows),
	)
}

// prose takes any text.
func (p *program) prose() {
	p.many(func() {
		p.choice(func() { p.class(byteRange{0, 0x7f}) }, p.wide)
	})
}

// digits is how many digits a number has at most before its point, and behind it: every such integer is a float64.
const digits = 15

// number takes any JSON number of at most digits digits before the point and behind it and two of the exponent.
func (p *program) number() {
	p.call("number", func() {
		p.optional(func() { p.text("-") })
		p.whole()
		p.optional(func() {
			p.text(".")
			p.class(digit)
			p.upTo(digits-1, func() { p.class(digit) })
		})
		p.optional(func() {
			p.text("e")
			p.optional(func() { p.text("-") })
			p.class(positive)
			p.optional(func() { p.class(digit) })
		})
	})
}

// whole takes a number without sign.
func (p *program) whole() {
	p.choice(func() { p.text("0") }, p.natural)
}

// natural takes an integer from 1 on.
func (p *program) natural() {
	p.class(positive)
	p.upTo(digits-1, func() { p.class(digit) })
}

// integer takes an integer of at most digits digits, and not less than low, which is 0, 1 or nil for no bound.
func (p *program) integer(low *int) {
	switch {
	case low == nil:
		p.choice(func() { p.text("0") }, func() {
			p.optional(func() { p.text("-") })
			p.natural()
		})
	case *low == 0:
		p.whole()
	default:
		p.natural()
	}
}

// quote is a string as JSON, in the spelling that string takes.
func quote(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c >= 0x20:
			b.WriteRune(c)
		default:
			if i := strings.IndexRune("\b\f\n\r\t", c); i >= 0 {
				b.WriteString(`\` + "bfnrt"[i:i+1])
			} else {
				b.WriteString(`\u00` + string(hex[c>>4]) + string(hex[c&15]))
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}
