package api

import (
	"sync"
	"time"
)

// Event is something that happened on a node. Exactly one of the pointers is set: the one that Type names.
type Event struct {
	// ID counts a node's events since it started. A gap means that the reader was too slow.
	ID   uint64    `json:"id"`
	Time time.Time `json:"time"`
	Type EventType `json:"type"`

	Phase      *PhaseEvent   `json:"phase,omitempty"`
	Release    *Release      `json:"release,omitempty"`
	Policy     *PolicyEvent  `json:"policy,omitempty"`
	Bundle     *BundleEvent  `json:"bundle,omitempty"`
	Verdict    *VerdictEvent `json:"verdict,omitempty"`
	Step       *StepEvent    `json:"step,omitempty"`
	Evaluation *Evaluation   `json:"evaluation,omitempty"`
	Alert      *AlertEvent   `json:"alert,omitempty"`
	Problem    *ProblemEvent `json:"problem,omitempty"`
}

// EventType names the kind of an event.
type EventType string

// The kinds of events.
const (
	// EventPhase: the node does or waits for something else now.
	EventPhase EventType = "phase"
	// EventRelease: the node learned of a newer release.
	EventRelease EventType = "release"
	// EventPolicy: rollouts that start from now on use another policy.
	EventPolicy EventType = "policy"
	// EventBundle: the node announced a bundle of its own.
	EventBundle EventType = "bundle"
	// EventVerdict: the learner accepted or refused a bundle.
	EventVerdict EventType = "verdict"
	// EventStep: the learner made a training step.
	EventStep EventType = "step"
	// EventEvaluation: the measure of a version is complete.
	EventEvaluation EventType = "evaluation"
	// EventAlert: something goes wrong in training, or does no longer.
	EventAlert EventType = "alert"
	// EventProblem: something failed that the node goes on without.
	EventProblem EventType = "problem"
)

// PhaseEvent says what the node does or waits for.
type PhaseEvent struct {
	Phase string `json:"phase"`
	// Finished says that the node's learner is done: its last version is out, and measured or given up.
	Finished bool `json:"finished,omitempty"`
}

// PolicyEvent says that a policy is in use.
type PolicyEvent struct {
	Version uint64 `json:"version"`
	// Policy is its digest in hexadecimal.
	Policy string `json:"policy"`
	// FetchSeconds is how long it took from the release's arrival until the policy was ready.
	FetchSeconds float64 `json:"fetch_seconds"`
}

// BundleEvent describes an announced bundle.
type BundleEvent struct {
	CID              string `json:"cid"`
	Purpose          string `json:"purpose"`
	Version          uint64 `json:"version"`
	Sequence         uint64 `json:"sequence"`
	Counter          uint64 `json:"counter"`
	Rollouts         int    `json:"rollouts"`
	CompletionTokens int    `json:"completion_tokens"`
	Bytes            int    `json:"bytes"`
}

// VerdictEvent says what a learner decided about an announced bundle.
type VerdictEvent struct {
	CID      string `json:"cid"`
	Peer     string `json:"peer"`
	Purpose  string `json:"purpose"`
	Version  uint64 `json:"version"`
	Rollouts int    `json:"rollouts"`
	// CompletionTokens is what the policy sampled in them.
	CompletionTokens int  `json:"completion_tokens"`
	Accepted         bool `json:"accepted"`
	// Reason is a stable word: accepted, or why the bundle was refused.
	Reason string `json:"reason"`
	// Detail says more in words; absent when there is no more to say.
	Detail string `json:"detail,omitempty"`
}

// StepEvent is one training step. Package learner defines every number (see learner.Step). One that is a pointer is null if
// it was not measured or is not finite.
type StepEvent struct {
	// Version is the release that the step made.
	Version uint64 `json:"version"`
	Final   bool   `json:"final"`
	// WaitedSeconds went by until the step had its groups, TrainedSeconds from there to the durable checkpoint.
	WaitedSeconds  float64 `json:"waited_seconds"`
	TrainedSeconds float64 `json:"trained_seconds"`

	// Groups were used up, of which Learned had advantages to learn from; Peers is how many peers they came from.
	Groups  int `json:"groups"`
	Learned int `json:"learned"`
	Peers   int `json:"peers"`
	// Rollouts have a reward, of mean RewardMean; Solved is the share of them with the largest reward there is.
	Rollouts   int      `json:"rollouts"`
	RewardMean *float64 `json:"reward_mean"`
	Solved     *float64 `json:"solved"`
	// AdvantageStd is the standard deviation of the trained completions' advantages.
	AdvantageStd *float64 `json:"advantage_std"`
	// MostGroups of Groups came from one peer.
	MostGroups int `json:"most_groups"`
	// Lags counts Groups by lag, Drops those that nothing was learned from by reason.
	Lags  map[uint64]int `json:"lags"`
	Drops map[string]int `json:"drops"`

	Tokens        int      `json:"tokens"`
	TrainedTokens int      `json:"trained_tokens"`
	Loss          *float64 `json:"loss"`
	// Clipped is the share of trained tokens whose gradient a bound changed.
	Clipped *float64 `json:"clipped"`
	// EffectiveSamples is the share of trained tokens that would teach as much if all counted alike.
	EffectiveSamples *float64 `json:"effective_samples"`
	KL               *float64 `json:"kl"`
	Entropy          *float64 `json:"entropy"`
	// GradientNorm is the largest norm of a minibatch's gradient before clipping.
	GradientNorm *float64 `json:"gradient_norm"`
	LearningRate *float64 `json:"learning_rate"`
	// Skipped says why the weights did not change; absent when they did.
	Skipped string `json:"skipped,omitempty"`

	// Waiting groups were left for the next step; Quota is what the release asks of each of Active nodes.
	Waiting int    `json:"waiting"`
	Active  int    `json:"active"`
	Quota   uint32 `json:"quota"`
	// Yield is the part of the latest steps' groups that taught something.
	Yield float64 `json:"yield"`
	// GroupsTrained is how many groups the chain has learned from so far.
	GroupsTrained uint64 `json:"groups_trained"`
}

// AlertEvent says that a learner's alert was raised, or that it is over.
type AlertEvent struct {
	Alert
	Over bool `json:"over"`
	// Version is the version with which it changed.
	Version uint64 `json:"version"`
}

// ProblemEvent is a failure that the node goes on without.
type ProblemEvent struct {
	Message string `json:"message"`
}

// Broadcaster hands a node's events to its subscribers. The zero value is ready. It is safe for concurrent use.
type Broadcaster struct {
	mu          sync.Mutex
	next        uint64                   // guarded by mu
	subscribers map[*subscriber]struct{} // guarded by mu
	closed      bool                     // guarded by mu
}

type subscriber struct{ events chan Event }

// Publish numbers and dates an event and hands it to every subscriber that has room; it never waits.
func (b *Broadcaster) Publish(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	e.ID, e.Time = b.next, time.Now()
	b.next++
	for s := range b.subscribers {
		select {
		case s.events <- e:
		default: // The gap in the ids tells the subscriber.
		}
	}
}

// Subscribe returns the events from now on, buffered up to a number of them, and a function that ends the
// subscription. The channel is closed when the subscription ends or the broadcaster closes.
func (b *Broadcaster) Subscribe(buffer int) (<-chan Event, func()) {
	s := &subscriber{make(chan Event, buffer)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(s.events)
		return s.events, func() {}
	}
	if b.subscribers == nil {
		b.subscribers = make(map[*subscriber]struct{})
	}
	b.subscribers[s] = struct{}{}
	return s.events, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, there := b.subscribers[s]; there {
			delete(b.subscribers, s)
			close(s.events)
		}
	}
}

// Close ends every subscription; events that are published later are dropped.
func (b *Broadcaster) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.subscribers {
		delete(b.subscribers, s)
		close(s.events)
	}
}
