package learner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// Behaviour is a version that rollouts may have been sampled from.
type Behaviour struct {
	Version uint64
	Digest  policy.Digest
	// Evaluate says that the version's release asked for evaluations.
	Evaluate bool
}

// State is what admission remembers: the recent versions and the bundles that it let through. It is a state machine
// without I/O, and not safe for concurrent use.
type State struct {
	rules Rules
	head  uint64
	ended bool
	// versions are the ones whose bundles are still of use, by number.
	versions map[uint64]Behaviour
	// claims are the bundles that are being fetched, wait, or were used up under a recent version.
	claims map[claimID]claim
	// draws maps the training draws of claims to their bundles.
	draws map[drawID]wire.CID
	peers map[wire.PeerID]*peerState
	board *Board
	// welcome are policies outside the chain whose training groups are taken.
	welcome map[Behaviour]bool
}

// claimID tells claims apart. Each peer has its own: one that repeats another's announcement under its name, and then
// does not deliver, must not keep the other's out.
type claimID struct {
	bundle wire.CID
	peer   wire.PeerID
}

type claim struct {
	draw    drawID // of a training bundle
	version uint64
	pending bool // it counts against its peer
}

type drawID struct {
	peer    wire.PeerID
	counter uint64
}

// peerState is what is known about a peer that contributed.
type peerState struct {
	pending int
	// version is the newest that it contributed to.
	version uint64
	// next is one above the highest draw counter accepted, and missing how many below it, from the first accepted
	// one on, are not.
	next, missing uint64
}

// evaluationWindow is how many of the newest versions that ask for evaluations still take results.
const evaluationWindow = 8

// NewState returns a state that knows no version. The board says which evaluation blocks have results already.
func NewState(r Rules, board *Board) *State {
	return &State{
		rules:    r,
		versions: make(map[uint64]Behaviour),
		claims:   make(map[claimID]claim),
		draws:    make(map[drawID]wire.CID),
		peers:    make(map[wire.PeerID]*peerState),
		board:    board,
		welcome:  make(map[Behaviour]bool),
	}
}

// Head is the newest version.
func (s *State) Head() uint64 { return s.head }

// Release makes b the newest version and forgets what no longer matters.
func (s *State) Release(b Behaviour) {
	s.head = max(s.head, b.Version)
	s.versions[b.Version] = b
	evaluated := 0
	for _, v := range slices.Backward(slices.Sorted(maps.Keys(s.versions))) {
		measured := s.versions[v].Evaluate
		if measured {
			evaluated++
		}
		if s.head-v > s.rules.MaxLag && (!measured || evaluated > evaluationWindow) {
			delete(s.versions, v)
		}
	}
	// A training bundle that is announced again from here on is stale, and the board knows an evaluation's tasks.
	oldest := s.Oldest()
	maps.DeleteFunc(s.claims, func(_ claimID, c claim) bool {
		if c.pending || c.version >= oldest {
			return false
		}
		delete(s.draws, c.draw)
		return true
	})
	maps.DeleteFunc(s.peers, func(_ wire.PeerID, p *peerState) bool { return p.pending == 0 && p.version < oldest })
}

// Versions are the ones whose bundles are still of use, oldest first.
func (s *State) Versions() []Behaviour {
	var all []Behaviour
	for _, v := range slices.Sorted(maps.Keys(s.versions)) {
		all = append(all, s.versions[v])
	}
	return all
}

// End makes the newest version the last: no more groups are trained on.
func (s *State) End() { s.ended = true }

// Welcome lets in training groups of a policy outside the chain.
func (s *State) Welcome(b Behaviour) {
	b.Evaluate = false
	s.welcome[b] = true
}

// Oldest is the first version whose groups may be trained on, and whose bundles are remembered.
func (s *State) Oldest() uint64 { return s.head - min(s.head, s.rules.MaxLag) }

// OldestEvaluated is the first version that takes evaluation results.
func (s *State) OldestEvaluated() uint64 {
	oldest := s.head
	for v, b := range s.versions {
		if b.Evaluate {
			oldest = min(oldest, v)
		}
	}
	return oldest
}

// NewestEvaluated is the newest version that asks for evaluation; ok is false if none does.
func (s *State) NewestEvaluated() (version uint64, ok bool) {
	for v, b := range s.versions {
		if b.Evaluate {
			version, ok = max(version, v), true
		}
	}
	return version, ok
}

// Screen judges an announcement whose signature was verified, before anything is spent on its bundle. It changes
// nothing.
func (s *State) Screen(a *wire.SignedAnnouncement) Verdict {
	if a.Network != s.rules.Network {
		return Verdict{WrongNetwork, fmt.Sprintf("it is for %s", a.Network)}
	}
	if _, ok := s.rules.environment(a.Environment); !ok {
		return Verdict{UnknownEnvironment, fmt.Sprintf("%s is not in the charter", a.Environment)}
	}
	if v := s.screenPolicy(a); !v.Accepted() {
		return v
	}
	if v := s.screenOnce(a); !v.Accepted() {
		return v
	}
	if a.Purpose != wire.PurposeTrain {
		return s.screenEvaluation(a)
	}
	if task := draw.Train(s.rules.Network, s.rules.Charter, a.PolicyVersion, a.Signer, a.Counter); task.Environment != a.Environment {
		return Verdict{WrongDraw, fmt.Sprintf("counter %d draws environment %s", a.Counter, task.Environment)}
	}
	if v := s.timely(a); !v.Accepted() {
		return v
	}
	if a.Rollouts != s.rules.Charter.Rollout.GroupSize {
		return Verdict{WrongGroup, fmt.Sprintf("%d rollouts, a group has %d", a.Rollouts, s.rules.Charter.Rollout.GroupSize)}
	}
	return s.screenPending(a)
}

// screenPolicy refuses versions that do not exist yet and digests that are not their version's. What a version too old
// to be remembered was, it cannot say.
func (s *State) screenPolicy(a *wire.SignedAnnouncement) Verdict {
	digest := policy.Digest(a.PolicyDigest)
	if a.Purpose == wire.PurposeTrain && s.welcome[Behaviour{Version: a.PolicyVersion, Digest: digest}] {
		return Verdict{Reason: Admitted}
	}
	version, known := s.versions[a.PolicyVersion]
	switch {
	case a.PolicyVersion > s.head || len(s.versions) == 0:
		return Verdict{UnknownVersion, fmt.Sprintf("version %d, the newest is %d", a.PolicyVersion, s.head)}
	case known && version.Digest != digest:
		return Verdict{PolicyMismatch, fmt.Sprintf("version %d is policy %s, not %s",
			a.PolicyVersion, version.Digest.Short(), digest.Short())}
	}
	return Verdict{Reason: Admitted}
}

// timely refuses what is too old to be of use.
func (s *State) timely(a *wire.SignedAnnouncement) Verdict {
	lag := s.head - min(s.head, a.PolicyVersion)
	if a.Purpose == wire.PurposeTrain {
		if s.ended {
			return Verdict{Ended, fmt.Sprintf("version %d is the last", s.head)}
		}
		if lag <= s.rules.MaxLag {
			return Verdict{Reason: Admitted}
		}
		return Verdict{Stale, fmt.Sprintf("version %d lags %d behind, %d is permitted", a.PolicyVersion, lag, s.rules.MaxLag)}
	}
	if _, known := s.versions[a.PolicyVersion]; !known {
		return Verdict{Stale, fmt.Sprintf("version %d takes no more results", a.PolicyVersion)}
	}
	return Verdict{Reason: Admitted}
}

// screenOnce refuses what was let through before.
func (s *State) screenOnce(a *wire.SignedAnnouncement) Verdict {
	if _, ok := s.claims[claimID{a.Bundle, a.Signer}]; ok {
		return Verdict{Reason: Duplicate}
	}
	if a.Purpose != wire.PurposeTrain {
		if s.board.Complete(a.PolicyVersion, a.Purpose, a.Counter) {
			return Verdict{Duplicate, "the block has its results"}
		}
		return Verdict{Reason: Admitted}
	}
	if other, ok := s.draws[drawID{a.Signer, a.Counter}]; ok {
		return Verdict{CounterReused, fmt.Sprintf("counter %d was announced with bundle %s", a.Counter, other)}
	}
	return Verdict{Reason: Admitted}
}

func (s *State) screenEvaluation(a *wire.SignedAnnouncement) Verdict {
	if version, known := s.versions[a.PolicyVersion]; known && !version.Evaluate {
		return Verdict{NotRequested, fmt.Sprintf("version %d", a.PolicyVersion)}
	}
	if blocks := draw.EvaluationBlocks(s.rules.Charter); a.Counter >= uint64(blocks) {
		return Verdict{WrongDraw, fmt.Sprintf("block %d, there are %d", a.Counter, blocks)}
	}
	block := draw.EvaluationBlock(s.rules.Charter, int(a.Counter))
	if block.Environment != a.Environment {
		return Verdict{WrongDraw, fmt.Sprintf("block %d is of environment %s", a.Counter, block.Environment)}
	}
	if v := s.timely(a); !v.Accepted() {
		return v
	}
	if a.Rollouts != block.Tasks {
		return Verdict{WrongGroup, fmt.Sprintf("%d rollouts, block %d has %d tasks", a.Rollouts, a.Counter, block.Tasks)}
	}
	return s.screenPending(a)
}

func (s *State) screenPending(a *wire.SignedAnnouncement) Verdict {
	if p := s.peers[a.Signer]; p != nil && s.rules.MaxPending > 0 && p.pending >= s.rules.MaxPending {
		return Verdict{PeerPending, fmt.Sprintf("%d bundles of this peer wait", p.pending)}
	}
	return Verdict{Reason: Admitted}
}

// Claim records that an announcement passed Screen and its bundle is on its way. Exactly one of Unclaim and Settle
// follows.
func (s *State) Claim(a *wire.SignedAnnouncement) {
	s.claim(a.Bundle, a.Signer, a.Purpose, a.Counter, a.PolicyVersion)
}

func (s *State) claim(cid wire.CID, peer wire.PeerID, purpose wire.Purpose, counter, version uint64) *peerState {
	c := claim{version: version, pending: true}
	if purpose == wire.PurposeTrain {
		c.draw = drawID{peer, counter}
		s.draws[c.draw] = cid
	}
	s.claims[claimID{cid, peer}] = c
	p := s.peers[peer]
	if p == nil {
		p = &peerState{}
		s.peers[peer] = p
	}
	p.pending++
	return p
}

// Unclaim forgets a claim whose bundle did not arrive or was refused, so that the peer may announce it, or another for
// the same draw, again.
func (s *State) Unclaim(a *wire.SignedAnnouncement) {
	id := claimID{a.Bundle, a.Signer}
	c, ok := s.claims[id]
	if !ok {
		return
	}
	delete(s.claims, id)
	delete(s.draws, c.draw)
	p := s.peers[id.peer]
	if p.pending--; p.pending == 0 && p.next == 0 && p.version == 0 {
		delete(s.peers, id.peer) // it never contributed
	}
}

// Recheck judges a claimed announcement again, for what may have changed while its bundle was fetched.
func (s *State) Recheck(a *wire.SignedAnnouncement) Verdict {
	if a.Purpose != wire.PurposeTrain {
		if s.board.Complete(a.PolicyVersion, a.Purpose, a.Counter) {
			return Verdict{Duplicate, "the block has its results"}
		}
		// Peers that measure the same block make the same bundle. There are few of them, so a walk will do.
		for id, c := range s.claims {
			if id.bundle == a.Bundle && id.peer != a.Signer && !c.pending {
				return Verdict{Duplicate, "another peer has delivered it"}
			}
		}
	}
	return s.timely(a)
}

// Settle records that a claimed bundle was accepted, or, after a restart, is in the store.
func (s *State) Settle(r Record) {
	var p *peerState
	if _, ok := s.claims[claimID{r.CID, r.Peer}]; ok {
		p = s.peers[r.Peer]
	} else {
		p = s.claim(r.CID, r.Peer, r.Purpose, r.Counter, r.Version)
	}
	p.version = max(p.version, r.Version)
	if r.Purpose == wire.PurposeTrain {
		p.count(r.Counter)
	}
	if r.Consumed {
		s.Consume(r)
	}
}

// count follows the gaps in a peer's counters.
func (p *peerState) count(counter uint64) {
	switch {
	case p.next == 0:
		p.next = counter + 1
	case counter >= p.next:
		p.missing += counter - p.next
		p.next = counter + 1
	case p.missing > 0:
		p.missing--
	}
}

// Consume records that a settled bundle no longer waits; it stays known against duplicates.
func (s *State) Consume(r Record) {
	id := claimID{r.CID, r.Peer}
	c, ok := s.claims[id]
	if !ok || !c.pending {
		return
	}
	c.pending = false
	s.claims[id] = c
	s.peers[id.peer].pending--
}

// Active is how many peers contributed to one of the newest versions, the head or the one before.
func (s *State) Active() int {
	n := 0
	for _, p := range s.peers {
		if p.next > 0 && p.version+1 >= s.head {
			n++
		}
	}
	return n
}
