package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/program"
)

// retrieval is the folder of an example whose tasks take several searches.
const retrieval = "../../../examples/retrieval-qa"

// The example is solved by its searches at all its levels, and not by answering nothing or after the first search.
func TestRetrievalQA(t *testing.T) {
	program.NeedSandbox(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(retrieval)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(`{"difficulty": 4}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := pack.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := program.TestDriver(t).Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close(e)
	const levels = 4
	if err := env.Check(t.Context(), e, env.Oracle(), env.Null(), levels); err != nil {
		t.Error(err)
	}
	for task, searches := range []int{2, 2, 2, 3} {
		episode, err := e.Reset(t.Context(), "validation", uint64(task))
		if err != nil {
			t.Fatal(err)
		}
		defer episode.Close()
		solution, err := env.Solve(t.Context(), episode, "")
		if err != nil || len(solution.Calls) != searches {
			t.Errorf("task %d: %+v, %v", task, solution, err)
		}
		hasty, err := env.WithHabit("hasty").Play(t.Context(), "validation", uint64(task), episode)
		if err != nil {
			t.Fatal(err)
		}
		score, err := episode.Score(t.Context(), hasty)
		if err != nil || score.Reward != 0.1 || score.Components["f1"] != 0 || score.Components["format"] != 1 {
			t.Errorf("task %d: %q gets %+v, %v", task, hasty, score, err)
		}
	}
}

// The policy beside the example is the one that its README tells of.
func TestRetrievalQAPolicy(t *testing.T) {
	s, err := policy.ReadDir(filepath.Join(retrieval, "policy"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(retrieval, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), s.Digest().String()) {
		t.Errorf("the README does not name the policy's digest, %s", s.Digest())
	}
}

// What the example's parts promise each other is tested in their own language.
func TestRetrievalQAInPython(t *testing.T) {
	program.NeedSandbox(t) // where Python may be missing
	c := exec.CommandContext(t.Context(), "python3", "-B", "-m", "unittest", "test_retrieval_qa")
	c.Dir = retrieval
	if said, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
