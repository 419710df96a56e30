//go:build unix

package process

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/rollout/agent"
)

// seesDescendants says whether what has left the group is found.
const seesDescendants = runtime.GOOS == "linux"

func TestJudge(t *testing.T) {
	good, bad := status{ok: true}, status{words: "exit status 1"}
	lost, failure, over := errors.New("lost"), errors.New("broken"), context.DeadlineExceeded
	said := output{text: " \n7\xff\t"}
	for name, c := range map[string]struct {
		ending ending
		want   agent.Result
		err    string
	}{
		"an answer":                   {ending{status: good, out: said}, agent.Result{End: agent.Answered, Answer: "7\uFFFD"}, ""},
		"an answer after a refusal":   {ending{status: good, out: said, refused: agent.Cut}, agent.Result{End: agent.Answered, Answer: "7\uFFFD"}, ""},
		"an answer when it was asked": {ending{status: good, out: said, asked: true, over: over}, agent.Result{End: agent.Answered, Answer: "7\uFFFD"}, ""},
		"silence":                     {ending{status: good, out: output{text: " \n"}}, agent.Result{End: agent.Answered}, ""},
		"silence when it was asked":   {ending{status: good, out: output{text: " \n"}, asked: true, over: over}, agent.Result{}, over.Error()},
		"too long an answer":          {ending{status: good, out: output{more: true}, limit: 3}, agent.Result{}, "the program's answer is longer than 3 bytes"},
		"exhausted":                   {ending{status: bad, refused: agent.Exhausted}, agent.Result{End: agent.Exhausted}, ""},
		"exhausted, out of time":      {ending{status: bad, refused: agent.Exhausted, over: over}, agent.Result{}, over.Error()},
		"exhausted, after a failure":  {ending{status: bad, refused: agent.Exhausted, failure: failure}, agent.Result{}, "the program failed: exit status 1 after the policy failed (broken)"},
		"a crash":                     {ending{status: bad, complaints: "oh"}, agent.Result{}, "the program failed: exit status 1; the end of its standard error:\noh"},
		"unborn":                      {ending{lost: errUnborn, refused: agent.Cut}, agent.Result{}, "environment: start the program: " + errUnborn.Error()},
		"unborn, out of time":         {ending{lost: errUnborn, over: over}, agent.Result{}, over.Error()},
		"lost":                        {ending{lost: lost, refused: agent.Cut}, agent.Result{}, "the program failed: lost"},
		"lost, out of time":           {ending{lost: lost, over: over}, agent.Result{}, over.Error()},
	} {
		got, err := judge(c.ending)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if unborn := errors.Is(c.ending.lost, errUnborn) && c.ending.over == nil; isEnvironments(err) != unborn {
			t.Errorf("%s is an env_error: %t", name, !unborn)
		}
	}
}

// isEnvironments says whether a rollout with this error is an env_error.
func isEnvironments(err error) bool {
	var failed *agent.EnvironmentError
	return errors.As(err, &failed)
}

func TestTailKeepsTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all strings.Builder
		var kept tail
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 2*maxComplaints)).Draw(t, "sizes") {
			piece := strings.Repeat(rapid.StringMatching("[a-z]").Draw(t, "letter"), n)
			all.WriteString(piece)
			kept.Write([]byte(piece))
		}
		want := all.String()
		want = want[max(0, len(want)-maxComplaints):]
		if kept.String() != want {
			t.Fatalf("%d bytes are kept, want the last %d", len(kept.String()), len(want))
		}
	})
}

func TestLaterEntriesOverrideEarlierOnes(t *testing.T) {
	got := latest([]string{"A=1", "B=2", "A=3", "C=", "B=4=5"})
	if diff := cmp.Diff([]string{"A=3", "B=4=5", "C="}, got); diff != "" {
		t.Error(diff)
	}
}

func TestArgumentsThatNameFiles(t *testing.T) {
	c, err := resolve(Command{Args: []string{"sh", "agent.py", "../process.go", "none", "-c"}, Dir: "testdata", Environ: []string{"PATH=/bin"}}, "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/bin/sh", c.Dir + "/agent.py", "../process.go", "none", "-c"}, c.Args); diff != "" {
		t.Error(diff)
	}
}
