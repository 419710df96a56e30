package wasm

// Reason says in which way a module failed. Reasons are stable.
type Reason string

// The reasons.
const (
	// ReasonSteps: a request took more steps than the manifest allows.
	ReasonSteps Reason = "steps"
	// ReasonDepth: calls were nested too deeply.
	ReasonDepth Reason = "depth"
	// ReasonTrap: an instruction failed, such as an access outside memory or a division by zero.
	ReasonTrap Reason = "trap"
	// ReasonExit: the module ended before it had answered.
	ReasonExit Reason = "exit"
	// ReasonOutput: an answer was too long.
	ReasonOutput Reason = "output"
	// ReasonProtocol: what the module wrote or read is not as the protocol has it.
	ReasonProtocol Reason = "protocol"
	// ReasonAnswer: an answer is not what its request wants, or breaks what the manifest promises.
	ReasonAnswer Reason = "answer"
	// ReasonReported: the module itself said that it failed.
	ReasonReported Reason = "reported"
	// ReasonProcess: the child process ended or hung, or could not be started.
	ReasonProcess Reason = "process"
)

// Failure is what an environment did wrong. The outcome of its rollout is env_error.
type Failure struct {
	Reason Reason
	// Detail says it for people: what happened, in which request, and what the author can do.
	Detail string
}

func (f *Failure) Error() string { return f.Detail }
