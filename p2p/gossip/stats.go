package gossip

import (
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// Verdicts counts records by kind and reason. Its zero value is ready, and it is safe for concurrent use.
type Verdicts struct {
	counts [kinds][len(Reasons)]atomic.Uint64
}

// reasonIndex numbers the reasons.
var reasonIndex = func() map[Reason]int {
	index := make(map[Reason]int, len(Reasons))
	for i, r := range Reasons {
		index[r] = i
	}
	return index
}()

// Count counts one record.
func (v *Verdicts) Count(kind Kind, reason Reason) { v.counts[kind][reasonIndex[reason]].Add(1) }

// Of returns how many records of a kind had a reason.
func (v *Verdicts) Of(kind Kind, reason Reason) uint64 {
	return v.counts[kind][reasonIndex[reason]].Load()
}

// Map returns the counts that are not zero, by the kind's name and the reason.
func (v *Verdicts) Map() map[string]map[Reason]uint64 {
	out := make(map[string]map[Reason]uint64, kinds)
	for kind := range Kind(kinds) {
		counts := make(map[Reason]uint64)
		for _, reason := range Reasons {
			if n := v.Of(kind, reason); n > 0 {
				counts[reason] = n
			}
		}
		out[kind.String()] = counts
	}
	return out
}

// Stats counts what gossip did.
type Stats struct {
	// Verdicts counts records from other peers, by kind and reason; each record once, however often it arrived.
	Verdicts map[string]map[Reason]uint64
	// Repeats counts records that arrived again, by another way through the mesh.
	Repeats uint64
	// Published counts the node's own records that went to at least one peer, Unheard those that had nobody to go to.
	Published, Unheard uint64
	// Undelivered counts accepted records that this node did not take in time; they are pulled later.
	Undelivered uint64
	// Unsent counts messages to a peer that was too slow to take them.
	Unsent uint64
	// Throttled counts records that came faster than they could be checked; they are pulled later.
	Throttled uint64
}

// tracer counts what GossipSub drops without an error.
type tracer struct {
	repeats, undelivered, unsent, throttled atomic.Uint64
}

func (t *tracer) DuplicateMessage(*pubsub.Message)     { t.repeats.Add(1) }
func (t *tracer) UndeliverableMessage(*pubsub.Message) { t.undelivered.Add(1) }
func (t *tracer) DropRPC(*pubsub.RPC, peer.ID)         { t.unsent.Add(1) }

func (t *tracer) RejectMessage(_ *pubsub.Message, reason string) {
	if reason == pubsub.RejectValidationQueueFull || reason == pubsub.RejectValidationThrottled {
		t.throttled.Add(1)
	}
}

// The rest of pubsub.RawTracer is of no interest.

func (t *tracer) OnNewOutboundStream(peer.ID, protocol.ID)             {}
func (t *tracer) OnClosedOutboundStream(peer.ID)                       {}
func (t *tracer) Join(string)                                          {}
func (t *tracer) Leave(string)                                         {}
func (t *tracer) Graft(peer.ID, string)                                {}
func (t *tracer) Prune(peer.ID, string)                                {}
func (t *tracer) ValidateMessage(*pubsub.Message)                      {}
func (t *tracer) DeliverMessage(*pubsub.Message)                       {}
func (t *tracer) ThrottlePeer(peer.ID)                                 {}
func (t *tracer) RecvRPC(*pubsub.RPC)                                  {}
func (t *tracer) SendRPC(*pubsub.RPC, peer.ID)                         {}
func (t *tracer) SendRPCCompleted(*pubsub.RPC, peer.ID, time.Duration) {}
