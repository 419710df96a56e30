package tokenizer

// The byte-level alphabet of GPT-2: JSON is text, so a token's bytes are spelled as characters. A byte that is a
// printable character of Latin-1 other than the space and the soft hyphen is that character; the others, in order,
// are U+0100, U+0101 and so on. A space, for instance, is U+0120.
var (
	spelling [256]rune
	unspelt  = make(map[rune]byte, 256)
)

func init() {
	free := rune(0x100)
	for b := range spelling {
		r := rune(b)
		if printable := r > ' ' && r < 0x7f || r > 0xa0 && r != 0xad; !printable {
			r = free
			free++
		}
		spelling[b] = r
		unspelt[r] = byte(b)
	}
}

// spell is bytes in the alphabet.
func spell(b []byte) string {
	out := make([]rune, len(b))
	for i, c := range b {
		out[i] = spelling[c]
	}
	return string(out)
}

// unspell is the inverse of spell; ok is false if s has a character that is not in the alphabet.
func unspell(s string) (b []byte, ok bool) {
	for _, r := range s {
		c, ok := unspelt[r]
		if !ok {
			return nil, false
		}
		b = append(b, c)
	}
	return b, true
}
