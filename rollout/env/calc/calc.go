package calc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Name is the environment's name, and its entry in the manifest of kind "builtin".
const Name = "calc"

const (
	toolName     = "calculator"
	systemPrompt = "Use the calculator. Answer with the number."
	// maxArguments bounds a tool call's arguments before they are parsed.
	maxArguments = 4 * MaxExpression
)

var splitTasks = map[string]uint64{Train: trainTasks, Validation: heldOutTasks, Test: heldOutTasks}

// Environment implements env.Environment. It has no state.
type Environment struct{}

// New returns the environment.
func New() Environment { return Environment{} }

// Manifest implements env.Environment.
func (Environment) Manifest() wire.EnvironmentManifest {
	return wire.EnvironmentManifest{
		Name:        Name,
		Version:     "1",
		Description: "Word problems, solved with a calculator tool. Reward 1 for exactly the right number.",
		Licence:     "Apache-2.0",
		Kind:        "builtin",
		Entry:       Name,
		Splits: []wire.Split{
			{Name: Train, Tasks: trainTasks},
			{Name: Validation, Tasks: heldOutTasks},
			{Name: Test, Tasks: heldOutTasks},
		},
		RewardMin:   0,
		RewardMax:   1,
		Determinism: wire.DeterminismExact,
		// The built-in agent has one role; it is trained.
		Agents:        []string{"solver"},
		TrainedAgents: []string{"solver"},
	}
}

// Reset implements env.Environment.
func (Environment) Reset(_ context.Context, split string, index uint64) (env.Episode, error) {
	tasks, ok := splitTasks[split]
	if !ok {
		return nil, fmt.Errorf("calc: no split %q", split)
	}
	if index >= tasks {
		return nil, fmt.Errorf("calc: task %d of split %q, which has %d", index, split, tasks)
	}
	return &episode{problem: NewProblem(split, index)}, nil
}

// Tools returns the calculator's description, the same for every task.
func Tools() []chat.Tool {
	return []chat.Tool{{
		Name:        toolName,
		Description: "Integer arithmetic.",
		Parameters:  `{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`,
	}}
}

type episode struct{ problem Problem }

func (e *episode) Messages() []chat.Message { return opening(e.problem) }

func (e *episode) Tools() []chat.Tool { return Tools() }

func (e *episode) Call(_ context.Context, name, arguments string) (string, error) {
	if name != toolName {
		return "error: no such tool", nil
	}
	return calculate(arguments), nil
}

func (e *episode) Score(_ context.Context, answer string) (env.Score, error) {
	if strings.TrimSpace(answer) == e.problem.Answer {
		return env.Score{Reward: 1}, nil
	}
	return env.Score{}, nil
}

// Solve implements env.Solver.
func (e *episode) Solve(context.Context) (env.Solution, error) {
	return solution(e.problem.Expression), nil
}

// operatorsHabit is the wrong habit: every operator is replaced by a fixed other one. Its calls are as well-formed as
// right ones, and its answers are what the tool said.
const operatorsHabit = "operators"

var wrongOperators = strings.NewReplacer("+", "-", "-", "*", "*", "+")

// SolveBy implements env.Habitual.
func (e *episode) SolveBy(_ context.Context, habit string) (env.Solution, error) {
	if habit != operatorsHabit {
		return env.Solution{}, fmt.Errorf("calc: no habit %q", habit)
	}
	return solution(wrongOperators.Replace(e.problem.Expression)), nil
}

// Reply implements env.Replier, for agents that have the calculator, and for those that have nothing.
func (e *episode) Reply(_ context.Context, q env.Question) (chat.Message, error) {
	expression := e.problem.Expression
	if q.Habit != "" {
		if q.Habit != operatorsHabit {
			return chat.Message{}, fmt.Errorf("calc: no habit %q", q.Habit)
		}
		expression = wrongOperators.Replace(expression)
	}
	s := solution(expression)
	if slices.Contains(q.Tools, toolName) && q.Messages[len(q.Messages)-1].Role != chat.ToolRole {
		return chat.Message{Role: chat.Assistant, ToolCalls: s.Calls}, nil
	}
	return chat.Message{Role: chat.Assistant, Content: s.Answer}, nil
}

// solution evaluates an expression and answers with the result.
func solution(expression string) env.Solution {
	c := call(expression)
	return env.Solution{Calls: []chat.ToolCall{c}, Answer: calculate(c.Arguments), Habits: []string{operatorsHabit}}
}

func (e *episode) Close() error { return nil }

// opening is the conversation that an agent starts from.
func opening(p Problem) []chat.Message {
	return []chat.Message{
		{Role: chat.System, Content: systemPrompt},
		{Role: chat.User, Content: p.Question},
	}
}

// calculate runs the tool. Its answers to bad arguments are fixed texts: they are part of later prompts, so they must
// not follow the wording of a library.
func calculate(arguments string) string {
	const bad = `error: arguments must be {"expression":"..."}`
	if len(arguments) > maxArguments || !utf8.ValidString(arguments) {
		return bad
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(arguments), &fields); err != nil {
		return bad
	}
	expression, ok := fields["expression"]
	if !ok {
		return bad
	}
	return Evaluate(expression)
}

// call is the assistant's request to evaluate an expression of the grammar's symbols, none of which JSON escapes.
func call(expression string) chat.ToolCall {
	return chat.ToolCall{ID: "call_0", Name: toolName, Arguments: `{"expression":"` + expression + `"}`}
}
