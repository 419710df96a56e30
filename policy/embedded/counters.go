package embedded

import "sync/atomic"

// counters are what an engine has done since it was started.
type counters struct{ calls, sampled, computed, reused atomic.Int64 }

// Stats are what an engine has done since it was started. Each number rises monotonically.
type Stats struct {
	// Calls is how many requests were answered, Sampled how many tokens they got.
	Calls, Sampled int64
	// Computed is how many tokens went through the model: prompts, completions and scored texts.
	Computed int64
	// Reused is how many prompt tokens did not, because their keys and values were in the cache.
	Reused int64
}

// Stats returns the engine's counters. It is safe for concurrent use.
func (e *Engine) Stats() Stats {
	c := &e.counters
	return Stats{c.calls.Load(), c.sampled.Load(), c.computed.Load(), c.reused.Load()}
}
