package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/program"
)

// textToSQL is the folder of the example.
const textToSQL = "../../../examples/text-to-sql"

// The example's tasks, queries and databases are what its README says: see testdata/texttosql.py.
func TestTextToSQLTasks(t *testing.T) {
	program.NeedSandbox(t)
	c := exec.CommandContext(t.Context(), "python3", "-B", "testdata/texttosql.py", textToSQL)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The example is solved by its queries, and not by answering nothing or by its wrong habit, as it is and at all its levels.
func TestTextToSQL(t *testing.T) {
	program.NeedSandbox(t)
	for _, difficulty := range []uint64{0, 5} {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(textToSQL)); err != nil {
			t.Fatal(err)
		}
		if difficulty != 0 {
			settings := `{"difficulty": ` + strconv.FormatUint(difficulty, 10) + `, "unseen": true}`
			if err := os.WriteFile(filepath.Join(folder, "settings.json"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e := openFolder(t, folder)
		if err := env.Check(t.Context(), e, env.Oracle(), env.Null(), max(difficulty, 1)); err != nil {
			t.Errorf("difficulty %d: %v", difficulty, err)
		}
	}
}

// What is right on the database that is shown has to be right on the hidden one.
func TestTextToSQLHidesADatabase(t *testing.T) {
	program.NeedSandbox(t)
	e := openFolder(t, textToSQL)
	for index := range e.Manifest().Tasks("train") {
		episode, err := e.Reset(t.Context(), "train", index)
		if err != nil {
			t.Fatal(err)
		}
		defer episode.Close()
		solution, err := env.Solve(t.Context(), episode, "")
		if err != nil {
			t.Fatal(err)
		}
		call := solution.Calls[len(solution.Calls)-1]
		result, err := episode.Call(t.Context(), call.Name, call.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := strconv.Atoi(result); err != nil {
			continue // it asks for names
		}
		score, err := episode.Score(t.Context(), "SELECT "+result)
		if err != nil || score.Reward != 0 || score.Components["shown"] != 1 || score.Components["hidden"] != 0 {
			t.Errorf("%+v, %v", score, err)
		}
		return
	}
	t.Error("no task has a number for an answer")
}

// The policy beside the example is the one that its README tells how to make.
func TestTextToSQLPolicy(t *testing.T) {
	s, err := policy.ReadDir(filepath.Join(textToSQL, "policy"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(textToSQL, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), s.Digest().String()) {
		t.Errorf("the README does not name the policy's digest, %s", s.Digest())
	}
}

func openFolder(t *testing.T, folder string) env.Environment {
	p, err := pack.Read(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	e, err := program.TestDriver(t).Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close(e) })
	return e
}
