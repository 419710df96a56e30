package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/wire"
)

// keptVersions is how many versions below the head the node's own bundles stay pinned, beyond the charter's lag:
// evaluations of them may still be of use.
const keptVersions = 64

// errOvertaken ends a learner that heard of a newer release than its own. It cannot go on from there, because it does not
// have what that release was trained with, and nodes would not follow what it makes instead.
var errOvertaken = errors.New("another learner released a newer version of this network")

// onRelease follows a release of another peer. p2p has verified its signature, network and signer. A learner follows
// nobody: whatever it does not know was made by another one.
func (n *Node) onRelease(r wire.SignedRelease) {
	if n.trainer != nil {
		n.fail("learner", n.overtaken(r))
		return
	}
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
	level := slog.LevelDebug // there may be several in a second
	if r.Final {
		level = slog.LevelInfo
	}
	n.log.Log(context.Background(), level, "new release", "version", r.Version, "final", r.Final)
	n.events.Publish(api.Event{Type: api.EventRelease, Release: releaseJSON(&r)})
	if keep := uint64(n.charter.Rollout.MaxLag) + keptVersions; r.Version > keep {
		if err := n.store.ForgetBundles(r.Version - keep); err != nil {
			return err
		}
	}
	return nil
}

// overtaken says that a release was made elsewhere, and what to do.
func (n *Node) overtaken(r wire.SignedRelease) error {
	own := "none was made here"
	if head := n.trainer.learner.Status().Head; head.ID.Defined() {
		own = fmt.Sprintf("the newest made here is %d", head.Version)
	}
	if r.Signer == n.key.Peer() {
		return fmt.Errorf("%w: version %d, signed with this learner's own key; %s. "+
			"This data folder is an old copy, or a copy of it runs elsewhere: run the learner on the newest copy alone. "+
			"If that is lost, save the newest policy on a member's machine with lightswarm policy save, "+
			"and found a network that starts from it with lightswarm network create --policy", errOvertaken, r.Version, own)
	}
	return fmt.Errorf("%w: version %d by %s; %s. Run one learner of a network at a time", errOvertaken, r.Version, r.Signer, own)
}

// onRefused says why a learner's release is not followed: once for each version that has two, and once for a newer format.
func (n *Node) onRefused(r wire.SignedRelease, reason gossip.Reason) {
	var message string
	n.mu.Lock()
	switch {
	case reason == gossip.Forked && r.Version >= n.forked:
		n.forked = r.Version + 1
		message = fmt.Sprintf("version %d has two releases, the other one signed by %s: its learner runs twice, on copies of one data folder, "+
			"or was started from an old copy; one of them has to stop. This node stays with the release that it saw first", r.Version, r.Signer)
	case reason == gossip.NewerFormat && !n.outdated:
		n.outdated = true
		message = fmt.Sprintf("learner %s releases in a format that this program cannot read: upgrade lightswarm on this machine", r.Signer)
	}
	n.mu.Unlock()
	if message == "" {
		return
	}
	n.log.Warn(message)
	n.events.Publish(api.Event{Type: api.EventProblem, Problem: &api.ProblemEvent{Message: message}})
}

// errTwin ends a node whose identity another one uses: members take the work of one for that of the other.
var errTwin = errors.New("another node announces under this node's identity")

// onTwin ends the node because of an announcement that it signed and did not make.
func (n *Node) onTwin(a wire.SignedAnnouncement) {
	n.fail("identity", fmt.Errorf("%w: its announcement %d was not made here. This data folder is an old copy, or a copy of it "+
		"runs elsewhere: run the newest copy alone, or join with a new data folder, named with --data", errTwin, a.Sequence))
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
	n.evaluations.add(&a, n.evaluationBlocks, time.Now())
	if n.trainer != nil {
		n.trainer.learner.Offer(a)
	}
}

// onPresence takes a learner's word for which evaluation blocks have their results.
func (n *Node) onPresence(p wire.SignedPresence) {
	if slices.Contains(n.charter.Learners, p.Signer) {
		n.evaluations.confirm(p.Results, n.evaluationBlocks)
	}
}
