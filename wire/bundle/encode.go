package bundle

import (
	"fmt"
	"math"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/lightswarm/lightswarm/wire"
)

// Encode validates b and returns its file. Equal bundles give equal bytes, and so equal CIDs, within one build; a
// different zstd encoder may choose other bytes, so compare bundles of other builds after decoding.
//
// The errors are a *wire.ValidationError, or wrap wire.ErrTooLarge when the file would be refused for its size.
func Encode(b *Bundle) ([]byte, error) { return encodeWith(encoder(), b) }

// encodeWith is Encode with the compressor, and so the dictionary, given.
func encodeWith(z *zstd.Encoder, b *Bundle) ([]byte, error) {
	e, err := encodeColumns(b)
	if err != nil {
		return nil, err
	}
	body := joinColumns(e.columns())
	if len(body) > wire.MaxBundleDecodedBytes {
		return nil, tooLarge("bytes of columns are", len(body), wire.MaxBundleDecodedBytes)
	}
	frame := z.EncodeAll(body, nil)
	out := appendHeader(nil, e.major(), e.minor(), b, e.form, len(frame))
	out = append(append(out, frame...), e.raw.bytes()...)
	if len(out) > wire.MaxBundleBytes {
		return nil, tooLarge("bytes are", len(out), wire.MaxBundleBytes)
	}
	return out, nil
}

// columnEncoder fills the columns rollout by rollout.
type columnEncoder struct {
	form       form
	cols       [columns]column
	raw        bitWriter
	agents     table[string]
	components table[string] // lists of names, each joined by zero bytes
	floats     table[uint32] // bits of distinct float32
	grammars   table[string]
	asked      table[string]
}

// major is the oldest that says all that there is to say.
func (e *columnEncoder) major() byte {
	if len(e.grammars.values) > 0 {
		return majorGrammars
	}
	return majorPlain
}

// minor is the oldest that says all that there is to say.
func (e *columnEncoder) minor() byte {
	if len(e.asked.values) > 0 {
		return minorAsked
	}
	return minorPlain
}

// columns are those of the file's major and minor.
func (e *columnEncoder) columns() (list []column) {
	for _, i := range columnsOf(e.major(), e.minor()) {
		list = append(list, e.cols[i])
	}
	return list
}

func encodeColumns(b *Bundle) (*columnEncoder, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	e := &columnEncoder{form: formOf(b)}
	e.settings(b)
	var previous Rollout
	for i := range b.Rollouts {
		r := &b.Rollouts[i]
		if i == 0 {
			previous.Member-- // so that the usual first member, 0, is its successor
		}
		e.rollout(&previous, r)
		for j := range r.Calls {
			e.call(b.Rollouts[:i], r.Calls[:j], &r.Calls[j])
		}
		previous = *r
	}
	if len(e.agents.values) > wire.MaxAgents {
		return nil, invalid("rollouts", fmt.Sprintf("name %d agents; at most %d are allowed", len(e.agents.values), wire.MaxAgents))
	}
	for _, g := range e.grammars.values {
		e.cols[colGrammars].putString(g)
	}
	for _, a := range e.asked.values {
		e.cols[colAskedTexts].putString(a)
	}
	e.names()
	for _, v := range e.floats.values {
		e.cols[colFloats].putFloat(math.Float32frombits(v))
	}
	return e, nil
}

// settings writes what the rollouts share and hardly any two bundles of a network differ in.
func (e *columnEncoder) settings(b *Bundle) {
	col := &e.cols[colSettings]
	col.putString(b.Split)
	col.putFloat(b.Sampling.Temperature)
	col.put(uint64(b.Sampling.TopK))
	col.putFloat(b.Sampling.TopP)
	col.put(uint64(b.MaxCompletionTokens))
	col.put(uint64(b.Engine))
}

func (e *columnEncoder) rollout(previous, r *Rollout) {
	e.cols[colMember].putSigned(int64(int32(r.Member - previous.Member - 1)))
	e.cols[colTask].putSigned(int64(r.Task - previous.Task))
	e.cols[colOutcome].put(uint64(r.Outcome))
	e.cols[colReward].put(e.float(r.Reward))
	var names []byte
	for _, c := range r.Components {
		names = append(append(names, c.Name...), 0)
		e.cols[colComponentValue].put(e.float(c.Value))
	}
	e.cols[colComponents].put(e.components.index(string(names)))
	e.cols[colCalls].put(uint64(len(r.Calls)))
}

func (e *columnEncoder) call(rollouts []Rollout, calls []Call, c *Call) {
	d := copySource(rollouts, len(calls), c)
	e.cols[colCopy].put(uint64(d))
	if d > 0 {
		return
	}
	e.cols[colAgent].put(e.agents.index(c.Agent))
	e.cols[colFinish].put(uint64(c.Finish))
	reward := uint64(0)
	if c.Reward != nil {
		reward = e.float(*c.Reward) + 1
	}
	e.cols[colCallReward].put(reward)
	e.cols[colGrammar].put(textIndex(&e.grammars, c.Grammar))
	e.cols[colAsked].put(textIndex(&e.asked, c.Asked))

	source, shared := promptSource(rollouts, calls, c.Prompt)
	cut := 0
	if source > 0 {
		head, tail := promptBase(sourceCall(rollouts, calls, len(calls), source))
		cut = len(head) + len(tail) - shared
	}
	e.cols[colPromptSource].put(source)
	e.cols[colPromptCut].put(uint64(cut))
	e.cols[colPromptNew].put(uint64(len(c.Prompt) - shared))
	e.tokens(colPromptTokens, c.Prompt[shared:])

	source, shared, sameLogProbs := completionSource(rollouts, calls, c)
	e.cols[colCompletionSource].put(source)
	e.cols[colCompletionShared].put(uint64(shared))
	e.cols[colLogProbsOwn].put(uint64(shared - sameLogProbs))
	e.cols[colCompletionNew].put(uint64(len(c.Completion) - shared))
	e.tokens(colCompletionTokens, c.Completion[shared:])
	for _, v := range c.LogProbs[sameLogProbs:] {
		class, raw := e.form.split(v)
		e.cols[colLogProbClass] = append(e.cols[colLogProbClass], class)
		n, _ := e.form.rawBits(class)
		e.raw.write(raw, n)
	}
}

func (e *columnEncoder) tokens(col int, tokens []int32) {
	for _, t := range tokens {
		e.cols[col].put(uint64(t))
	}
}

func (e *columnEncoder) float(v float32) uint64 { return e.floats.index(math.Float32bits(v)) }

// names writes the tables of agents and of component lists.
func (e *columnEncoder) names() {
	col := &e.cols[colNames]
	col.put(uint64(len(e.agents.values)))
	for _, name := range e.agents.values {
		col.putString(name)
	}
	col.put(uint64(len(e.components.values)))
	for _, list := range e.components.values {
		names := strings.SplitAfter(list, "\x00")
		names = names[:len(names)-1]
		col.put(uint64(len(names)))
		for _, name := range names {
			col.putString(strings.TrimSuffix(name, "\x00"))
		}
	}
}

// table numbers distinct values in the order of their first use.
type table[T comparable] struct {
	values []T
	at     map[T]uint64
}

func (t *table[T]) index(v T) uint64 {
	if i, ok := t.at[v]; ok {
		return i
	}
	if t.at == nil {
		t.at = make(map[T]uint64)
	}
	i := uint64(len(t.values))
	t.at[v] = i
	t.values = append(t.values, v)
	return i
}
