package gateway

import (
	"encoding/json"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// request is what an agent asks, whatever the dialect.
type request struct {
	// Model is the name that the agent used; Agent the role in it ("policy/solver"), empty if there is none.
	Model, Agent string
	// Unnamed says that nothing in the request named a role.
	Unnamed  bool
	Messages []chat.Message
	Tools    []chat.Tool
	// Strict are the names of the tools whose arguments have to follow their schema.
	Strict []string
	Choice toolChoice
	// SingleCall asks for at most one tool call in an answer.
	SingleCall bool
	Format     format
	// Text or Prompt, a text or token ids to be continued as they are, stands in place of Messages and Tools.
	Text   string
	Prompt []int32
	// Recalled are parts of earlier answers that the request names instead of repeating them: see resolve.
	Recalled []recalled
	// Samples is how many answers are wanted, at least 1.
	Samples int
	// Stop are texts that end an answer before themselves.
	Stop []string
	// MaxTokens is the agent's limit on completion tokens, 0 for none. The network's limit holds as well.
	MaxTokens int
	// Sampling is what else is asked of sampling.
	Sampling samplingFields
	// Stream asks for events; IncludeUsage for a last one with the usage.
	Stream, IncludeUsage bool
	// LogProbs asks for the log-probs of the sampled tokens.
	LogProbs bool
}

// toolChoice says which tools an answer has to call.
type toolChoice struct {
	Kind choiceKind
	Name string // of the tool, for chooseNamed
}

type choiceKind uint8

const (
	chooseAuto choiceKind = iota
	chooseNone
	chooseRequired
	chooseNamed
)

// format says what form an answer's text has to have.
type format struct {
	Kind   formatKind
	Name   string          // of the schema, for formatSchema
	Schema json.RawMessage // a JSON schema, for formatSchema
}

type formatKind uint8

const (
	formatText formatKind = iota
	formatObject
	formatSchema
)

// answer is the policy's reply to a request: one choice for each sample that was wanted.
type answer struct {
	// ID is unique on this node: the dialect puts its own prefix before it.
	ID string
	// Created is in Unix seconds.
	Created int64
	Model   string
	Choices []choice
	Usage   usage
}

// choice is one sampled completion.
type choice struct {
	// Message is an assistant message. The ids of its tool calls are unique within the rollout. Of a completion that
	// is no message it holds the text.
	Message chat.Message
	Finish  finish
	// Tokens and LogProbs are what was sampled, as many of one as of the other; Pieces are the tokens'
	// texts, and nil in an answer without log-probs.
	Tokens   []int32
	LogProbs []float32
	Pieces   []string
}

// finish is why a completion ended.
type finish uint8

const (
	finishStop finish = iota + 1
	finishLength
	finishToolCalls
)

// usage counts tokens.
type usage struct{ Prompt, Completion int }

// event is one server-sent event: Name is empty where the dialect does not name its events.
type event struct {
	Name string
	Data []byte
}

// dialect is one API. Its methods are pure.
type dialect interface {
	// decode reads a request's body. Its errors are *apiError with status 400.
	decode(body []byte) (*request, error)
	// encode is the body of an answer that is not streamed.
	encode(r *request, a *answer) ([]byte, error)
	// stream is an answer as events, in order, with the last mark that the dialect wants.
	stream(r *request, a *answer) ([]event, error)
	// fault is the body of an error.
	fault(e *apiError) []byte
}

// apiError is an error that the agent gets to read.
type apiError struct {
	Status int
	// Type and Code are OpenAI's words, such as "invalid_request_error" and "context_length_exceeded".
	Type, Code string
	// Param names the field at fault, if one is.
	Param   string
	Message string
	// NoRetry tells clients not to try again, whatever the status.
	NoRetry bool
}

func (e *apiError) Error() string { return e.Message }
