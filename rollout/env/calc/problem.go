package calc

import (
	"crypto/sha256"
	"fmt"

	"github.com/lightswarm/lightswarm/wire"
)

// Problem is one word problem.
type Problem struct {
	// Family is the index of the problem's kind, in order of difficulty.
	Family   int
	Question string
	// Expression solves the problem when the calculator evaluates it.
	Expression string
	// Answer is the expected number in decimal.
	Answer string
}

// Splits of the environment, with how many tasks each has.
const (
	Train      = wire.SplitTrain
	Validation = wire.SplitValidation
	Test       = "test"

	trainTasks   = 1 << 20
	heldOutTasks = 1 << 12
)

// family writes one kind of problem: its question and the expression that solves it.
type family func(s *stream) (question, expression string)

// families are ordered by difficulty: one operation, two, three.
var families = []family{
	func(s *stream) (string, string) {
		a, b := s.between(10, 99), s.between(2, 49)
		return fmt.Sprintf("%s has %d %s and buys %d. How many now?", who(s), a, goods(s), b),
			fmt.Sprintf("%d+%d", a, b)
	},
	func(s *stream) (string, string) {
		a := s.between(20, 99)
		b := s.between(2, min(a-1, 49))
		return fmt.Sprintf("%s has %d %s and sells %d. How many left?", who(s), a, goods(s), b),
			fmt.Sprintf("%d-%d", a, b)
	},
	func(s *stream) (string, string) {
		c, a := s.between(2, 9), s.between(10, 99)
		return fmt.Sprintf("%s has %d boxes of %d %s. How many in all?", who(s), c, a, goods(s)),
			fmt.Sprintf("%d*%d", c, a)
	},
	func(s *stream) (string, string) {
		a := s.between(20, 99)
		b, c := s.between(2, min(a-1, 49)), s.between(2, 49)
		return fmt.Sprintf("%s has %d %s, sells %d and buys %d. How many now?", who(s), a, goods(s), b, c),
			fmt.Sprintf("%d-%d+%d", a, b, c)
	},
	func(s *stream) (string, string) {
		c, a := s.between(2, 9), s.between(10, 99)
		b := s.between(2, min(c*a-1, 99))
		return fmt.Sprintf("%s has %d boxes of %d %s and sells %d. How many left?", who(s), c, a, goods(s), b),
			fmt.Sprintf("%d*%d-%d", c, a, b)
	},
	func(s *stream) (string, string) {
		a, c, b := s.between(10, 99), s.between(2, 9), s.between(2, 49)
		return fmt.Sprintf("%s has %d %s and buys %d boxes of %d. How many now?", who(s), a, goods(s), c, b),
			fmt.Sprintf("%d+%d*%d", a, c, b)
	},
	func(s *stream) (string, string) {
		a, b, c := s.between(10, 99), s.between(2, 49), s.between(2, 9)
		return fmt.Sprintf("%s makes %d and buys %d %s each day. How many in %d days?", who(s), a, b, goods(s), c),
			fmt.Sprintf("(%d+%d)*%d", a, b, c)
	},
	func(s *stream) (string, string) {
		a := s.between(20, 99)
		b, c := s.between(2, min(a-1, 49)), s.between(2, 9)
		return fmt.Sprintf("%s makes %d and sells %d %s each day. How many in %d days?", who(s), a, b, goods(s), c),
			fmt.Sprintf("(%d-%d)*%d", a, b, c)
	},
	func(s *stream) (string, string) {
		c, a, d, b := s.between(2, 9), s.between(10, 99), s.between(2, 9), s.between(10, 99)
		return fmt.Sprintf("%s has %d boxes of %d %s and %d of %d. How many in all?", who(s), c, a, goods(s), d, b),
			fmt.Sprintf("%d*%d+%d*%d", c, a, d, b)
	},
	func(s *stream) (string, string) {
		a, b, c := s.between(10, 99), s.between(2, 49), s.between(2, 9)
		d := s.between(2, min((a+b)*c-1, 99))
		return fmt.Sprintf("%s makes %d and buys %d %s each day for %d days, then sells %d. How many left?",
				who(s), a, b, goods(s), c, d),
			fmt.Sprintf("(%d+%d)*%d-%d", a, b, c, d)
	},
}

// Short words keep the vocabulary, and so the policy, small.
func who(s *stream) string { return pick(s, []string{"Ann", "Bob", "Eve", "Max", "Sue", "Tom"}) }
func goods(s *stream) string {
	return pick(s, []string{"pens", "cups", "hats", "eggs", "toys", "nuts"})
}

// SplitOf returns the only split that problems solved by this expression belong to.
func SplitOf(expression string) string {
	switch sum := sha256.Sum256([]byte("lightswarm/calc/1/split\x00" + expression)); sum[0] % 16 {
	case 0:
		return Validation
	case 1:
		return Test
	default:
		return Train
	}
}

// NewProblem returns a split's problem of an index. The split is one of the three, the index below its size; Reset
// checks that.
func NewProblem(split string, index uint64) Problem {
	// Each attempt succeeds with a probability of at least 1/16, independently.
	for attempt := uint64(0); ; attempt++ {
		s := newStream("problem", split, index, attempt)
		f := s.between(0, len(families)-1)
		question, expression := families[f](s)
		if SplitOf(expression) != split {
			continue
		}
		return Problem{Family: f, Question: question, Expression: expression, Answer: Evaluate(expression)}
	}
}
