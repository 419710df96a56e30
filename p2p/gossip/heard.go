package gossip

import (
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// heard is what is remembered of one peer.
type heard struct {
	peer  wire.PeerID
	next  uint64              // Every sequence below is known or given up.
	known map[uint64]struct{} // Those known above next, within memoryWindow.
	end   uint64              // Sequences below are known to exist.

	presence      time.Time // In the newest sign of life.
	announcements bucket
	presences     bucket

	askAt time.Time // When the gap may be asked for again.
	asked int       // How often in a row that brought nothing.
}

// exists notes that the peer used a sequence.
func (h *heard) exists(sequence uint64) {
	if sequence >= h.end && sequence+1 > sequence {
		h.end = sequence + 1
	}
}

// skip moves next up to a sequence and returns how many below it were not known.
func (h *heard) skip(to uint64) (missing uint64) {
	if to <= h.next {
		return 0
	}
	missing = to - h.next
	for sequence := range h.known {
		if sequence < to {
			delete(h.known, sequence)
			missing--
		}
	}
	h.next = to
	h.end = max(h.end, to)
	h.advance()
	return missing
}

// advance moves next over the known sequences that follow it.
func (h *heard) advance() {
	for {
		if _, known := h.known[h.next]; !known {
			return
		}
		delete(h.known, h.next)
		h.next++
	}
}

// bucket is a token bucket; its zero value is full.
type bucket struct {
	used float64 // Tokens taken and not yet refilled.
	at   time.Time
}

// take takes one token at now, unless there is none: the bucket holds burst and refills at rate per second.
func (b *bucket) take(now time.Time, rate float64, burst int) bool {
	if elapsed := now.Sub(b.at); elapsed > 0 {
		b.used = max(0, b.used-elapsed.Seconds()*rate)
		b.at = now
	}
	if b.used+1 > float64(burst) {
		return false
	}
	b.used++
	return true
}
