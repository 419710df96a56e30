package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// exitCodeCommand runs a command and checks its exit code: exitcode CODE COMMAND…
func exitCodeCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	want, err := strconv.Atoi(arguments[0])
	ts.Check(err)
	err = ts.Exec(arguments[1], arguments[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// jsonLineCommand checks fields of a file's last line, an object: jsonline FILE FIELD OPERATOR VALUE… where the
// operator is == for text, or one of < <= > >= for numbers, and the value of "is" a JSON type.
func jsonLineCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(arguments[0])), "\n")
	var object map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); err != nil {
		ts.Fatalf("the last line is no object: %v", err)
	}
	for rest := arguments[1:]; len(rest) >= 3; rest = rest[3:] {
		field, operator, want := rest[0], rest[1], rest[2]
		got, there := object[field]
		if !there {
			ts.Fatalf("there is no field %s", field)
		}
		if !holds(got, operator, want) {
			ts.Fatalf("%s is %v, want %s %s", field, got, operator, want)
		}
	}
}

func holds(got any, operator, want string) bool {
	if operator == "==" {
		return fmt.Sprint(got) == want
	}
	number, isNumber := got.(float64)
	bound, err := strconv.ParseFloat(want, 64)
	if !isNumber || err != nil {
		return false
	}
	switch operator {
	case "<":
		return number < bound
	case "<=":
		return number <= bound
	case ">":
		return number > bound
	case ">=":
		return number >= bound
	}
	return false
}

// patience is how long a script waits for a node.
const patience = time.Minute

// waitForCommand waits until files exist and are not empty: waitfor FILE… With a negation it waits until they are gone.
func waitForCommand(ts *testscript.TestScript, gone bool, arguments []string) {
	deadline := time.Now().Add(patience)
	for _, name := range arguments {
		for {
			info, err := os.Stat(ts.MkAbs(name))
			if gone && errors.Is(err, fs.ErrNotExist) || !gone && err == nil && info.Size() > 0 {
				break
			}
			if time.Now().After(deadline) {
				ts.Fatalf("waited too long for %s", name)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// memberCommand sets NETWORK and MEMBER to what the join command in a file's last line, an object, names: member FILE.
func memberCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(arguments[0])), "\n")
	var started struct {
		Join string `json:"join"`
	}
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &started))
	words := strings.Fields(started.Join)
	if len(words) < 5 || words[3] != "--bootstrap" {
		ts.Fatalf("%q names no member", started.Join)
	}
	ts.Setenv("NETWORK", words[2])
	ts.Setenv("MEMBER", words[4])
}

// packageCommand sets CID to that of the environment in a file's last line, an object: package FILE.
func packageCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	var built struct {
		CID string `json:"cid"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(arguments[0])), &built))
	ts.Setenv("CID", built.CID)
}

// waitFinishedCommand waits until the learner on a data folder is done: waitfinished FOLDER.
func waitFinishedCommand(ts *testscript.TestScript, _ bool, arguments []string) {
	deadline := time.Now().Add(patience)
	for {
		ts.Check(ts.Exec("lightswarm", "status", "--json", "--data", arguments[0]))
		if strings.Contains(ts.ReadFile("stdout"), `"finished":true`) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited too long for the learner on %s", arguments[0])
		}
		time.Sleep(100 * time.Millisecond)
	}
}
