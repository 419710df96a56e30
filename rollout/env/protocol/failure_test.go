package protocol

import "testing"

// What an environment writes cannot command the terminal of whoever reads of it.
func TestTextsAreHarmless(t *testing.T) {
	const written = "one\ttwo\n\x1b]52;c;bm8=\a\u202ethree\r\xffÄ\u00a0漢"
	const want = "one\ttwo\n\uFFFD]52;c;bm8=\uFFFD\uFFFDthree\uFFFD\uFFFDÄ\u00a0漢"
	if got := Clip([]byte(written)); got != want {
		t.Errorf("clipped it is %q", got)
	}
	var c Complaints
	if _, err := c.Write([]byte(written)); err != nil || c.String() != want {
		t.Errorf("as a complaint it is %q, %v", c.String(), err)
	}
}
