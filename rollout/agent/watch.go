package agent

import (
	"context"
	"errors"
	"sync"
)

// Watch is an LLM that remembers what became of its calls, for whoever judges an agent by how it ended. The LLM is
// required. It is safe for concurrent use.
type Watch struct {
	LLM
	mu      sync.Mutex
	begun   int // guarded by mu; calls
	ended   int // guarded by mu; of those
	refused End // guarded by mu; the last refusal that the agent has not got over
	number  int // guarded by mu; that of the refused call
}

// Complete implements LLM.
func (w *Watch) Complete(ctx context.Context, r Request) (Reply, error) {
	w.mu.Lock()
	w.begun++
	number := w.begun
	w.mu.Unlock()
	reply, err := w.LLM.Complete(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended++
	switch {
	case errors.Is(err, ErrExhausted):
		w.refused, w.number = Exhausted, number
	case errors.Is(err, ErrNoRoom):
		w.refused, w.number = Cut, number
	case (err == nil || errors.Is(err, ErrMalformed) || errors.Is(err, ErrCut)) && number > w.number:
		w.refused = 0
	}
	return reply, err
}

// Begun is how many calls have begun.
func (w *Watch) Begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// Running is how many calls have begun and not ended.
func (w *Watch) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun - w.ended
}

// Refused is the end that a refused call means, Exhausted or Cut; 0 if none was refused. An agent that got an answer to a
// call that began later has got over it: how it ends then has other reasons.
func (w *Watch) Refused() End {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}
