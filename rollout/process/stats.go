package process

import "sync/atomic"

// Stats are an agent's figures.
type Stats struct {
	// Running counts the programs that run, Started those that were started since New: one a rollout.
	Running int
	Started uint64
}

// Stats returns a copy of the agent's figures.
func (a *Agent) Stats() Stats {
	// Ended first, so that no end is counted whose start is not.
	ended := a.programs.ended.Load()
	started := a.programs.started.Load()
	return Stats{Running: int(started - ended), Started: started}
}

// programs counts programs.
type programs struct{ started, ended atomic.Uint64 }
