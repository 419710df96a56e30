package bundle

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lightswarm/lightswarm/wire"
)

// The columns, in the order in which they are stored. doc.go says what each holds.
const (
	colSettings = iota
	colNames
	colFloats
	colMember
	colTask
	colOutcome
	colReward
	colComponents
	colComponentValue
	colCalls
	colCopy
	colAgent
	colFinish
	colCallReward
	colPromptSource
	colPromptCut
	colPromptNew
	colCompletionSource
	colCompletionShared
	colLogProbsOwn
	colCompletionNew
	colPromptTokens
	colCompletionTokens
	colLogProbClass
	// Those of files of major 2:
	colGrammars
	colGrammar
	// Those of files of minor 1, behind those of their major:
	colAskedTexts
	colAsked
	columns // how many there are
)

// columnsOf are the columns of a file of a major and minor, in order.
func columnsOf(major, minor byte) (list []int) {
	for i := range columns {
		switch i {
		case colGrammars, colGrammar:
			if major < majorGrammars {
				continue
			}
		case colAskedTexts, colAsked:
			if minor < minorAsked {
				continue
			}
		}
		list = append(list, i)
	}
	return list
}

// column is a growing list of unsigned varints, or of bytes.
type column []byte

func (c *column) put(v uint64) { *c = binary.AppendUvarint(*c, v) }

// putSigned stores small numbers of either sign in few bytes.
func (c *column) putSigned(v int64) { *c = binary.AppendVarint(*c, v) }

// putFloat stores a float32 in four bytes.
func (c *column) putFloat(v float32) { *c = binary.LittleEndian.AppendUint32(*c, math.Float32bits(v)) }

func (c *column) putString(s string) {
	c.put(uint64(len(s)))
	*c = append(*c, s...)
}

// cursor reads a column from its start. The first failure sticks, and every later read gives 0.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.rest = nil
}

// get reads a number of at most limit.
func (c *cursor) get(limit uint64) uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.fail(malformed("a column ends early"))
		return 0
	}
	if v > limit {
		c.fail(malformed(fmt.Sprintf("a number is %d where at most %d makes sense", v, limit)))
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) getSigned() int64 {
	v, n := binary.Varint(c.rest)
	if n <= 0 {
		c.fail(malformed("a column ends early"))
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// take reads n raw bytes, which stay in the column's memory.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.fail(malformed("a column ends early"))
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) getFloat() float32 {
	if b := c.take(4); len(b) == 4 {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) getString(limit int) string { return string(c.take(c.get(uint64(limit)))) }

// joinColumns concatenates columns, each behind its length.
func joinColumns(cols []column) []byte {
	var out column
	for _, c := range cols {
		out.put(uint64(len(c)))
		out = append(out, c...)
	}
	return out
}

// splitColumns undoes joinColumns for a file of a major and minor without copying; columns that it does not have are
// empty. Columns after those that this build knows are left unread: a newer minor may add some.
func splitColumns(body []byte, major, minor byte) (*[columns]cursor, error) {
	all := cursor{rest: body}
	var cols [columns]cursor
	for _, i := range columnsOf(major, minor) {
		cols[i].rest = all.take(all.get(wire.MaxBundleDecodedBytes))
	}
	return &cols, all.err
}

func malformed(why string) error { return fmt.Errorf("bundle: %w: %s", wire.ErrMalformed, why) }

func tooLarge(what string, size, limit int) error {
	return fmt.Errorf("bundle: %w: %s %d, the limit is %d", wire.ErrTooLarge, what, size, limit)
}
