package calc

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/rollout/env"
)

func TestEnvironmentKeepsItsPromises(t *testing.T) {
	if err := env.Check(t.Context(), New(), Oracle(), Null(), 300); err != nil {
		t.Fatal(err)
	}
}

// TestProblemsAreFixed pins the generator: a change here makes other tasks under the same environment CID.
func TestProblemsAreFixed(t *testing.T) {
	for _, c := range []struct {
		split string
		index uint64
		want  Problem
	}{
		{Train, 0, Problem{3, "Eve has 83 cups, sells 14 and buys 23. How many now?", "83-14+23", "92"}},
		{Train, 9, Problem{7, "Ann makes 80 and sells 19 pens each day. How many in 8 days?", "(80-19)*8", "488"}},
		{Train, 5, Problem{9, "Sue makes 17 and buys 49 pens each day for 9 days, then sells 99. How many left?", "(17+49)*9-99", "495"}},
		{Validation, 0, Problem{6, "Eve makes 27 and buys 40 toys each day. How many in 2 days?", "(27+40)*2", "134"}},
		{Test, 5, Problem{5, "Tom has 45 hats and buys 9 boxes of 33. How many now?", "45+9*33", "342"}},
	} {
		if got := NewProblem(c.split, c.index); got != c.want {
			t.Errorf("NewProblem(%q, %d) = %#v, want %#v", c.split, c.index, got, c.want)
		}
	}
}

// TestManifestIsFixed pins the environment's identity.
func TestManifestIsFixed(t *testing.T) {
	cid, err := env.CID(New())
	if err != nil {
		t.Fatal(err)
	}
	if got := cid.String(); got != "bafkreifewgu3bauljqqy2pnqhu34fkzlmmhmvnd6zcci2izwk4lu7t2olq" {
		t.Errorf("the environment is %s", got)
	}
}

func TestSplitsDoNotOverlap(t *testing.T) {
	const tasks = 4000
	texts, expressions := map[string]string{}, map[string]string{}
	families := map[int]int{}
	for _, split := range []string{Train, Validation, Test} {
		for index := range uint64(tasks) {
			p := NewProblem(split, index)
			families[p.Family]++
			if other, ok := texts[p.Question]; ok && other != split {
				t.Fatalf("%q is in %s and %s", p.Question, other, split)
			}
			if other, ok := expressions[p.Expression]; ok && other != split {
				t.Fatalf("%q is in %s and %s", p.Expression, other, split)
			}
			texts[p.Question], expressions[p.Expression] = split, split
		}
	}
	if len(families) != 10 {
		t.Fatalf("families = %v, want 10", families)
	}
	for f, n := range families {
		if n < 3*tasks/20 || n > 3*tasks/5 {
			t.Errorf("family %d has %d of %d tasks", f, n, 3*tasks)
		}
	}
	if len(texts) < 3*tasks*9/10 {
		t.Errorf("%d distinct questions of %d", len(texts), 3*tasks)
	}
}

// TestSplitsNeverOverlap checks the reason why they cannot, for any index.
func TestSplitsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		split := rapid.SampledFrom([]string{Train, Validation, Test}).Draw(t, "split")
		p := NewProblem(split, rapid.Uint64().Draw(t, "index"))
		if got := SplitOf(p.Expression); got != split {
			t.Fatalf("%q of split %s belongs to %s", p.Expression, split, got)
		}
		if n := strings.Count(p.Question, " "); n > 24 {
			t.Fatalf("%q has %d words", p.Question, n+1)
		}
		if strings.HasPrefix(p.Answer, "error") || strings.HasPrefix(p.Answer, "-") {
			t.Fatalf("the answer of %q is %q", p.Expression, p.Answer)
		}
	})
}

func TestScoreWantsTheNumber(t *testing.T) {
	p := NewProblem(Train, 7)
	for answer, want := range map[string]float32{
		p.Answer: 1, " " + p.Answer + "\n": 1, "": 0, "0" + p.Answer: 0, p.Answer + ".0": 0, "about " + p.Answer: 0, p.Expression: 0,
	} {
		e, err := New().Reset(t.Context(), Train, 7)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Score(t.Context(), answer); err != nil || got.Reward != want {
			t.Errorf("Score(%q) = %v, %v, want %v", answer, got.Reward, err, want)
		}
	}
}

func TestToolAnswersBadCallsWithText(t *testing.T) {
	e, err := New().Reset(t.Context(), Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	const bad = `error: arguments must be {"expression":"..."}`
	for _, c := range []struct{ name, arguments, want string }{
		{"calculator", `{"expression":"(2+3)*4"}`, "20"},
		{"calculator", ` { "expression" : "2\u002b3" } `, "5"},
		{"calculator", `{"expression":"2+"}`, "error: expected a number at 2"},
		{"calculator", `{"expression":2}`, bad},
		{"calculator", `{"Expression":"2"}`, bad},
		{"calculator", `{}`, bad},
		{"calculator", `null`, bad},
		{"calculator", `[1]`, bad},
		{"calculator", ``, bad},
		{"calculator", "{\"expression\":\"2\xff\"}", bad},
		{"calculator", `{"expression":"` + strings.Repeat("1", 2000) + `"}`, bad},
		{"abacus", `{"expression":"2"}`, "error: no such tool"},
	} {
		if got, err := e.Call(t.Context(), c.name, c.arguments); err != nil || got != c.want {
			t.Errorf("Call(%q, %q) = %q, %v, want %q", c.name, c.arguments, got, err, c.want)
		}
	}
}

func TestResetRefusesUnknownTasks(t *testing.T) {
	if _, err := New().Reset(context.Background(), "training", 0); err == nil {
		t.Error("an unknown split is accepted")
	}
	if _, err := New().Reset(context.Background(), Test, 1<<12); err == nil {
		t.Error("an index beyond the split is accepted")
	}
}

func TestTheWrongHabitHasTheRightForm(t *testing.T) {
	right := 0
	const tasks = 2000
	for index := range uint64(tasks) {
		e, err := New().Reset(t.Context(), Train, index)
		if err != nil {
			t.Fatal(err)
		}
		solution, err := env.Solve(t.Context(), e, "")
		if err != nil || len(solution.Habits) != 1 {
			t.Fatalf("solution %+v, %v", solution, err)
		}
		habit, err := env.Solve(t.Context(), e, solution.Habits[0])
		if err != nil || len(habit.Calls) != 1 || habit.Calls[0].Arguments == solution.Calls[0].Arguments {
			t.Fatalf("habit %+v of %+v, %v", habit, solution, err)
		}
		result, err := e.Call(t.Context(), habit.Calls[0].Name, habit.Calls[0].Arguments)
		if err != nil || result != habit.Answer || strings.HasPrefix(result, "error") {
			t.Fatalf("the result is %q, the answer %q, %v", result, habit.Answer, err)
		}
		if habit.Answer == solution.Answer {
			right++
		}
	}
	if right > tasks/100 {
		t.Errorf("the wrong habit is right %d times of %d", right, tasks)
	}
	e, _ := New().Reset(t.Context(), Train, 0)
	if _, err := env.Solve(t.Context(), e, "another"); err == nil {
		t.Error("another habit is known")
	}
}
