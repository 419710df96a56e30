package grammar

import (
	"container/heap"
	"math"
)

// never is the distance to what cannot be reached.
const never int32 = math.MaxInt32 / 4

// distances say how many tokens, at most, it takes from each instruction to the end of its rule: by how many more
// calls may be open below, and by instruction. Of texts that are written out in the program it counts what tokens
// write them; of everything else, one token for each symbol. So the way that it measures is always open.
type distances [][]int32

// at is the distance from an instruction with depth calls to go.
func (d distances) at(depth int, pc int32) int32 { return d[min(depth, len(d)-1)][pc] }

// edge leads to an instruction from one that comes before it.
type edge struct{ from, weight int32 }

// newDistances measures a grammar in the tokens of v, or in symbols if it is nil.
func newDistances(g *Grammar, v *Vocabulary) distances {
	n := len(g.code)
	back := make([][]edge, n)
	link := func(from, to, weight int32) { back[to] = append(back[to], edge{from, weight}) }
	var text []byte
	for at := n - 1; at >= 0; at-- {
		pc, i := int32(at), g.code[at]
		switch i.op {
		case opByte:
			link(pc, pc+1, 1)
			if v == nil {
				continue
			}
			text = text[:0]
			for end := at; end < n && g.code[end].op == opByte && len(text) < v.most; {
				text = append(text, byte(g.code[end].arg))
				end++
				if _, ok := v.texts[string(text)]; ok {
					link(pc, int32(end), 1)
				}
			}
		case opClass, opMark:
			link(pc, pc+1, 1)
		case opJump:
			link(pc, i.arg, 0)
		case opSplit:
			link(pc, i.arg, 0)
			link(pc, pc+1, 0)
		}
	}
	var d distances
	for {
		last := len(d) - 1
		level := g.level(back, func(rule int32) int32 {
			if last < 0 {
				return never
			}
			return d[last][rule]
		})
		if last >= 0 && same(level, d[last]) {
			return d // deeper calls change nothing any more
		}
		if d = append(d, level); len(d) > maxDepth {
			return d
		}
	}
}

func same(a, b []int32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// level measures all instructions, given how far the rules' ends are from their beginnings: Dijkstra's algorithm from
// the returns backwards.
func (g *Grammar) level(back [][]edge, rule func(pc int32) int32) []int32 {
	level := make([]int32, len(g.code))
	var q queue
	for at, i := range g.code {
		level[at] = never
		if i.op == opReturn {
			level[at] = 0
			q = append(q, place{int32(at), 0})
		}
	}
	for len(q) > 0 {
		p := heap.Pop(&q).(place)
		if p.distance > level[p.pc] {
			continue
		}
		reach := func(pc, weight int32) {
			if d := p.distance + weight; d < level[pc] && d < never {
				level[pc] = d
				heap.Push(&q, place{pc, d})
			}
		}
		for _, e := range back[p.pc] {
			reach(e.from, e.weight)
		}
		if p.pc > 0 && g.code[p.pc-1].op == opCall {
			reach(p.pc-1, rule(g.code[p.pc-1].arg))
		}
	}
	return level
}

// place is an instruction on the way, queue the heap of those that are next.
type place struct{ pc, distance int32 }
type queue []place

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].distance < q[j].distance }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(place)) }
func (q *queue) Pop() any {
	old := *q
	p := old[len(old)-1]
	*q = old[:len(old)-1]
	return p
}
