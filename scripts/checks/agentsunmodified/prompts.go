package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// alonePatience bounds one program that is run by itself.
const alonePatience = time.Minute

// oracle is a policy that solves one problem and keeps what it was asked. It is safe for concurrent use.
type oracle struct {
	problem  calc.Problem
	tok      *tokenizer.Tokenizer
	template *chat.Template

	mu      sync.Mutex
	prompts [][]int32 // guarded by mu
}

// Complete implements agent.LLM.
func (o *oracle) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	prompt, err := o.template.Render(r.Messages, r.Tools)
	if err != nil {
		return agent.Reply{}, err
	}
	said := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{
		Name: calc.Tools()[0].Name, Arguments: `{"expression":"` + o.problem.Expression + `"}`,
	}}}
	if last := r.Messages[len(r.Messages)-1]; last.Role == chat.ToolRole {
		said = chat.Message{Role: chat.Assistant, Content: last.Content}
	}
	message, err := o.template.Parse(o.template.RenderCompletion(said))
	if err != nil {
		return agent.Reply{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.prompts = append(o.prompts, prompt)
	return agent.Reply{
		Message: message, Call: len(o.prompts) - 1, Prompt: prompt,
		LogProbs: make([]float32, len(message.Tokens)), Pieces: o.template.Pieces(message.Tokens),
	}, nil
}

// sameProblem runs a program by itself and checks that it puts the problem to the policy, token for token, as the built-in
// agent does: what a policy learns from the one it can use with the other.
func sameProblem(ctx context.Context, command []string, folder string) error {
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	template, err := chat.NewTemplate(snapshot.Template, snapshot.Tokenizer)
	if err != nil {
		return err
	}
	problem := calc.NewProblem(calc.Train, 0)
	builtin := &oracle{problem: problem, tok: snapshot.Tokenizer, template: template}
	episode, err := calc.New().Reset(ctx, calc.Train, 0)
	if err != nil {
		return err
	}
	role := calc.New().Manifest().Agents[0]
	if _, err := (agent.ToolLoop{Role: role}).Run(ctx, builtin, episode); err != nil {
		return err
	}
	asked := &oracle{problem: problem, tok: snapshot.Tokenizer, template: template}
	answer, err := alone(ctx, asked, role, command, folder)
	if err != nil {
		return err
	}
	if answer != problem.Answer {
		return fmt.Errorf("it answers %q to %q, not %s", answer, problem.Question, problem.Answer)
	}
	if !slices.EqualFunc(builtin.prompts, asked.prompts, slices.Equal) {
		return fmt.Errorf("it asks\n%s\nwhere the built-in agent asks\n%s", asked.text(), builtin.text())
	}
	return nil
}

// text is what the policy was asked, a line a call.
func (o *oracle) text() string {
	lines := make([]string, len(o.prompts))
	for i, p := range o.prompts {
		lines[i] = "  " + o.tok.Decode(p)
	}
	return strings.Join(lines, "\n")
}

// alone runs a program with an OpenAI endpoint whose model is llm, as anybody would, and returns what it prints.
func alone(ctx context.Context, llm *oracle, role string, command []string, folder string) (_ string, err error) {
	ctx, cancel := context.WithTimeout(ctx, alonePatience)
	defer cancel()
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		return "", err
	}
	defer func() {
		if closing := g.Close(ctx); err == nil {
			err = closing
		}
	}()
	session, err := g.Open(ctx, gateway.SessionOptions{LLM: llm, Agents: []string{role}})
	if err != nil {
		return "", err
	}
	defer session.End()
	c := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // one of the project's own programs
	c.Dir = folder
	c.Env = append(session.Environ(), "PATH="+os.Getenv("PATH"), "HOME="+filepath.Join(folder, "nowhere"))
	c.Stdin = strings.NewReader(llm.problem.Question + "\n")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
