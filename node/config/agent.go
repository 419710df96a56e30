package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Agent is the program that plays a node's rollouts. Without a command the built-in agent does.
type Agent struct {
	// Command is the program and its arguments; package rollout/process says how it is run.
	Command []string
	// Folder has the program's files; empty means the folder that the node is started in.
	Folder string
	// Preload are modules of Python or Node.js that are imported before a rollout begins. With any, the command is an
	// interpreter, a script and its arguments.
	Preload []string
	// Variables are the names of the node's environment variables that the program gets too.
	Variables []string
	// Processes is how many run at once; 0 means 32. Further rollouts wait, which counts to their time.
	Processes int
	// Grace is how long a program may take to end after it was asked to.
	Grace time.Duration
	// Lightning is where runners of Agent Lightning connect to that play the rollouts instead of a program, as a loopback
	// host:port; empty for none. Package rollout/lightning says how they do.
	Lightning string
}

// Outside says that it is not the built-in agent that plays the rollouts.
func (a *Agent) Outside() bool { return len(a.Command) > 0 || a.Lightning != "" }

// check says what is wrong.
func (a *Agent) check(check func(ok bool, key, problem string)) {
	check(len(a.Command) == 0 || a.Command[0] != "", "rollout.agent.command", "the program is missing; use for example python3 agent.py")
	for _, word := range a.Command {
		check(!strings.ContainsRune(word, 0), "rollout.agent.command", "a zero byte cannot be given to a program")
	}
	check(len(a.Command) > 0 || a.Folder == "" && len(a.Preload) == 0 && len(a.Variables) == 0,
		"rollout.agent.command", "there is no command, but other settings of an agent; say how it is started, for example python3 agent.py")
	for _, module := range a.Preload {
		check(pythonModule.MatchString(module) || nodeModule.MatchString(module), "rollout.agent.preload",
			fmt.Sprintf("%q is no module of Python or Node.js; use for example openai", module))
	}
	for _, name := range a.Variables {
		check(!strings.ContainsAny(name, "=\x00"), "rollout.agent.variables", "give names alone: the values are those that the node has")
	}
	check(a.Lightning == "" || len(a.Command) == 0, "rollout.agent.lightning", "there is a command too; have rollouts played by the program or by runners that connect, and leave out the other")
	check(a.Lightning == "" || loopback(a.Lightning), "rollout.agent.lightning", "what runners send is not encrypted; use a loopback address such as 127.0.0.1:4747")
	check(a.Grace > 0, "rollout.agent.grace", "use a positive duration such as 2s")
}

var (
	// pythonModule is what Python imports.
	pythonModule = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
	// nodeModule is what Node.js imports: one of its own, or a package, perhaps of a scope, and a file in it.
	nodeModule = regexp.MustCompile(`^(node:|@[\w.~-]+/)?[\w~][\w.~-]*(/[\w.~-]+)*$`)
)

// commandValue is a program with its arguments. Its text form is a line as one types it: words between spaces, where
// single or double quotes hold together what they enclose. No other character means anything but itself.
func commandValue(p *[]string) value {
	return command{scalar[[]string]{p, splitWords, joinWords, "command"}}
}

type command struct{ scalar[[]string] }

// join makes a text of an array in a file.
func (command) join(elements []string) (string, error) { return joinWords(elements), nil }

// splitWords reads a line of words.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inside, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inside, quote = true, r
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inside {
				words = append(words, word.String())
				word.Reset()
				inside = false
			}
		default:
			inside = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// joinWords writes what splitWords reads.
func joinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		switch {
		case word != "" && !strings.ContainsAny(word, " \t\n\r'\""):
			quoted[i] = word
		case !strings.Contains(word, `'`):
			quoted[i] = `'` + word + `'`
		default:
			quoted[i] = `'` + strings.ReplaceAll(word, `'`, `'"'"'`) + `'`
		}
	}
	return strings.Join(quoted, " ")
}
