package main

import (
	"slices"

	"github.com/lightswarm/lightswarm/scripts/checks/chains"
)

// A rollout has four calls, of which each answers one token. A task has four topics, and a topic one right arm of four. The
// reward is the share of the calls with the right arm; the rollout succeeds with all.
const (
	calls  = 4
	topics = 8
	// arms is how many answers there are: a token's arm is its remainder, so that a new policy is right about one time in
	// so many.
	arms  = 4
	tasks = topics * topics * topics * topics
)

// The tokens of prompts. Answers may be any.
const (
	start      = 100 // opens a prompt
	firstRole  = 110
	firstNote  = 120 // an arm, as the agent notes it
	firstTopic = 140
)

// topic is a task's topic of a call.
func topic(task uint64, call int) int32 {
	for range call {
		task /= topics
	}
	return int32(task % topics)
}

// arm is what an answer means.
func arm(answer int32) int32 { return answer % arms }

// agent is a way to make four calls of a task.
type agent struct {
	name, about string
	// play makes the calls and counts those that are right.
	play func(ask ask, task uint64) (right int, err error)
}

// ask has the policy answer a prompt, which it keeps, on behalf of a role.
type ask func(role string, prompt []int32) (answer int32, err error)

// agents differ in what they do with their history. Where it continues, nothing can differ but rounding.
var agents = []agent{
	{"continues", "each prompt is the one before, its answer and a topic", continues},
	{"forgets", "each prompt is a topic alone", forgets},
	{"notes", "a prompt is a topic, the next a note of what was answered", notes},
	{"roles", "two roles take turns, with prompts of their own, and right is another arm for each", roles},
}

// episode plays a rollout.
func (a agent) episode(e *chains.Episode) (won bool, err error) {
	right, err := a.play(e.Ask, e.Task)
	e.Reward = float32(right) / calls
	return right == calls, err
}

func continues(ask ask, task uint64) (right int, err error) {
	prompt := []int32{start}
	for i := range calls {
		t := topic(task, i)
		prompt = append(prompt, firstTopic+t)
		answer, err := ask("solver", slices.Clone(prompt))
		if err != nil {
			return right, err
		}
		if arm(answer) == t%arms {
			right++
		}
		prompt = append(prompt, answer)
	}
	return right, nil
}

func forgets(ask ask, task uint64) (right int, err error) {
	for i := range calls {
		t := topic(task, i)
		answer, err := ask("solver", []int32{start, firstTopic + t})
		if err != nil {
			return right, err
		}
		if arm(answer) == t%arms {
			right++
		}
	}
	return right, nil
}

func notes(ask ask, task uint64) (right int, err error) {
	var note int32
	for i := range calls {
		t := topic(task, i/2)
		prompt := []int32{start, firstTopic + t}
		if i%2 == 1 {
			prompt[1] = firstNote + note
		}
		answer, err := ask("solver", prompt)
		if err != nil {
			return right, err
		}
		if note = arm(answer); note == t%arms {
			right++
		}
	}
	return right, nil
}

func roles(ask ask, task uint64) (right int, err error) {
	for i := range calls {
		role, t := int32(i%2), topic(task, i)
		answer, err := ask([]string{"planner", "writer"}[role], []int32{firstRole + role, firstTopic + t})
		if err != nil {
			return right, err
		}
		if arm(answer) == (t+role)%arms {
			right++
		}
	}
	return right, nil
}
