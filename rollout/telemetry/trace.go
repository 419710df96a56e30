package telemetry

import (
	"bytes"
	"cmp"
	"slices"
)

// MaxSpans bounds the spans that a Trace holds.
const MaxSpans = 10_000

// Trace is the spans of one rollout. The zero value holds none. It is used by one goroutine at a time.
type Trace struct {
	spans map[ID]*Span
}

// Add takes spans in. Those that it has are ignored; rejected is how many it has no room for.
func (t *Trace) Add(spans []Span) (rejected int) {
	for i := range spans {
		switch id := spans[i].ID; {
		case t.spans[id] != nil:
		case len(t.spans) == MaxSpans:
			rejected++
		default:
			if t.spans == nil {
				t.spans = make(map[ID]*Span)
			}
			kept := spans[i] // not all of its export
			t.spans[id] = &kept
		}
	}
	return rejected
}

// Len is how many spans it holds.
func (t *Trace) Len() int { return len(t.spans) }

// sorted are the spans in the order in which they began, which no order of exports changes.
func (t *Trace) sorted() []*Span {
	all := make([]*Span, 0, len(t.spans))
	for _, s := range t.spans {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End),
			bytes.Compare(a.ID.Trace[:], b.ID.Trace[:]), bytes.Compare(a.ID.Span[:], b.ID.Span[:]))
	})
	return all
}

// maxHeight bounds how far above a span is looked for what it belongs to. It also ends what would go round in circles.
const maxHeight = 64

// above are a span and those above it, the nearest first.
func (t *Trace) above(s *Span) []*Span {
	path := []*Span{s}
	for len(path) < maxHeight {
		parent := t.spans[ID{s.ID.Trace, s.Parent}]
		if parent == nil {
			break
		}
		s = parent
		path = append(path, s)
	}
	return path
}
