package wasm

import "github.com/lightswarm/lightswarm/rollout/env/protocol"

// Reason says in which way a module failed.
type Reason = protocol.Reason

// Failure is what a module did wrong.
type Failure = protocol.Failure

// The reasons that modules have.
const (
	ReasonSteps    = protocol.ReasonSteps
	ReasonDepth    = protocol.ReasonDepth
	ReasonTrap     = protocol.ReasonTrap
	ReasonExit     = protocol.ReasonExit
	ReasonOutput   = protocol.ReasonOutput
	ReasonProtocol = protocol.ReasonProtocol
	ReasonAnswer   = protocol.ReasonAnswer
	ReasonReported = protocol.ReasonReported
	ReasonProcess  = protocol.ReasonProcess
)
