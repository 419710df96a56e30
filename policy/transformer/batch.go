package transformer

import (
	"fmt"
	"math"
)

// Sequence is one training example: the tokens of a trajectory, and which of them the policy chose.
type Sequence struct {
	Tokens []int32
	// Train lists the positions whose tokens' log-probs are wanted, ascending, each in [1, len(Tokens)): a token is
	// predicted from those before it.
	Train []int32
	// Allowed says for each of Train which tokens it was chosen from: bit i%64 of element i/64 is token i. The log-prob is
	// then of the softmax over these alone. Nil, for one of them or for all, allows the whole vocabulary. Trained tokens
	// may share a set.
	Allowed [][]uint64
}

// Check says whether a model of shape c can train on s.
func (s *Sequence) Check(c Config) error {
	if len(s.Tokens) > c.Context {
		return fmt.Errorf("sequence has %d tokens, the context is %d", len(s.Tokens), c.Context)
	}
	for i, token := range s.Tokens {
		if token < 0 || int(token) >= c.Vocab {
			return fmt.Errorf("token %d of the sequence is %d, the vocabulary has %d", i, token, c.Vocab)
		}
	}
	last := int32(0)
	for _, position := range s.Train {
		if position <= last || int(position) >= len(s.Tokens) {
			return fmt.Errorf("trained position %d does not follow %d within %d tokens", position, last, len(s.Tokens))
		}
		last = position
	}
	if s.Allowed == nil {
		return nil
	}
	if len(s.Allowed) != len(s.Train) {
		return fmt.Errorf("sequence has %d sets of allowed tokens for %d trained ones", len(s.Allowed), len(s.Train))
	}
	for i, position := range s.Train {
		set, token := s.Allowed[i], s.Tokens[position]
		switch {
		case set == nil:
		case len(set) != (c.Vocab+63)/64:
			return fmt.Errorf("allowed tokens at position %d are %d words, the vocabulary has %d tokens", position, len(set), c.Vocab)
		case set[token/64]>>(token%64)&1 == 0:
			return fmt.Errorf("token %d at position %d is not one of those that are allowed there", token, position)
		}
	}
	return nil
}

// Restrict sets the logits of all tokens that are not in a set, as in Sequence.Allowed, to minus infinity: what it leaves
// has the bits that training on the same set gives.
func Restrict(logits []float32, allowed []uint64) {
	for i, word := range allowed {
		if word == math.MaxUint64 {
			continue
		}
		part := logits[i*64 : min(len(logits), i*64+64)]
		for j := range part {
			if word>>j&1 == 0 {
				part[j] = minusInfinity
			}
		}
	}
}

var minusInfinity = float32(math.Inf(-1))

// rows is how many tokens have to be fed: those before the last that is predicted.
func (s *Sequence) rows() int {
	if len(s.Train) == 0 {
		return 0
	}
	return int(s.Train[len(s.Train)-1])
}

// blockRows is the largest number of rows whose gain gradients are summed before they are added to the others'. Blocks
// are cut from the start of each sequence, so the sums do not depend on what else is in the batch or who computes them.
const blockRows = 96

// wave is a part of a batch that is in memory at once: whole sequences, packed without padding. Every gradient is a
// chain of additions over rows in the batch's order that starts from what is there, so that the cut into waves, like
// the cut into calls of Accumulate, changes no bit.
type wave struct {
	first     int    // index in the batch of the first sequence
	sequences []span // each one's rows
	tokens    []int32
	positions []int32
	blocks    []span
	runs      []run

	// The rows that predict a trained token, their targets, each sequence's share of them, and their blocks.
	trained       []int32
	targets       []int32
	allowed       [][]uint64 // nil for the whole vocabulary
	shares        []span
	trainedBlocks []span
	trainedRuns   []run
}

// fill makes w the longest run of sequences of batch from index first on that has at most rows rows, but at least one
// sequence, and returns the index after it.
func (w *wave) fill(batch []Sequence, first, rows int) (next int) {
	w.first = first
	w.sequences, w.tokens, w.positions, w.blocks = w.sequences[:0], w.tokens[:0], w.positions[:0], w.blocks[:0]
	w.trained, w.targets, w.shares, w.trainedBlocks = w.trained[:0], w.targets[:0], w.shares[:0], w.trainedBlocks[:0]
	clear(w.allowed)
	w.allowed = w.allowed[:0]
	for next = first; next < len(batch); next++ {
		s := &batch[next]
		n, at := s.rows(), len(w.tokens)
		if next > first && at+n > rows {
			break
		}
		w.tokens = append(w.tokens, s.Tokens[:n]...)
		for t := range n {
			w.positions = append(w.positions, int32(t))
		}
		w.sequences = append(w.sequences, span{at, at + n})
		w.blocks = appendBlocks(w.blocks, at, at+n)
		share := len(w.trained)
		for i, position := range s.Train {
			w.trained = append(w.trained, int32(at)+position-1)
			w.targets = append(w.targets, s.Tokens[position])
			if s.Allowed == nil {
				w.allowed = append(w.allowed, nil)
			} else {
				w.allowed = append(w.allowed, s.Allowed[i])
			}
		}
		w.shares = append(w.shares, span{share, len(w.trained)})
		w.trainedBlocks = appendBlocks(w.trainedBlocks, share, len(w.trained))
	}
	w.runs = appendRuns(w.runs[:0], w.blocks)
	w.trainedRuns = appendRuns(w.trainedRuns[:0], w.trainedBlocks)
	return next
}

func appendBlocks(blocks []span, from, to int) []span {
	for ; from < to; from += blockRows {
		blocks = append(blocks, span{from, min(to, from+blockRows)})
	}
	return blocks
}

// A run is some consecutive blocks, and their rows: enough for a kernel to pay for reading the weights, few enough for
// the rows to stay in a cache from one kernel to the next. It is the unit of work that threads share.
type run struct {
	span
	firstBlock, endBlock int
}

// appendRuns joins consecutive blocks into runs of at most blockRows rows.
func appendRuns(runs []run, blocks []span) []run {
	for from := 0; from < len(blocks); {
		to := from + 1
		for to < len(blocks) && blocks[to].to-blocks[from].from <= blockRows {
			to++
		}
		runs = append(runs, run{span{blocks[from].from, blocks[to-1].to}, from, to})
		from = to
	}
	return runs
}
