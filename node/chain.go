package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/wire"
)

// Why a release is not followed.
var (
	errOtherNetwork = errors.New("it is for another network")
	errNotALearner  = errors.New("the charter does not let its signer release")
	errOld          = errors.New("a newer version is known")
	errBase         = errors.New("version 0 is not the charter's base policy")
	errFork         = errors.New("its parent is not the release that is known for the version before")
)

// chain decides which releases a node follows. It is a state machine without I/O; the caller orders its calls.
//
// A node follows the first release that it sees of a version, and from there on only releases that name it as their
// parent. A release whose parent the node never saw is followed if it is newer than the head: whoever was away jumps to
// the newest version, trusting the charter's learners for what lies between. So whoever followed one of two releases of a
// version, which no learner should make, comes to the chain that goes on; since nothing comes after a final release, that
// is followed whatever its parent.
type chain struct {
	charter wire.SignedCharter
	// head is the newest release that is followed; nil before the first.
	head *wire.SignedRelease
}

// admit makes r the head, or says why not.
func (c *chain) admit(r wire.SignedRelease) error {
	switch {
	case r.Network != c.charter.ID:
		return errOtherNetwork
	case !slices.Contains(c.charter.Learners, r.Signer):
		return fmt.Errorf("%w (%s)", errNotALearner, r.Signer)
	case c.head != nil && r.Version <= c.head.Version:
		return errOld
	case r.Version == 0 && r.Policy != c.charter.Base:
		return errBase
	case c.head != nil && r.Version == c.head.Version+1 && !r.Final &&
		(r.Parent != c.head.ID || r.ParentStateDigest != c.head.Policy.StateDigest):
		return errFork
	}
	c.head = &r
	return nil
}
