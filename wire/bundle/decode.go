package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/lightswarm/lightswarm/wire"
)

// Limits bound what decoding may cost. A field of 0 means the limit of package wire; larger values mean it too.
type Limits struct {
	Bytes        int // of the file
	DecodedBytes int // of its columns after decompression
	Tokens       int // of all prompts and completions, with references resolved
	Rollouts     int
}

// filled replaces what is missing or above the protocol's own limits.
func (l Limits) filled() Limits {
	bound := func(v *int, limit int) {
		if *v <= 0 || *v > limit {
			*v = limit
		}
	}
	bound(&l.Bytes, wire.MaxBundleBytes)
	bound(&l.DecodedBytes, wire.MaxBundleDecodedBytes)
	bound(&l.Tokens, wire.MaxBundleTokens)
	bound(&l.Rollouts, wire.MaxRolloutsPerBundle)
	return l
}

// Decode reads a whole bundle and validates it. Errors wrap wire.ErrMalformed, wire.ErrTooLarge or wire.ErrNewerMajor.
func Decode(data []byte, lim Limits) (*Bundle, error) {
	r, err := NewReader(bytes.NewReader(data), lim)
	if err != nil {
		return nil, err
	}
	b := r.Header()
	for {
		rollout, err := r.Next()
		if errors.Is(err, io.EOF) {
			return &b, nil
		}
		if err != nil {
			return nil, err
		}
		b.Rollouts = append(b.Rollouts, *rollout)
	}
}

// Reader decodes a bundle rollout by rollout, so that a bad one is refused before its size was paid for. It is used
// by one goroutine.
type Reader struct {
	header   Bundle
	major    byte
	minor    byte
	form     form
	rollouts int // how many there are
	tokens   int // how many more are allowed
	limits   Limits

	cols       *[columns]cursor
	raw        bitReader
	agents     []string
	components [][]string
	floats     []float32
	grammars   texts
	asked      texts

	done []Rollout // decoded so far; later ones refer to them
	err  error     // what Next returns from now on
}

// NewReader reads everything from src and decodes the header. Errors are those of Decode, or of src.
func NewReader(src io.Reader, lim Limits) (*Reader, error) {
	lim = lim.filled()
	in := &boundedReader{r: src, left: lim.Bytes, limit: lim.Bytes}
	h, err := readHeader(in)
	if err != nil {
		return nil, err
	}
	if h.rollouts > lim.Rollouts {
		return nil, tooLarge("rollouts are", h.rollouts, lim.Rollouts)
	}
	if h.columnsBytes > in.left {
		return nil, tooLarge("bytes of compressed columns are", h.columnsBytes, in.left)
	}
	frame := make([]byte, h.columnsBytes)
	if err := in.full(frame); err != nil {
		return nil, err
	}
	body, err := decompress(frame, lim.DecodedBytes)
	if err != nil {
		return nil, err
	}
	cols, err := splitColumns(body, h.major, h.minor)
	if err != nil {
		return nil, err
	}
	r := &Reader{
		header:   h.bundle,
		major:    h.major,
		minor:    h.minor,
		form:     h.form,
		rollouts: h.rollouts,
		tokens:   lim.Tokens,
		limits:   lim,
		cols:     cols,
	}
	if err := r.readRaw(in); err != nil {
		return nil, err
	}
	r.readSettings()
	r.readTables()
	if err := r.columnError(); err != nil {
		return nil, err
	}
	if h.major == majorGrammars && len(r.grammars.list) == 0 || h.minor == minorAsked && len(r.asked.list) == 0 {
		return nil, malformed("its version is above what it needs")
	}
	return r, r.header.validateHeader()
}

// Header returns the bundle without its rollouts.
func (r *Reader) Header() Bundle { return r.header }

// Len returns how many rollouts the bundle has.
func (r *Reader) Len() int { return r.rollouts }

// Next returns the next rollout, validated, or io.EOF after the last one. Later rollouts are decoded from earlier
// ones: the caller changes none before the last was read.
func (r *Reader) Next() (*Rollout, error) {
	if r.err != nil {
		return nil, r.err
	}
	if len(r.done) == r.rollouts {
		r.err = r.finish()
		return nil, r.err
	}
	rollout, err := r.rollout()
	if err == nil {
		err = rollout.validate(fmt.Sprintf("rollouts[%d]", len(r.done)))
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	r.done = append(r.done, rollout)
	return &r.done[len(r.done)-1], nil
}

// finish returns io.EOF when the rollouts used up every column.
func (r *Reader) finish() error {
	for i := range r.cols {
		if len(r.cols[i].rest) > 0 {
			return malformed("a column is longer than its rollouts need")
		}
	}
	if r.grammars.spare() || r.asked.spare() {
		return malformed("no call has a text of a table")
	}
	return io.EOF
}

// readRaw reads the log-probs' raw bits, whose number follows from the classes.
func (r *Reader) readRaw(in *boundedReader) error {
	total := uint64(0)
	for _, class := range r.cols[colLogProbClass].rest {
		n, ok := r.form.rawBits(class)
		if !ok {
			return malformed("a log-prob is not finite, or off its form's range")
		}
		total += uint64(n)
	}
	size := (total + 7) / 8
	if size > uint64(in.left) {
		return tooLarge("bytes of log-probs are", int(size), in.left)
	}
	r.raw.rest = make([]byte, size)
	if err := in.full(r.raw.rest); err != nil {
		return err
	}
	if used := total % 8; used > 0 && r.raw.rest[size-1]>>used != 0 {
		return malformed("bits follow the last log-prob")
	}
	return in.end()
}

func (r *Reader) readSettings() {
	col := &r.cols[colSettings]
	r.header.Split = col.getString(wire.MaxNameBytes)
	r.header.Sampling.Temperature = col.getFloat()
	r.header.Sampling.TopK = uint32(col.get(math.MaxUint32))
	r.header.Sampling.TopP = col.getFloat()
	r.header.MaxCompletionTokens = uint32(col.get(wire.MaxTokensPerCall))
	r.header.Engine = EngineClass(col.get(math.MaxUint8))
}

func (r *Reader) readTables() {
	col := &r.cols[colNames]
	for range col.get(wire.MaxAgents) {
		r.agents = append(r.agents, col.getString(wire.MaxAgentName))
	}
	for range col.get(wire.MaxRolloutsPerBundle) {
		var names []string
		for range col.get(wire.MaxComponents) {
			names = append(names, col.getString(wire.MaxComponentName))
		}
		r.components = append(r.components, names)
	}
	for floats := &r.cols[colFloats]; len(floats.rest) > 0; {
		r.floats = append(r.floats, floats.getFloat())
	}
	r.grammars = r.readTexts(colGrammars, wire.MaxGrammarBytes)
	r.asked = r.readTexts(colAskedTexts, wire.MaxAskedBytes)
}

func (r *Reader) rollout() (Rollout, error) {
	previous := Rollout{Member: math.MaxUint32}
	if n := len(r.done); n > 0 {
		previous = r.done[n-1]
	}
	out := Rollout{
		Member:  previous.Member + 1 + uint32(r.cols[colMember].getSigned()),
		Task:    previous.Task + uint64(r.cols[colTask].getSigned()),
		Outcome: OutcomeKind(r.cols[colOutcome].get(math.MaxUint8)),
		Reward:  r.float(colReward),
	}
	list := r.cols[colComponents].get(math.MaxUint32)
	if list >= uint64(len(r.components)) {
		return out, malformed("a rollout names components that are not in the table")
	}
	for _, name := range r.components[list] {
		out.Components = append(out.Components, Component{Name: name, Value: r.float(colComponentValue)})
	}
	calls := r.cols[colCalls].get(wire.MaxCallsPerRollout)
	if calls > 0 {
		out.Calls = make([]Call, 0, calls)
	}
	for range calls {
		c, err := r.call(out.Calls)
		if err != nil {
			return out, err
		}
		out.Calls = append(out.Calls, c)
	}
	return out, r.columnError()
}

// columnError returns the first error of any column.
func (r *Reader) columnError() error {
	for i := range r.cols {
		if r.cols[i].err != nil {
			return r.cols[i].err
		}
	}
	return nil
}

// float reads an index into the table of floats.
func (r *Reader) float(col int) float32 { return r.floatAt(col, r.cols[col].get(math.MaxUint32)) }

func (r *Reader) floatAt(col int, i uint64) float32 {
	if i >= uint64(len(r.floats)) {
		r.cols[col].fail(malformed("a number is not in the table"))
		return 0
	}
	return r.floats[i]
}
