package pack

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The protocol in Python serves what an environment has: solve and reply can each be left out, and habits be named.
func TestProtocolInPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal(err)
	}
	const (
		start = `
import protocol

class Environment:
    def __init__(self, split, index, task):
        pass

    def messages(self):
        return [{"role": "user", "content": "Go."}]

    def tools(self):
        return []
`
		reset     = `{"op":"reset","split":"train","index":0}`
		opening   = `{"messages": [{"role": "user", "content": "Go."}], "tools": []}`
		solve     = `{"op":"solve"}`
		lazily    = `{"op":"solve","habit":"lazy"}`
		reply     = `{"op":"reply","role":"solver","messages":[{"role":"user","content":"Go.","calls":[]}],"tools":["look"]}`
		unsolved  = `{"error": "no such request: solve"}`
		unreplied = `{"error": "no such request: reply"}`
	)
	for name, c := range map[string]struct {
		methods   string
		ask, want []string
	}{
		"neither": {"", []string{solve, reply}, []string{unsolved, unreplied}},
		"solve": {`
    def solve(self):
        return [("look", "{}")], "7"
`, []string{solve, reply}, []string{`{"answer": "7", "calls": [{"name": "look", "arguments": "{}"}], "habits": []}`, unreplied}},
		"a habit": {`
    def solve(self, habit=None):
        return [], "7" if habit is None else habit

    def habits(self):
        return ["lazy"]
`, []string{solve, lazily}, []string{`{"answer": "7", "calls": [], "habits": ["lazy"]}`, `{"answer": "lazy", "calls": []}`}},
		"reply": {`
    def reply(self, role, messages, tools, habit):
        return role + messages[-1]["content"], [(tools[0], habit or "ideal")]

    def habits(self):
        return ["lazy"]
`, []string{solve, reply, strings.Replace(reply, "{", `{"habit":"lazy",`, 1)}, []string{
			`{"habits": ["lazy"]}`,
			`{"content": "solverGo.", "calls": [{"name": "look", "arguments": "ideal"}]}`,
			`{"content": "solverGo.", "calls": [{"name": "look", "arguments": "lazy"}]}`,
		}},
		"a text": {`
    def reply(self, role, messages, tools, habit):
        return "7"
`, []string{reply}, []string{`{"content": "7", "calls": []}`}},
	} {
		command := exec.CommandContext(t.Context(), "python3", "-B", "-c", start+c.methods+"\nprotocol.serve(Environment)\n")
		command.Dir = "template/exec"
		command.Stdin = strings.NewReader(reset + "\n" + strings.Join(c.ask, "\n") + "\n")
		said, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, said)
			continue
		}
		want := opening + "\n" + strings.Join(c.want, "\n") + "\n"
		if diff := cmp.Diff(want, string(said)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
