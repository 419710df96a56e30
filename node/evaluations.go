package node

import (
	"sync"

	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
)

// keptEvaluations is how many of the newest versions' evaluation blocks are remembered.
const keptEvaluations = 16

// evaluations remembers which evaluation blocks somebody announced. It is safe for concurrent use.
type evaluations struct {
	mu       sync.Mutex
	versions map[uint64]map[evaluationBlock]bool // guarded by mu
}

type evaluationBlock struct {
	purpose wire.Purpose
	block   uint64
}

var _ rollout.Evaluations = (*evaluations)(nil)

// add notes an announcement; of a training bundle it is no news. blocks is how many a version has at most, so that
// made-up block numbers take no memory.
func (e *evaluations) add(a wire.Announcement, blocks int) {
	if a.Purpose == wire.PurposeTrain || a.Counter >= uint64(blocks) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.versions == nil {
		e.versions = make(map[uint64]map[evaluationBlock]bool)
	}
	if e.versions[a.PolicyVersion] == nil {
		e.versions[a.PolicyVersion] = make(map[evaluationBlock]bool)
	}
	e.versions[a.PolicyVersion][evaluationBlock{a.Purpose, a.Counter}] = true
	for len(e.versions) > keptEvaluations {
		oldest := a.PolicyVersion
		for version := range e.versions {
			oldest = min(oldest, version)
		}
		delete(e.versions, oldest)
	}
}

// Announced implements rollout.Evaluations.
func (e *evaluations) Announced(version uint64, purpose wire.Purpose, block uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.versions[version][evaluationBlock{purpose, block}]
}
