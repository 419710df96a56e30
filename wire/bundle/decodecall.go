package bundle

import (
	"fmt"
	"math"

	"github.com/lightswarm/lightswarm/wire"
)

// call decodes the call that follows calls.
func (r *Reader) call(calls []Call) (Call, error) {
	j := len(calls)
	if d := r.cols[colCopy].get(math.MaxUint32); d > 0 {
		if d > uint64(len(r.done)) || j >= len(r.done[uint64(len(r.done))-d].Calls) {
			return Call{}, malformed("a call copies one that is not there")
		}
		return r.copyCall(&r.done[uint64(len(r.done))-d].Calls[j])
	}
	agent := r.cols[colAgent].get(math.MaxUint32)
	if agent >= uint64(len(r.agents)) {
		return Call{}, malformed("a call names an agent that is not in the table")
	}
	c := Call{Agent: r.agents[agent], Finish: uint8(r.cols[colFinish].get(math.MaxUint8))}
	if i := r.cols[colCallReward].get(math.MaxUint32); i > 0 {
		reward := r.floatAt(colCallReward, i-1)
		c.Reward = &reward
	}
	if r.major >= majorGrammars {
		c.Grammar = r.text(colGrammar, &r.grammars)
	}
	if r.minor >= minorAsked {
		c.Asked = r.text(colAsked, &r.asked)
	}
	var err error
	if c.Prompt, err = r.prompt(calls); err != nil {
		return Call{}, err
	}
	if c.Completion, c.LogProbs, err = r.completion(calls); err != nil {
		return Call{}, err
	}
	return c, r.columnError()
}

// copyCall returns a call that shares no memory with c.
func (r *Reader) copyCall(c *Call) (Call, error) {
	if err := r.allow(len(c.Prompt) + len(c.Completion)); err != nil {
		return Call{}, err
	}
	out := *c
	out.Prompt = append([]int32(nil), c.Prompt...)
	out.Completion = append([]int32(nil), c.Completion...)
	out.LogProbs = append([]float32(nil), c.LogProbs...)
	if c.Reward != nil {
		reward := *c.Reward
		out.Reward = &reward
	}
	return out, nil
}

func (r *Reader) prompt(calls []Call) ([]int32, error) {
	source := r.cols[colPromptSource].get(math.MaxUint32)
	cut := r.cols[colPromptCut].get(2 * wire.MaxTokensPerCall)
	added := r.cols[colPromptNew].get(wire.MaxTokensPerCall)
	if err := r.columnError(); err != nil {
		return nil, err
	}
	var head, tail []int32
	if source > 0 {
		c, own := sourceCall(r.done, calls, len(calls), source)
		if c == nil {
			return nil, malformed("a prompt starts like one that is not there")
		}
		head, tail = promptBase(c, own)
	}
	if cut > uint64(len(head)+len(tail)) {
		return nil, malformed("a prompt leaves out more than there is")
	}
	shared := len(head) + len(tail) - int(cut)
	head = head[:min(shared, len(head))]
	tail = tail[:shared-len(head)]
	if err := r.allow(shared + int(added)); err != nil {
		return nil, err
	}
	out := make([]int32, 0, shared+int(added))
	out = append(append(out, head...), tail...)
	return r.appendTokens(out, colPromptTokens, added)
}

func (r *Reader) completion(calls []Call) ([]int32, []float32, error) {
	source := r.cols[colCompletionSource].get(math.MaxUint32)
	shared := r.cols[colCompletionShared].get(wire.MaxTokensPerCall)
	own := r.cols[colLogProbsOwn].get(shared)
	added := r.cols[colCompletionNew].get(wire.MaxTokensPerCall)
	if err := r.columnError(); err != nil {
		return nil, nil, err
	}
	var base Call
	if source > 0 {
		c, _ := sourceCall(r.done, calls, len(calls), source)
		if c == nil {
			return nil, nil, malformed("a completion starts like one that is not there")
		}
		base = *c
	}
	if shared > uint64(len(base.Completion)) {
		return nil, nil, malformed("a completion shares more than there is")
	}
	if shared+added == 0 {
		return nil, nil, nil
	}
	if err := r.allow(int(shared + added)); err != nil {
		return nil, nil, err
	}
	tokens := append(make([]int32, 0, shared+added), base.Completion[:shared]...)
	tokens, err := r.appendTokens(tokens, colCompletionTokens, added)
	if err != nil {
		return nil, nil, err
	}
	logProbs := append(make([]float32, 0, shared+added), base.LogProbs[:shared-own]...)
	for _, class := range r.cols[colLogProbClass].take(own + added) {
		n, _ := r.form.rawBits(class)
		logProbs = append(logProbs, r.form.join(class, r.raw.read(n)))
	}
	return tokens, logProbs, nil
}

// appendTokens reads n tokens.
func (r *Reader) appendTokens(out []int32, col int, n uint64) ([]int32, error) {
	c := &r.cols[col]
	for range n {
		out = append(out, int32(c.get(math.MaxInt32)))
		if c.err != nil {
			return nil, c.err
		}
	}
	return out, nil
}

// allow counts n tokens that are about to be allocated, and refuses them when a call or the bundle has too many.
func (r *Reader) allow(n int) error {
	if n > 2*wire.MaxTokensPerCall {
		return tooLarge("tokens of a call are", n, 2*wire.MaxTokensPerCall)
	}
	if n > r.tokens {
		return fmt.Errorf("bundle: %w: its tokens are more than %d", wire.ErrTooLarge, r.limits.Tokens)
	}
	r.tokens -= n
	return nil
}
