package bundle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/wire"
)

// Bundle is a group of rollouts of one task, or a block of held-out tasks. It holds nothing that depends on time or
// on the machine: with an exact engine it follows from policy, environment and draw alone.
type Bundle struct {
	Network       wire.CID
	Purpose       wire.Purpose
	Environment   wire.CID
	Split         string
	PolicyVersion uint64
	PolicyDigest  [32]byte
	// Peer ran the rollouts. It is empty for evaluation, which does not depend on who ran it.
	Peer wire.PeerID
	// Counter is the draw counter for training, the block number for evaluation.
	Counter  uint64
	Sampling wire.Sampling
	// MaxCompletionTokens is the limit that every call ran under.
	MaxCompletionTokens uint32
	Engine              EngineClass
	// Rollouts are the group's members, or the block's tasks, in order.
	Rollouts []Rollout
}

// EngineClass says how far an engine's results can be repeated.
type EngineClass uint8

// The classes of engines.
const (
	EngineExact       EngineClass = 1 // same bits on every machine
	EngineApproximate EngineClass = 2 // close to itself, never to the bit
)

// Rollout is one execution of one task.
type Rollout struct {
	// Member is the position in the group for training, in the block for evaluation.
	Member uint32
	// Task is the task's index in the split.
	Task    uint64
	Outcome OutcomeKind
	// Reward is 0 unless the outcome is trainable.
	Reward float32
	// Components explain the reward, sorted by name; none repeats.
	Components []Component
	// Calls are in the order in which they were made.
	Calls []Call
}

// Component is one named part of a reward.
type Component struct {
	Name  string
	Value float32
}

// Valid says that a bundle can hold the component: its name is printable and not too long, its value finite.
func (c Component) Valid() bool { return isName(c.Name, wire.MaxComponentName) && finite(c.Value) }

// OutcomeKind says how a rollout ended.
type OutcomeKind uint8

// The outcomes of a rollout.
const (
	OutcomeScored     OutcomeKind = 1 // the environment judged the agent's answer
	OutcomeTruncated  OutcomeKind = 2 // a limit on calls or tokens ended it; judged as it stood
	OutcomeAgentError OutcomeKind = 3 // the agent failed
	OutcomeEnvError   OutcomeKind = 4 // the environment failed
	OutcomeTimeout    OutcomeKind = 5 // time ran out
)

// Trainable says whether the reward means something: an infrastructure fault is never reward 0.
func (k OutcomeKind) Trainable() bool { return k == OutcomeScored || k == OutcomeTruncated }

// String returns the outcome's name as users see it, such as "agent_error".
func (k OutcomeKind) String() string {
	names := [...]string{"unknown", "scored", "truncated", "agent_error", "env_error", "timeout"}
	if int(k) >= len(names) {
		k = 0
	}
	return names[k]
}

// Call is one request of the agent to the policy: exact token ids in and out.
type Call struct {
	// Agent is the role that made the call.
	Agent              string
	Prompt, Completion []int32
	// LogProbs are the natural logarithms of the completion tokens' probabilities under the distribution that
	// they were sampled from; as many as tokens.
	LogProbs []float32
	// Finish is why the completion ended, in the numbers of policy.FinishReason.
	Finish uint8
	// Grammar is what the completion was sampled within, in the encoding of package policy/grammar; empty for none. Then
	// the distribution that it was sampled from has only the tokens that the grammar allows.
	Grammar string
	// Reward is an intermediate reward, or nil.
	Reward *float32
	// Asked is what the agent wanted of sampling, where the network's rules held all the same: a JSON object of names and
	// values, in printable text on one line of at most wire.MaxAskedBytes. It is for people to read: nothing follows from it,
	// and whoever verifies a call leaves it out. Empty for nothing.
	Asked string
}

// CompletionTokens is the number of tokens that the policy sampled in all rollouts.
func (b *Bundle) CompletionTokens() int {
	n := 0
	for i := range b.Rollouts {
		for j := range b.Rollouts[i].Calls {
			n += len(b.Rollouts[i].Calls[j].Completion)
		}
	}
	return n
}

// Announcement says what is in the bundle, whose encoding is body. Sequence and Created are the announcer's to fill in.
func (b *Bundle) Announcement(body []byte) wire.Announcement {
	return wire.Announcement{
		Network:          b.Network,
		Purpose:          b.Purpose,
		Bundle:           wire.SumCID(body),
		BundleBytes:      uint32(len(body)),
		PolicyVersion:    b.PolicyVersion,
		PolicyDigest:     b.PolicyDigest,
		Environment:      b.Environment,
		Counter:          b.Counter,
		Rollouts:         uint32(len(b.Rollouts)),
		CompletionTokens: uint32(b.CompletionTokens()),
	}
}

// Validate returns a *wire.ValidationError that names the first field at fault.
func (b *Bundle) Validate() error {
	if err := b.validateHeader(); err != nil {
		return err
	}
	if len(b.Rollouts) == 0 || len(b.Rollouts) > wire.MaxRolloutsPerBundle {
		return invalid("rollouts", fmt.Sprintf("must be between 1 and %d", wire.MaxRolloutsPerBundle))
	}
	tokens := 0
	for i := range b.Rollouts {
		if err := b.Rollouts[i].validate(fmt.Sprintf("rollouts[%d]", i)); err != nil {
			return err
		}
		for _, c := range b.Rollouts[i].Calls {
			tokens += len(c.Prompt) + len(c.Completion)
		}
	}
	if tokens > wire.MaxBundleTokens {
		return invalid("rollouts", fmt.Sprintf("have %d tokens; at most %d are allowed", tokens, wire.MaxBundleTokens))
	}
	return nil
}

// validateHeader checks everything but the rollouts.
func (b *Bundle) validateHeader() error {
	switch {
	case !b.Network.Defined():
		return invalid("network", "must be a CID")
	case !b.Purpose.Valid():
		return invalid("purpose", "must be train, evaluate-sampled or evaluate-greedy")
	case !b.Environment.Defined():
		return invalid("environment", "must be a CID")
	case !isName(b.Split, wire.MaxNameBytes):
		return invalid("split", "must be a name")
	case b.PolicyDigest == [32]byte{}:
		return invalid("policy_digest", "must be a digest of 32 bytes")
	case (b.Peer == "") != (b.Purpose != wire.PurposeTrain):
		return invalid("peer", "must be set for training, and only then")
	case b.MaxCompletionTokens == 0 || b.MaxCompletionTokens > wire.MaxTokensPerCall:
		return invalid("max_completion_tokens", fmt.Sprintf("must be between 1 and %d", wire.MaxTokensPerCall))
	case b.Engine != EngineExact && b.Engine != EngineApproximate:
		return invalid("engine", "must be exact or approximate")
	}
	if b.Peer != "" {
		if _, err := wire.ParsePeerID([]byte(b.Peer)); err != nil {
			return invalid("peer", "must be a peer id with an ed25519 key inside")
		}
	}
	return b.Sampling.Validate()
}

func (r *Rollout) validate(field string) error {
	switch {
	case r.Member >= wire.MaxRolloutsPerBundle:
		return invalid(field+".member", fmt.Sprintf("must be below %d", wire.MaxRolloutsPerBundle))
	case r.Task >= wire.MaxSplitTasks:
		return invalid(field+".task", "is above every split's size")
	case r.Outcome < OutcomeScored || r.Outcome > OutcomeTimeout:
		return invalid(field+".outcome", "is unknown to this version of lightswarm")
	case !finite(r.Reward):
		return invalid(field+".reward", "must be finite")
	case !r.Outcome.Trainable() && math.Float32bits(r.Reward) != 0:
		return invalid(field+".reward", "must be 0 for an outcome without one")
	case len(r.Components) > wire.MaxComponents:
		return invalid(field+".components", fmt.Sprintf("must be at most %d", wire.MaxComponents))
	case len(r.Calls) > wire.MaxCallsPerRollout:
		return invalid(field+".calls", fmt.Sprintf("must be at most %d", wire.MaxCallsPerRollout))
	}
	for i, c := range r.Components {
		switch {
		case !isName(c.Name, wire.MaxComponentName):
			return invalid(field+".components", "must have printable names")
		case i > 0 && r.Components[i-1].Name >= c.Name:
			return invalid(field+".components", "must be sorted by name, each name once")
		case !finite(c.Value):
			return invalid(field+".components", "must be finite")
		}
	}
	for i := range r.Calls {
		if why := r.Calls[i].validate(); why != "" {
			return invalid(fmt.Sprintf("%s.calls[%d]", field, i), why)
		}
	}
	return nil
}

// validate returns why a call is invalid, or "".
func (c *Call) validate() string {
	negative := func(t int32) bool { return t < 0 }
	infinite := func(v float32) bool { return !finite(v) }
	switch {
	case !isName(c.Agent, wire.MaxAgentName):
		return "must name its agent"
	case len(c.Prompt) == 0 || len(c.Prompt) > wire.MaxTokensPerCall:
		return fmt.Sprintf("must have a prompt of 1 to %d tokens", wire.MaxTokensPerCall)
	case len(c.Completion) > wire.MaxTokensPerCall:
		return fmt.Sprintf("must have a completion of at most %d tokens", wire.MaxTokensPerCall)
	case len(c.LogProbs) != len(c.Completion):
		return "must have one log-prob for each completion token"
	case slices.ContainsFunc(c.Prompt, negative) || slices.ContainsFunc(c.Completion, negative):
		return "must not have negative token ids"
	case slices.ContainsFunc(c.LogProbs, infinite):
		return "must have finite log-probs"
	case len(c.Grammar) > wire.MaxGrammarBytes:
		return fmt.Sprintf("must have a grammar of at most %d bytes", wire.MaxGrammarBytes)
	case c.Reward != nil && !finite(*c.Reward):
		return "must have a finite reward"
	case c.Asked != "" && !isName(c.Asked, wire.MaxAskedBytes):
		return fmt.Sprintf("must say what was asked in at most %d bytes of printable text", wire.MaxAskedBytes)
	}
	return ""
}

func invalid(field, why string) error {
	return &wire.ValidationError{Message: "bundle", Field: field, Why: why}
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// isName accepts a non-empty printable text of one line.
func isName(s string, limit int) bool {
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	return s != "" && len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable)
}
