package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// release builds and signs the next release of the chain after l.head.
func (l *Learner) release(s *policy.Snapshot, quota uint32, groups uint64, final bool) (wire.SignedRelease, error) {
	l.mu.Lock()
	parent := l.head
	l.mu.Unlock()
	anchor, _, err := s.Encode()
	if err != nil {
		return wire.SignedRelease{}, fmt.Errorf("encoding the policy: %w", err)
	}
	r := wire.Release{
		Network:          l.rules.Network,
		Policy:           wire.PolicyRef{Digest: s.Digest(), StateDigest: s.State, Anchor: anchor},
		Created:          l.config.Now(),
		GroupsPerVersion: quota,
		GroupsTrained:    groups,
		Final:            final,
	}
	if parent.ID.Defined() {
		r.Version = parent.Version + 1
		r.Parent = parent.ID
		r.ParentStateDigest = parent.Policy.StateDigest
	}
	every := l.config.EvaluateEvery
	r.Evaluate = l.rules.Charter.Evaluation.Tasks > 0 && (r.Version == 0 || final || (every > 0 && r.Version%every == 0))
	signed, err := wire.SignRelease(l.config.Key, r)
	if err != nil {
		return wire.SignedRelease{}, fmt.Errorf("signing version %d: %w", r.Version, err)
	}
	return signed, nil
}

// behaviour is what admission needs to know of a release.
func behaviour(r wire.SignedRelease) Behaviour {
	return Behaviour{Version: r.Version, Digest: r.Policy.Digest, Evaluate: r.Evaluate}
}
