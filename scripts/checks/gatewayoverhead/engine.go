package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// The engine takes between shortest and twice as long for each call, and says in its answer how long that was.
const shortest = 80 * time.Millisecond

// words is how many more words an answer has.
const words = 32

// work takes the engine's time and is its answer, as the pieces of a text.
func work(ctx context.Context) ([]string, error) {
	began := time.Now()
	timer := time.NewTimer(shortest + rand.N(shortest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	pieces := []string{""}
	for i := range words {
		pieces = append(pieces, fmt.Sprintf(" word%d", i))
	}
	pieces[0] = fmt.Sprintf("%d;", time.Since(began).Nanoseconds())
	return pieces, nil
}

// llm is the engine of a gateway session.
type llm struct{}

// Complete implements agent.LLM.
func (llm) Complete(ctx context.Context, _ agent.Request) (agent.Reply, error) {
	pieces, err := work(ctx)
	if err != nil {
		return agent.Reply{}, err
	}
	r := agent.Reply{Message: chat.Message{Role: chat.Assistant, Content: strings.Join(pieces, "")}, Prompt: []int32{1}, Pieces: pieces}
	for i := range pieces {
		r.Message.Tokens, r.LogProbs = append(r.Message.Tokens, int32(i)), append(r.LogProbs, -1)
	}
	return r, nil
}

// serveEngine is the engine as a server of Chat Completions, for what stands before one.
func serveEngine(w http.ResponseWriter, r *http.Request) {
	pieces, err := work(r.Context())
	if err != nil {
		return // the client is gone
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]any, finish any) {
		body, err := json.Marshal(map[string]any{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "policy",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		if err != nil {
			panic(err) // it is made of texts and numbers
		}
		fmt.Fprintf(w, "data: %s\n\n", body)
	}
	for i, piece := range pieces {
		delta := map[string]any{"content": piece}
		if i == 0 {
			delta["role"] = "assistant"
		}
		chunk(delta, nil)
	}
	chunk(map[string]any{}, "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}
