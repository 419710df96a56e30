//go:build sdks

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// patience bounds one program, on a machine that does much else.
const patience = 4 * time.Minute

// keepalive is short, so that streams have comments before their first event.
const keepalive = 20 * time.Millisecond

// said is what a program printed, by scene.
type said map[string][]any

// scenes is what each program prints; more is what it prints besides, and instead.
func scenes(more said) said {
	const atFirst, then = "Rome is, with 21 against 4.", "It has 7."
	all := said{
		"plain":  {"Hello there."},
		"stream": {"One, two, three."},
		"tools":  {atFirst, atFirst},
		"turns":  {then, then},
		"error":  {[]any{409.0, "calls_exhausted"}},
		"retry":  {"Here I am."},
	}
	for name, values := range more {
		all[name] = values
	}
	return all
}

// clients are the programs.
var clients = []struct {
	program, argument string
	want              said
	// stubborn says that the library tries a status of 409 two times more, whatever the headers say.
	stubborn bool
	// rewrites says that the library puts the policy's messages into words of its own, which are no messages of the
	// policy's any more.
	rewrites bool
}{
	{program: "python/openai_chat.py", want: scenes(said{
		"slow": {"Here I am."}, "late": {"the engine that runs the policy failed"}, "stream usage": {true}, "logprobs": {true}, "several": {[]any{"Hello there.", "Hello there."}},
		"refused": {400.0}, "models": {"policy"},
	})},
	{program: "python/openai_responses.py", want: scenes(said{
		"slow": {"Here I am."}, "late": {"the engine that runs the policy failed"}, "stream usage": {true}, "logprobs": {true}, "refused": {400.0},
	})},
	{program: "python/anthropic_messages.py", want: scenes(said{
		"slow": {"Here I am."}, "late": {"the engine that runs the policy failed"}, "stream usage": {true}, "error": {[]any{409.0, "invalid_request_error"}},
	})},
	{program: "python/openai_agents.py", argument: "responses", want: scenes(nil)},
	{program: "python/openai_agents.py", argument: "chat_completions", want: scenes(nil)},
	{program: "python/langchain_agent.py", argument: "chat", want: scenes(said{"stream usage": {true}})},
	{program: "python/langchain_agent.py", argument: "responses", want: scenes(said{"stream usage": {true}})},
	{program: "python/pydantic_agent.py", argument: "chat", want: scenes(nil)},
	{program: "python/pydantic_agent.py", argument: "responses", want: scenes(nil)},
	{program: "python/autogen_agent.py", want: scenes(nil)},
	{program: "python/smolagents_agent.py", want: scenes(said{"stop": {"The "}}), rewrites: true},
	{program: "python/litellm_agent.py", want: scenes(said{"error": {409.0}})},
	{program: "javascript/openai_chat.mjs", want: scenes(said{"slow": {"Here I am."}, "late": {"the engine that runs the policy failed"}, "stream usage": {true}})},
	{program: "javascript/openai_responses.mjs", want: scenes(said{"slow": {"Here I am."}, "late": {"the engine that runs the policy failed"}, "stream usage": {true}})},
	{program: "javascript/anthropic_messages.mjs", want: scenes(said{
		"slow": {"Here I am."}, "late": {"the engine that runs the policy failed"}, "stream usage": {true}, "error": {[]any{409.0, "invalid_request_error"}},
	})},
	{program: "javascript/openai_agents.mjs", argument: "responses", want: scenes(nil)},
	{program: "javascript/openai_agents.mjs", argument: "chat", want: scenes(nil)},
	{program: "javascript/langchain_agent.mjs", argument: "chat", want: scenes(said{"stream usage": {true}})},
	{program: "javascript/langchain_agent.mjs", argument: "responses", want: scenes(said{"stream usage": {true}})},
	{program: "javascript/vercel_ai.mjs", argument: "responses", stubborn: true, want: scenes(said{"stream usage": {true}, "error": {409.0}})},
	{program: "javascript/vercel_ai.mjs", argument: "chat", stubborn: true, want: scenes(said{"stream usage": {true}, "error": {409.0}})},
}

func TestClients(t *testing.T) {
	// The folder that scripts/checks/sdk-conformance installs into.
	cache := os.Getenv("SDK_CONFORMANCE_CACHE")
	if cache == "" {
		t.Fatal("SDK_CONFORMANCE_CACHE is not set; run scripts/checks/sdk-conformance")
	}
	g, err := gateway.Serve(gateway.Options{Keepalive: keepalive})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range clients {
		t.Run(strings.TrimSpace(c.program+" "+c.argument), func(t *testing.T) {
			t.Parallel()
			policy := newScript(t)
			s, err := g.Open(t.Context(), gateway.SessionOptions{LLM: policy, Agents: []string{"guide"}})
			if err != nil {
				t.Fatal(err)
			}
			between := newBetween(t, g.Address(), policy.ready)
			got := play(t, cache, c.program, c.argument, append(between.environ(), between.redirect(s.Environ())...))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
			if strangers := between.strangers(); len(strangers) > 0 {
				t.Errorf("it asked for %q, which is not the gateway", strangers)
			}
			if summary := s.End(); !summary.Truncated || summary.Failure == nil {
				t.Errorf("the session saw %+v", summary)
			}
			policy.check(t, c.want, c.rewrites, c.stubborn)
		})
	}
}

// check holds the calls of one program to its scenes.
func (s *script) check(t *testing.T, want said, rewrites, stubborn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := map[string]int{}
	for i, c := range s.calls {
		times[c.question]++
		continues := func(earlier call) bool {
			before := slices.Concat(earlier.prompt, earlier.completion)
			return len(before) <= len(c.prompt) && slices.Equal(before, c.prompt[:len(before)])
		}
		follows := slices.ContainsFunc(c.conversation, func(m chat.Message) bool { return m.Role == chat.Assistant })
		if follows && !rewrites && !slices.ContainsFunc(s.calls[:i], continues) {
			t.Errorf("call %d does not continue the tokens of an earlier one: %+v", i, c.conversation)
		}
	}
	// Two calls and one answer for the first question, one call and one answer for the next, each whole and streamed.
	exact := map[string]int{count: 1, warmer: 4, bergen: 4, useUp: 1, failing: 2, hello: 1}
	if stubborn {
		exact[useUp] = 3
	}
	if want["several"] != nil {
		exact[hello] = 3
	}
	if want["slow"] != nil {
		exact[slow], exact[late] = 1, 1
	}
	if want["stop"] != nil {
		exact[theEnd] = 1
	}
	if diff := cmp.Diff(exact, times); diff != "" {
		t.Errorf("calls of the policy, by question (-want +got):\n%s", diff)
	}
}

// play runs a program and returns what it printed.
func play(t *testing.T, cache, program, argument string, environ []string) said {
	t.Helper()
	command := []string{filepath.Join(cache, "python", "bin", "python"), program}
	if strings.HasSuffix(program, ".mjs") {
		// Modules are found from where a program lies, so it lies beside them.
		command = []string{"node", filepath.Join(cache, program)}
	}
	if argument != "" {
		command = append(command, argument)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Env = append(environ, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir())
	var complaints bytes.Buffer
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, complaints.Bytes())
	}
	got := said{}
	for printed := range bytes.Lines(out) {
		var line map[string]any
		if json.Unmarshal(printed, &line) != nil {
			continue // some libraries print as well
		}
		for scene, value := range line {
			got[scene] = append(got[scene], value)
		}
	}
	return got
}
