package embedded

import (
	"slices"

	"github.com/lightswarm/lightswarm/policy/transformer"
)

// promptRows bounds the prompt tokens of one step, so that running completions never wait long for new prompts.
const promptRows = 256

// scheduler decides what runs. It is not safe for concurrent use, and starts no goroutine that outlives a step.
type scheduler struct {
	slots    int
	decoder  *transformer.Decoder
	counters *counters

	queue    []*call // first come, first served
	running  []*lane // in the order in which they came
	prefixes prefixes

	// Memory of step:
	residents []*resident
	batch     []*lane
	segments  []transformer.Segment
}

func newScheduler(o Options, c *counters) *scheduler {
	return &scheduler{
		slots:    o.Slots,
		decoder:  transformer.NewDecoder(o.Threads),
		counters: c,
		prefixes: prefixes{budget: max(o.CacheBytes, 0)},
	}
}

// idle says that step has nothing to do.
func (s *scheduler) idle() bool { return len(s.queue) == 0 && len(s.running) == 0 }

// submit puts a call in line.
func (s *scheduler) submit(c *call) { s.queue = append(s.queue, c) }

// forget drops what is kept of policies that nothing can use any more.
func (s *scheduler) forget(retired []*resident) {
	for _, r := range retired {
		r.retired = true
		s.prefixes.forget(r)
	}
}

// step advances every running lane: by a token of its completion, or by a piece of its prompt.
func (s *scheduler) step() {
	s.dropCancelled()
	for len(s.running) < s.slots && len(s.queue) > 0 {
		s.running = append(s.running, newLane(s.queue[0]))
		s.queue = slices.Delete(s.queue, 0, 1)
	}
	for _, l := range s.running {
		if l.cache == nil {
			l.cache = s.prefixes.start(l.resident, l.tokens[:l.call.reusable], s.running)
			if l.cache != nil {
				s.counters.reused.Add(int64(l.cache.Len()))
			}
		}
	}
	// There is one batch a policy, and rarely more than two policies: those between whose releases the longest call runs.
	budget := promptRows
	s.residents = s.residents[:0]
	for _, l := range s.running {
		budget = l.prepare(budget)
		if len(l.segment.Tokens) > 0 && !slices.Contains(s.residents, l.resident) {
			s.residents = append(s.residents, l.resident)
		}
	}
	for _, r := range s.residents {
		s.decode(r)
	}
	clear(s.residents) // an old policy's weights are freed with its last reference
	s.running = slices.DeleteFunc(s.running, func(l *lane) bool {
		if l.finished {
			s.finish(l)
		}
		return l.finished
	})
}

// dropCancelled takes out the calls whose callers have gone.
func (s *scheduler) dropCancelled() {
	s.queue = slices.DeleteFunc(s.queue, func(c *call) bool { return c.ctx.Err() != nil })
	s.running = slices.DeleteFunc(s.running, func(l *lane) bool {
		gone := l.call.ctx.Err() != nil
		if gone {
			s.prefixes.keep(l.sequence)
		}
		return gone
	})
}

// decode runs one step of the lanes of r that have something to feed.
func (s *scheduler) decode(r *resident) {
	s.batch, s.segments = s.batch[:0], s.segments[:0]
	rows := 0
	for _, l := range s.running {
		if l.resident == r && len(l.segment.Tokens) > 0 {
			s.batch = append(s.batch, l)
			s.segments = append(s.segments, l.segment)
			rows += len(l.segment.Tokens)
		}
	}
	s.counters.computed.Add(int64(rows))
	s.decoder.Step(r.model, s.segments, func(segment, _ int, logits []float32) { s.batch[segment].take(logits) })
	clear(s.batch)
	clear(s.segments)
}

// finish hands over the answer of l's call and keeps its sequence.
func (s *scheduler) finish(l *lane) {
	if l.err == nil {
		s.counters.calls.Add(1)
		s.counters.sampled.Add(int64(len(l.call.completion)))
	}
	l.call.done <- l.err
	s.prefixes.keep(l.sequence)
}
