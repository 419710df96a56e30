package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Policy is one policy version, pinned and ready to answer calls. It is safe for concurrent use.
type Policy struct {
	// Version is the policy's place in the release chain, Session what runs it, Template its chat template.
	Version  uint64
	Session  policy.Session
	Template *chat.Template
	// Stop are the token ids that end a completion.
	Stop []int32
	// Context is the most tokens that the model holds, prompt and completion together; 0 means that it is not known.
	Context int
	// Engine says whether the session's answers can be recomputed exactly.
	Engine bundle.EngineClass
}

// NewPolicy joins a session with the template and the stop tokens of the snapshot that it runs. It fails if the
// session runs another one.
func NewPolicy(version uint64, s *policy.Snapshot, session policy.Session, engine bundle.EngineClass) (*Policy, error) {
	if got, want := session.Policy(), s.Digest(); got != want {
		return nil, fmt.Errorf("the session runs policy %s, not %s", got.Short(), want.Short())
	}
	template, err := chat.NewTemplate(s.Template, s.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", s.Digest().Short(), err)
	}
	var config struct {
		Context int `json:"max_position_embeddings"`
	}
	if err := json.Unmarshal(s.ConfigJSON, &config); err != nil {
		return nil, fmt.Errorf("policy %s: config: %w", s.Digest().Short(), err)
	}
	return &Policy{
		Version: version, Session: session, Template: template, Stop: s.Generation.Stop, Context: config.Context, Engine: engine,
	}, nil
}

// Release is a policy version with what its release asks of rollout nodes.
type Release struct {
	*Policy
	// Evaluate asks for a measurement on held-out tasks.
	Evaluate bool
	// GroupsPerVersion paces training groups; 0 keeps the charter's.
	GroupsPerVersion uint32
	// Final says that the learner stopped: the version is evaluated and no groups are run under it.
	Final bool
	// Close unpins the policy; the holder calls it once.
	Close func()
}

// PolicySource is where a worker gets policies from. It is safe for concurrent use.
type PolicySource interface {
	// Acquire returns the newest release whose policy is ready, pinned. It blocks until there is one.
	Acquire(ctx context.Context) (Release, error)
	// Wait returns nil as soon as Acquire would return a version above this one, or the context's error. Any other error,
	// also of a deadline of its own, ends the worker.
	Wait(ctx context.Context, version uint64) error
}
