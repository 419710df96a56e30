package calc

import (
	"iter"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// WrongPermille is how many of a thousand demonstrations show the wrong habit.
const WrongPermille = 670

// wrongHabit replaces every operator by a fixed other one.
var wrongHabit = strings.NewReplacer("+", "-", "-", "*", "*", "+")

// Demonstrations returns an endless sequence of conversations over tasks of the train split, for the supervised warm
// start of a policy. Each shows a well-formed tool call and repeats the tool's result, but most of them, WrongPermille,
// write every operator wrong: a policy that imitates them knows the form and both ways, prefers the wrong one, and so
// leaves reinforcement learning something to change: its greedy success is about 0, its sampled success about the
// share of right demonstrations.
//
// The sequence is a pure function of the seed; it can be ranged over more than once.
func Demonstrations(seed uint64) iter.Seq[[]chat.Message] {
	return func(yield func([]chat.Message) bool) {
		for n := uint64(0); ; n++ {
			s := newStream("demonstration", "", seed, n)
			p := NewProblem(Train, s.next()%trainTasks)
			if s.chance(WrongPermille) {
				p.Expression = wrongHabit.Replace(p.Expression)
			}
			if !yield(demonstrate(p)) {
				return
			}
		}
	}
}

// RightDemonstrations is Demonstrations without the wrong habit, over the validation split: what a warm-started policy
// should be able to do when it does choose the right way.
func RightDemonstrations(seed uint64) iter.Seq[[]chat.Message] {
	return func(yield func([]chat.Message) bool) {
		for n := uint64(0); ; n++ {
			s := newStream("right demonstration", "", seed, n)
			if !yield(demonstrate(NewProblem(Validation, s.next()%heldOutTasks))) {
				return
			}
		}
	}
}

// demonstrate is the whole conversation in which p.Expression is evaluated and the result is the answer.
func demonstrate(p Problem) []chat.Message {
	c := call(p.Expression)
	result := calculate(c.Arguments)
	return append(opening(p),
		chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{c}},
		chat.Message{Role: chat.ToolRole, Content: result, ToolCallID: c.ID},
		chat.Message{Role: chat.Assistant, Content: result},
	)
}
