package policy

import (
	"context"
	"errors"

	"github.com/lightswarm/lightswarm/policy/grammar"
)

// Sampling says how a token is drawn from the policy's distribution.
type Sampling struct {
	// Temperature divides the logits; 0 is greedy: the token with the largest logit, the lowest id among equals.
	Temperature float32
	// TopK keeps the K most probable tokens; 0 keeps all.
	TopK int
	// TopP keeps the smallest set of most probable tokens whose probability reaches P; 0 and 1 keep all.
	TopP float32
}

// SampleKey seeds the counter-based generator of one call: the token at position i of the completion is drawn with
// the i-th number of the key's stream. Package wire/draw derives it.
type SampleKey [32]byte

// FinishReason says why a completion ended.
type FinishReason uint8

// The reasons for which a completion ends.
const (
	FinishStop   FinishReason = 1 // a stop token, which is the completion's last token
	FinishLength FinishReason = 2 // MaxTokens, or the model's context, was reached
)

// Request asks a session for one completion.
type Request struct {
	Prompt    []int32
	MaxTokens int
	// Stop are the token ids that end a completion.
	Stop     []int32
	Sampling Sampling
	Key      SampleKey
	// Grammar, if it is not nil, is what the completion has to be by: see Constrainer.
	Grammar *grammar.Grammar
}

// Completion is what a session answered.
type Completion struct {
	Tokens []int32
	// LogProbs are the natural logarithms of the probability of each token under the distribution that it was
	// sampled from; those of an exact engine are on the grid of LogProbGrid.
	LogProbs []float32
	Finish   FinishReason
}

// LogProbGrid is the step of canonical log-probabilities: an exact engine rounds each to the nearest multiple (ties
// to even), in decoding, scoring and training alike. 2^-16 changes an importance ratio by less than 1e-5 and makes a
// recorded log-prob about two bytes.
const LogProbGrid = 1.0 / (1 << 16)

// ErrPromptTooLong says that a prompt leaves no room for a completion in the model's context.
var ErrPromptTooLong = errors.New("prompt does not fit the model's context")

// Engine runs a policy. It is safe for concurrent use.
type Engine interface {
	// Load makes s the policy of the sessions opened from now on; open sessions keep theirs.
	Load(ctx context.Context, s *Snapshot) error
	// Open starts a session on the newest loaded policy. The caller closes it.
	Open() (Session, error)
	// Close waits for running calls to end and frees the engine.
	Close() error
}

// Session is one policy, pinned: nothing that is loaded meanwhile changes its answers. It is safe for concurrent use.
type Session interface {
	// Policy is the digest of the pinned policy.
	Policy() Digest
	// Generate blocks until the completion is done. Calls of concurrent rollouts are batched together, which
	// never changes a result of an exact engine.
	Generate(ctx context.Context, r Request) (Completion, error)
	// Score returns the log-prob at temperature 1, without top-k and top-p, of tokens[from:], each given all
	// tokens before it; from is at least 1.
	Score(ctx context.Context, tokens []int32, from int) ([]float32, error)
	Close()
}

// Constrainer is a Session that can sample within a grammar. Only such a session is given a Request with one.
//
// Each token is then drawn from those that the grammar allows after the ones before it, in a room of as many tokens as
// the completion may have: MaxTokens, or fewer where the model's context ends before. Temperature, top-k and top-p are
// applied to what is left, and log-probs are those of the distribution that was drawn from.
type Constrainer interface {
	Session
	// ScoreWithin is Score for a completion that begins at from and was sampled within a grammar, in this room. It fails
	// if the grammar does not allow the completion.
	ScoreWithin(ctx context.Context, tokens []int32, from int, g *grammar.Grammar, room int) ([]float32, error)
}
