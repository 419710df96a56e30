package meter

import "slices"

// maxGap is how many bytes two data segments may lie apart to become one: what a segment costs an engine at the start of
// each instance is more than so many zeros do.
const maxGap = 64

// maxLooked bounds the segments that each zero is compared with, so that a module of very many takes no long time.
const maxLooked = 64

// segment is what fills a part of the memory when an instance is made.
type segment struct {
	at    uint64
	bytes []byte
}

func (s segment) end() uint64 { return s.at + uint64(len(s.bytes)) }

// joined is the data section with neighbouring segments as one, the zeros between them included: Go's linker makes tens of
// thousands of them, and to go through these takes an engine longer than a module of Go's takes to begin. Memory is filled
// with the same bytes, so nothing can be told from it by the module, whose steps do not count it either. Segments that are
// used by number, or begin where it is not known yet, are left as they are.
func joined(r *reader) []byte {
	segments, ok := r.segments()
	if !ok {
		return r.b
	}
	join := joining{room: len(r.b)}
	for _, s := range segments {
		join.add(s)
	}
	content := appendU32(nil, uint32(len(join.done)))
	for _, s := range join.done {
		content = append(content, 0, opI32Const)
		content = append(appendSigned(content, int64(int32(uint32(s.at)))), opEnd) //nolint:gosec // an i32 is 32 bits of either kind
		content = append(appendU32(content, uint32(len(s.bytes))), s.bytes...)
	}
	return content
}

// segments reads a data section whose segments all have a known place in the one memory; ok is false if one has not.
func (r *reader) segments() (list []segment, ok bool) {
	r = &reader{b: r.b, base: r.base}
	for range r.count() {
		if r.u32() != 0 || r.byte() != opI32Const {
			return nil, false
		}
		at := uint32(r.i32())
		if r.byte() != opEnd {
			return nil, false
		}
		list = append(list, segment{uint64(at), r.take(r.u32())})
	}
	r.done()
	return list, true
}

// joining joins segments, one after the other.
type joining struct {
	done []segment
	// room is how many zeros more may be added.
	room int
}

func (j *joining) add(s segment) {
	if len(j.done) > 0 {
		last := &j.done[len(j.done)-1]
		gap := s.at - last.end() // huge if s begins before
		if gap <= min(maxGap, uint64(j.room)) && j.clear(last.end(), s.at) {
			last.bytes = append(append(last.bytes, make([]byte, gap)...), s.bytes...)
			j.room -= int(gap)
			return
		}
	}
	j.done = append(j.done, segment{s.at, append([]byte(nil), s.bytes...)})
}

// clear says whether no segment before the last has bytes from a to b, which zeros would overwrite. Where there are many, it
// does not look.
func (j *joining) clear(a, b uint64) bool {
	before := j.done[:len(j.done)-1]
	return a == b || len(before) <= maxLooked &&
		!slices.ContainsFunc(before, func(s segment) bool { return s.at < b && a < s.end() })
}
