package node

import (
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/wire"
)

// keptVersions is how many versions below the head the node's own bundles stay pinned, beyond the charter's lag:
// evaluations of them may still be of use.
const keptVersions = 64

// onRelease follows a release of another peer. p2p has verified its signature, network and signer.
func (n *Node) onRelease(r wire.SignedRelease) {
	if err := n.follow(r); err != nil {
		n.log.Warn("a release is not followed", "version", r.Version, "signer", r.Signer, "error", err)
		n.events.Publish(api.Event{Type: api.EventProblem, Problem: &api.ProblemEvent{Message: err.Error()}})
	}
}

// follow makes a release the head, durably, and its policy the one to get.
func (n *Node) follow(r wire.SignedRelease) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.chain.head
	if err := n.chain.admit(r); err != nil {
		return err
	}
	if err := n.store.PutRelease(r.Version, r.Raw); err != nil {
		n.chain.head = before
		return err
	}
	n.policies.want(r)
	n.log.Info("new release", "version", r.Version, "final", r.Final)
	n.events.Publish(api.Event{Type: api.EventRelease, Release: releaseJSON(&r)})
	if keep := uint64(n.charter.Rollout.MaxLag) + keptVersions; r.Version > keep {
		if err := n.store.ForgetBundles(r.Version - keep); err != nil {
			return err
		}
	}
	return nil
}

// head is the newest release that is followed; nil before the first.
func (n *Node) head() *wire.SignedRelease {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.chain.head
}

// onAnnouncement keeps another peer's announcement for those who ask for it, and offers it to the learner.
func (n *Node) onAnnouncement(a wire.SignedAnnouncement) {
	if _, err := n.store.PutAnnouncement(a.Signer, a.Sequence, a.Raw); err != nil {
		n.log.Error("an announcement was not kept", "peer", a.Signer, "error", err)
	}
	n.evaluations.add(a.Announcement, n.evaluationBlocks)
	if n.trainer != nil {
		n.trainer.learner.Offer(a)
	}
}
