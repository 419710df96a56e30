package telemetry

import "strings"

// ID is a span's identity: the id of its trace and its own within it. OpenTelemetry promises both to be unique.
type ID struct {
	Trace [16]byte
	Span  [8]byte
}

// Kind is what a span stands for.
type Kind uint8

// The kinds of spans. What is none of them gives the tree its shape.
const (
	KindOther  Kind = iota
	KindCall        // one request to a model
	KindTool        // one execution of a tool
	KindAgent       // an agent at work
	KindReward      // nothing but a judgement
)

// Span is what matters of one span, the same for all dialects. Texts are bounded: see clip.
type Span struct {
	ID ID
	// Parent is the id of the span above, in the same trace; zero for a root.
	Parent [8]byte
	Kind   Kind
	// Start and End are in nanoseconds since 1970, by the clock of the agent's machine.
	Start, End uint64
	// Failed says that the operation ended with an error.
	Failed bool
	// Agents are the names that may be the agent's whom the span is of, the most telling first.
	Agents []string
	// Tool names the tool of a KindTool, and ToolCall is the id that the model gave the call, or empty.
	Tool, ToolCall string
	// Response is the id that the model's server gave its answer, or empty; of a KindCall.
	Response string
	// Rewards are what the span was judged to be worth, in the order in which it says so.
	Rewards []Reward
	// Rollout and Attempt are what Agent Lightning's tracers say that the span is of; empty from others.
	Rollout, Attempt string
}

// Reward is one judgement.
type Reward struct {
	// Name says what was judged, such as "correctness"; it may be empty.
	Name string
	// Value is finite.
	Value float64
	// Whole says that the rollout is judged, not the span.
	Whole bool
	// Response is the id of the answer that is judged, Linked the span that is; both unset for the span itself.
	Response string
	Linked   ID
}

const (
	// maxText bounds a name or id that is kept of a span, in bytes.
	maxText = 256
	// maxRewards and maxAgents bound what is kept of one span.
	maxRewards = 32
	maxAgents  = 8
)

// clip is s, unless it is too long for a name or an id: then it is none. The copy keeps nothing else in memory.
func clip(s string) string {
	if len(s) > maxText {
		return ""
	}
	return strings.Clone(s)
}
