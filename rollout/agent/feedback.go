package agent

// Feedback is what is said of a run besides its answer: by the agent itself, by its instrumentation, by the tools that it
// used. What of it counts is for the environment's manifest to say.
type Feedback struct {
	// Reward is the agent's judgement of its run, finite; nil if there is none. Components explain it, by name.
	Reward     *float64
	Components map[string]float64
	// Calls is what is said of single calls, by their number.
	Calls map[int]CallFeedback
	// Tools are the executions of tools, in the order in which they began.
	Tools []ToolOutcome
}

// CallFeedback is what is said of one call.
type CallFeedback struct {
	// Agent is the role that made the call; empty if the call said so itself, or nobody does.
	Agent string
	// Reward is what the call was given, finite; nil for none.
	Reward *float64
}

// ToolOutcome is one execution of a tool.
type ToolOutcome struct {
	// Call is the number of the call that called the tool.
	Call   int
	Tool   string
	Failed bool
}
