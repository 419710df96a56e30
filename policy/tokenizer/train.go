package tokenizer

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"slices"
)

// Train learns a tokenizer of at most vocab tokens from texts. Ids are: the special tokens in the order given, the
// 256 bytes in order, then the learned tokens in order of rank. Text is only ever text: a special token's name in
// it is split like any other.
//
// Each step merges the most frequent adjacent pair over all pieces of the texts; among equals the one with the
// smaller left id, then the smaller right id. A pair that occurs once is not merged, nor one that is a
// token already, is spelled like a special token, or is longer than MaxTokenBytes; when none is left the vocabulary stays smaller. The result
// depends only on the pieces and how often each occurs, not on the order of the texts.
//
// It fails with ErrTokenizer if vocab has no room for the specials and bytes, or a special is empty or there twice.
func Train(texts iter.Seq[string], vocab int, specials []string) (*Tokenizer, error) {
	base := len(specials) + 256
	if vocab < base || vocab > MaxVocab {
		return nil, fmt.Errorf("%w: a vocabulary of %d tokens, not %d to %d", ErrTokenizer, vocab, base, MaxVocab)
	}
	tr := trainer{stats: map[pair]*stat{}, taken: map[string]bool{}}
	var marks []Special
	for i, name := range specials {
		marks = append(marks, Special{int32(i), name})
		tr.tokens = append(tr.tokens, []byte(name))
		tr.taken[name] = true
	}
	for b := range 256 {
		tr.tokens = append(tr.tokens, []byte{byte(b)})
		tr.taken[spell([]byte{byte(b)})] = true
	}
	tr.read(texts, int32(len(specials)))
	for len(tr.tokens) < vocab && tr.step() {
	}
	return build(tr.tokens, marks, tr.merged)
}

// trainer is the state of one training.
type trainer struct {
	tokens [][]byte
	taken  map[string]bool // spellings that no new token may have
	words  []word
	stats  map[pair]*stat
	queue  pairQueue
	merged []pair
}

// word is a distinct piece of the texts.
type word struct {
	ids   []int32
	count int
}

// stat is how often a pair occurs, and the words that it may occur in.
type stat struct {
	count int
	words map[int]struct{}
}

// read counts the pieces of the texts and their pairs.
func (tr *trainer) read(texts iter.Seq[string], firstByte int32) {
	counts := map[string]int{}
	for text := range texts {
		for text != "" {
			n := next(text)
			counts[text[:n]]++
			text = text[n:]
		}
	}
	for piece, count := range counts {
		w := word{count: count}
		for i := range len(piece) {
			w.ids = append(w.ids, firstByte+int32(piece[i]))
		}
		tr.words = append(tr.words, w)
	}
	for i, w := range tr.words {
		tr.count(i, w.ids, w.count)
	}
	for p, s := range tr.stats {
		tr.queue = append(tr.queue, candidate{p, s.count})
	}
	heap.Init(&tr.queue)
}

// count adds n for each adjacent pair of ids, which are word i.
func (tr *trainer) count(i int, ids []int32, n int) {
	for k := range len(ids) - 1 {
		p := pair{ids[k], ids[k+1]}
		s := tr.stats[p]
		if s == nil {
			s = &stat{words: map[int]struct{}{}}
			tr.stats[p] = s
		}
		s.count += n
		s.words[i] = struct{}{}
	}
}

// step makes the next token. It reports whether there was one.
func (tr *trainer) step() bool {
	for len(tr.queue) > 0 {
		top := heap.Pop(&tr.queue).(candidate)
		s := tr.stats[top.pair]
		if s == nil {
			continue
		}
		if s.count != top.count { // it changed after it was queued
			heap.Push(&tr.queue, candidate{top.pair, s.count})
			continue
		}
		if s.count < 2 {
			return false
		}
		text := slices.Concat(tr.tokens[top.left], tr.tokens[top.right])
		spelled := spell(text)
		if len(text) > MaxTokenBytes || tr.taken[spelled] {
			delete(tr.stats, top.pair)
			continue
		}
		tr.taken[spelled] = true
		tr.merge(top.pair, s, int32(len(tr.tokens)))
		tr.tokens = append(tr.tokens, text)
		return true
	}
	return false
}

// merge replaces a pair by a token in every word and keeps the counts right.
func (tr *trainer) merge(p pair, s *stat, id int32) {
	tr.merged = append(tr.merged, p)
	touched := map[pair]struct{}{}
	for i := range s.words {
		w := &tr.words[i]
		joined := make([]int32, 0, len(w.ids))
		for k := 0; k < len(w.ids); k++ {
			if k+1 < len(w.ids) && w.ids[k] == p.left && w.ids[k+1] == p.right {
				joined = append(joined, id)
				k++
			} else {
				joined = append(joined, w.ids[k])
			}
		}
		tr.count(i, w.ids, -w.count)
		w.ids = joined
		tr.count(i, w.ids, w.count)
		for k := range len(joined) - 1 {
			if joined[k] == id || joined[k+1] == id {
				touched[pair{joined[k], joined[k+1]}] = struct{}{}
			}
		}
	}
	delete(tr.stats, p)
	for q := range touched {
		if s := tr.stats[q]; s != nil {
			heap.Push(&tr.queue, candidate{q, s.count})
		}
	}
}

// candidate is a pair and its count when it was queued. Counts of queued pairs only fall, so a stale candidate
// comes too early and is queued again with the true count.
type candidate struct {
	pair
	count int
}

type pairQueue []candidate

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[j].count, q[i].count), cmp.Compare(q[i].left, q[j].left), cmp.Compare(q[i].right, q[j].right)) < 0
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(c any)   { *q = append(*q, c.(candidate)) }
func (q *pairQueue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = slices.Delete(*q, last, last+1)
	return c
}
