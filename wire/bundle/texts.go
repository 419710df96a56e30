package bundle

import (
	"math"

	"github.com/lightswarm/lightswarm/wire"
)

// Texts that many calls share stand in a table, each once, in the order of the calls that have them first; a call says 0
// for none, or 1 + the index of its text. So a bundle has one table, and nothing is in it that no call has.

// textIndex is what a call says of its text.
func textIndex(t *table[string], text string) uint64 {
	if text == "" {
		return 0
	}
	return t.index(text) + 1
}

// texts is a table that is read.
type texts struct {
	list []string
	used int // of the list, from its start
}

// readTexts reads a table of texts of at most limit bytes.
func (r *Reader) readTexts(col, limit int) (t texts) {
	distinct := map[string]bool{}
	for c := &r.cols[col]; len(c.rest) > 0; {
		text := c.getString(limit)
		if text == "" || distinct[text] || len(t.list) == r.rollouts*wire.MaxCallsPerRollout {
			c.fail(malformed("a text in a table is empty, or there twice, or there are more than calls"))
		}
		distinct[text] = true
		t.list = append(t.list, text)
	}
	return t
}

// text reads what the next call says of its text.
func (r *Reader) text(col int, t *texts) string {
	i := r.cols[col].get(math.MaxUint32)
	switch {
	case i == 0:
		return ""
	case i > uint64(min(t.used+1, len(t.list))):
		r.cols[col].fail(malformed("a call has a text that is not in the table, or out of its order"))
		return ""
	}
	t.used = max(t.used, int(i))
	return t.list[i-1]
}

// spare says that no call has one of the texts.
func (t *texts) spare() bool { return t.used < len(t.list) }
