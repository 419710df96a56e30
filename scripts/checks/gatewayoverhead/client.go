package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// endpoint is where a client sends its calls.
type endpoint struct{ base, key string }

// prompt is what every call asks, of the size of an agent's.
var prompt = strings.Repeat("A few words of what an agent was told. ", 50)

// ask makes one streamed call, and returns how much longer it took than the engine.
func ask(ctx context.Context, c *http.Client, e endpoint, call int) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{
		"model": "policy", "stream": true, "messages": []any{
			map[string]any{"role": "system", "content": prompt}, map[string]any{"role": "user", "content": fmt.Sprint("call ", call)},
		},
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+e.key)
	r, err := c.Do(q)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the call was answered with %s", r.Status)
	}
	var text strings.Builder
	done := false
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if done = data == "[DONE]"; done {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return 0, err
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	took := time.Since(began)
	if err := lines.Err(); err != nil {
		return 0, err
	}
	said, rest, ok := strings.Cut(text.String(), ";")
	engine, err := strconv.ParseInt(said, 10, 64)
	if !done || !ok || err != nil || len(strings.Fields(rest)) != words {
		return 0, fmt.Errorf("the answer is not whole: %q", text.String())
	}
	return took - time.Duration(engine), nil
}

// figures are how much longer calls took than the engine.
type figures struct {
	calls    int
	p50, p99 time.Duration
	// perSecond is how many calls were answered a second.
	perSecond float64
}

// load has clients, each with a connection and an endpoint of its own, make calls one after the other, and measures all but
// the first of each. The first failure ends it.
func load(ctx context.Context, endpoints []endpoint, calls int) (figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all []time.Duration
	var running sync.WaitGroup
	began := time.Now()
	for i, e := range endpoints {
		running.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for call := range calls + 1 {
				over, err := ask(ctx, client, e, call)
				if err != nil {
					cancel(fmt.Errorf("client %d, call %d: %w", i, call, err))
					return
				}
				if call > 0 {
					mu.Lock()
					all = append(all, over)
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return figures{}, err
	}
	if len(all) == 0 {
		return figures{}, errors.New("no call was made")
	}
	slices.Sort(all)
	return figures{
		calls: len(all), p50: all[len(all)/2], p99: all[len(all)*99/100],
		perSecond: float64(len(endpoints)*(calls+1)) / time.Since(began).Seconds(),
	}, nil
}
