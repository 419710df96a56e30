package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// Session is one pinned policy of an engine. It implements policy.Constrainer.
type Session struct {
	engine   *Engine
	digest   policy.Digest
	config   transformer.Config
	resident *resident // guarded by engine.mu; nil after Close
	grammars func() *grammar.Cache
}

var _ policy.Constrainer = (*Session)(nil)

// Policy is the digest of the pinned policy.
func (s *Session) Policy() policy.Digest { return s.digest }

// Close gives the policy up. Calls that run keep their answers.
func (s *Session) Close() {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if r := s.resident; r != nil {
		s.resident = nil
		r.sessions--
		s.engine.retireUnused(r)
	}
}

// Generate answers one request. It fails with ErrRequest, policy.ErrPromptTooLong, ErrNotFinite, ErrClosed or the
// context's error; a cancelled call gives its slot back before the engine's next step.
func (s *Session) Generate(ctx context.Context, r policy.Request) (policy.Completion, error) {
	if err := s.checkGenerate(r); err != nil {
		return policy.Completion{}, fmt.Errorf("generate: %w", err)
	}
	// A cancelled call outlives Generate, so it has its own copies.
	r.Prompt, r.Stop = slices.Clone(r.Prompt), slices.Clone(r.Stop)
	c := &call{ctx: ctx, request: r, tokens: r.Prompt, reusable: len(r.Prompt) - 1}
	c.room = min(r.MaxTokens, s.config.Context-len(r.Prompt))
	if r.Grammar != nil {
		c.matcher = s.grammars().Automaton(r.Grammar).NewMatcher(c.room)
	}
	if err := s.do(c); err != nil {
		return policy.Completion{}, fmt.Errorf("generate: %w", err)
	}
	return policy.Completion{Tokens: c.completion, LogProbs: c.logProbs, Finish: c.finish}, nil
}

// Score returns the log-probs of tokens[from:]. It fails like Generate.
func (s *Session) Score(ctx context.Context, tokens []int32, from int) ([]float32, error) {
	return s.score(ctx, tokens, from, nil)
}

// ScoreWithin implements policy.Constrainer. It fails like Generate, and with ErrRequest for a completion that the grammar
// does not allow.
func (s *Session) ScoreWithin(ctx context.Context, tokens []int32, from int, g *grammar.Grammar, room int) ([]float32, error) {
	return s.score(ctx, tokens, from, s.grammars().Automaton(g).NewMatcher(room))
}

func (s *Session) score(ctx context.Context, tokens []int32, from int, m *grammar.Matcher) ([]float32, error) {
	if err := s.checkScore(tokens, from); err != nil {
		return nil, fmt.Errorf("score: %w", err)
	}
	if from == len(tokens) {
		return []float32{}, nil
	}
	c := &call{ctx: ctx, score: true, tokens: slices.Clone(tokens), reusable: from - 1, matcher: m}
	c.logProbs = make([]float32, 0, len(tokens)-from)
	if err := s.do(c); err != nil {
		return nil, fmt.Errorf("score: %w", err)
	}
	return c.logProbs, nil
}

func (s *Session) checkGenerate(r policy.Request) error {
	if r.MaxTokens < 1 {
		return fmt.Errorf("%w: at most %d tokens were asked for", ErrRequest, r.MaxTokens)
	}
	if err := checkSampling(r.Sampling); err != nil {
		return err
	}
	if r.Grammar != nil && !slices.Contains(r.Stop, s.grammars().Vocabulary().End()) {
		return fmt.Errorf("%w: the token that ends what the grammar describes does not stop the completion", ErrRequest)
	}
	if len(r.Prompt) >= s.config.Context {
		return fmt.Errorf("%w: %d tokens in a context of %d", policy.ErrPromptTooLong, len(r.Prompt), s.config.Context)
	}
	return s.checkTokens(r.Prompt)
}

func (s *Session) checkScore(tokens []int32, from int) error {
	if from < 1 || from > len(tokens) {
		return fmt.Errorf("%w: from token %d of %d", ErrRequest, from, len(tokens))
	}
	if len(tokens) > s.config.Context {
		return fmt.Errorf("%w: %d tokens in a context of %d", policy.ErrPromptTooLong, len(tokens), s.config.Context)
	}
	return s.checkTokens(tokens)
}

func (s *Session) checkTokens(tokens []int32) error {
	if len(tokens) == 0 {
		return fmt.Errorf("%w: there are no tokens", ErrRequest)
	}
	for i, token := range tokens {
		if token < 0 || int(token) >= s.config.Vocab {
			return fmt.Errorf("%w: token %d is %d, the vocabulary has %d", ErrRequest, i, token, s.config.Vocab)
		}
	}
	return nil
}

// do runs a call to its end. After an error the scheduler may still hold the call.
func (s *Session) do(c *call) error {
	e := s.engine
	e.mu.Lock()
	if e.closed || s.resident == nil {
		e.mu.Unlock()
		return ErrClosed
	}
	c.resident = s.resident
	e.running.Add(1)
	e.mu.Unlock()
	defer e.running.Done()

	c.done = make(chan error, 1)
	select {
	case e.calls <- c:
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	select {
	case err := <-c.done:
		return err
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}
