package pretrain

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// Options say what to learn, from what, and when it is learnt. All fields are required unless they say otherwise.
type Options struct {
	// Seed of the fresh weights.
	Seed uint64
	// Model is the shape of the model. Vocab is the largest vocabulary: the tokenizer may stay smaller, and the model
	// gets exactly the tokenizer's.
	Model transformer.Config
	// Demonstrations is an endless sequence, which only an error ends. It is ranged over several times: for the tokenizer,
	// the lengths and the weights.
	Demonstrations iter.Seq2[Demonstration, error]
	// Right is an endless sequence of right demonstrations of tasks that Demonstrations does not show.
	Right iter.Seq2[Demonstration, error]
	// MaxCompletion is how many tokens rollouts allow a completion; a demonstration with a longer one is an error, because
	// no rollout could do what it shows. 0 is no limit.
	MaxCompletion int
	// Measure runs rollouts of a policy on held-out tasks. It is asked once enough is within reach.
	Measure func(ctx context.Context, s *policy.Snapshot) (Ability, error)
	Gate    Gate

	// TokenizerTexts is how many demonstrations the tokenizer sees. They are also looked at for being too long before
	// training begins, as are those of Right that Reachable is measured on.
	TokenizerTexts int
	// BatchSize is how many demonstrations a step learns from; more if all that these show is untaught.
	BatchSize int
	// RoundSteps is the number of steps of a round. MinRounds are made even if the gate would let the policy through
	// earlier, then as many as that needs, and MaxRounds at most.
	RoundSteps, MinRounds, MaxRounds int
	// LearningRate is reached after a warm-up of Warmup steps at the start of a round, and falls linearly to a
	// twentieth by its end.
	LearningRate float64
	Warmup       int
	// HeldOut is how many right conversations Reachable is measured on.
	HeldOut int

	// Workers is how many goroutines train; it changes no result. 0 means 1.
	Workers int
}

// Demonstration is how an agent solves one task: its conversations with the policy, of which there is at least one.
type Demonstration []Conversation

// Conversation is messages, some of which a policy writes.
type Conversation struct {
	// Role is the agent's that has it, for errors.
	Role     string
	Messages []chat.Message
	// Tools are what the conversation's prompts offer.
	Tools []chat.Tool
	// Said are the indexes of the messages that the policy writes, ascending: at least one, and all the assistant's.
	Said []int
	// Untaught says that the policy does not learn what it says here, as nobody wants it to. The tokenizer does.
	Untaught bool
}

// Ability is how a policy does on held-out tasks, each figure a share of 1.
type Ability struct {
	// Sampled is the mean success of rollouts at temperature 1.
	Sampled float64
	// Greedy is the success of greedy rollouts.
	Greedy float64
	// Best is the share of tasks that at least one of some sampled rollouts solves.
	Best float64
	// Failed is how many rollouts came to no end that says something of the policy, and Failure why the first did.
	Failed  int
	Failure string
}

// Gate is what a policy must be able to do, and what it must not yet do. Bounds are inclusive.
type Gate struct {
	// MinReachable is the smallest share of held-out right demonstrations that the policy writes with a probability
	// of at least ReachableProbability.
	MinReachable, ReachableProbability float64
	MinBest                            float64
	MinSampled, MaxSampled             float64
	MaxGreedy                          float64
}

// ErrGate says that training ended without the ability that the gate asks for.
var ErrGate = errors.New("the policy has not learnt what it should")

// ErrTooLong says that demonstrations show what no rollout could do for want of tokens. The error is a *TooLongError.
var ErrTooLong = errors.New("too long for rollouts")

// TooLongError says which demonstrations are too long.
type TooLongError struct {
	// Demonstrations of Seen are too long.
	Demonstrations, Seen int
	// Tokens is the length of the longest conversation, which is one of the agent's Role; the model holds Context.
	Tokens, Context int
	Role            string
	// Completion is the length of the longest completion, which is one of CompletionRole; rollouts allow MaxCompletion, 0
	// for any number.
	Completion, MaxCompletion int
	CompletionRole            string
}

func (e *TooLongError) Error() string {
	text := fmt.Sprintf("%d of %d demonstrations are %v:", e.Demonstrations, e.Seen, ErrTooLong)
	as := func(role string) string {
		if role == "" {
			return ""
		}
		return ", as " + role
	}
	between := " "
	if e.Tokens > e.Context {
		text += fmt.Sprintf(" the longest conversation has %d tokens%s, and the model holds %d", e.Tokens, as(e.Role), e.Context)
		between = "; "
	}
	if e.MaxCompletion > 0 && e.Completion > e.MaxCompletion {
		text += fmt.Sprintf("%sthe longest completion has %d tokens%s, and rollouts allow %d", between, e.Completion, as(e.CompletionRole), e.MaxCompletion)
	}
	return text
}

// Unwrap is ErrTooLong.
func (e *TooLongError) Unwrap() error { return ErrTooLong }

// check returns an error that wraps ErrGate and names what is missing.
func (g Gate) check(r Report) error {
	switch {
	case r.Reachable < g.MinReachable:
		return fmt.Errorf("%w: %.3f of the right demonstrations are within reach, want %.3f", ErrGate, r.Reachable, g.MinReachable)
	case r.Ability.Best < g.MinBest:
		return fmt.Errorf("%w: %.3f of the tasks are solved at least once, want %.3f", ErrGate, r.Ability.Best, g.MinBest)
	case r.Ability.Sampled < g.MinSampled || r.Ability.Sampled > g.MaxSampled:
		return fmt.Errorf("%w: sampled success is %.3f, want %.3f to %.3f", ErrGate, r.Ability.Sampled, g.MinSampled, g.MaxSampled)
	case r.Ability.Greedy > g.MaxGreedy:
		return fmt.Errorf("%w: greedy success is %.3f, want at most %.3f", ErrGate, r.Ability.Greedy, g.MaxGreedy)
	}
	return nil
}

// Report says how a training went.
type Report struct {
	Digest policy.Digest
	// Vocabulary and Parameters are the sizes of the tokenizer and the model.
	Vocabulary, Parameters int
	Rounds, Steps          int
	// Conversations were shown, of Tokens tokens, Trained of which were learnt.
	Conversations, Tokens, Trained int
	// Loss is the mean negative log-prob of the learnt tokens over the last tenth of the last round, in nats.
	Loss      float64
	Reachable float64
	// Ability is that after the last round that was measured; Measured says whether the last one was.
	Ability  Ability
	Measured bool
}

// Progress is the state of a training after a step.
type Progress struct {
	Round, Step int
	// Loss is the mean negative log-prob of the step's learnt tokens, in nats.
	Loss float64
	// Measured is set after the last step of a round.
	Measured *Report
}
