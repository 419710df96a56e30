package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// resolve makes the paths in a command absolute and checks that it can be started; path is where programs are looked
// up if the command does not say.
func resolve(c Command, path string) (Command, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return c, errors.New("there is no program")
	}
	for _, entry := range c.Environ {
		if name, _, ok := strings.Cut(entry, "="); !ok || name == "" || strings.ContainsRune(entry, 0) {
			return c, fmt.Errorf("%q is no variable: use NAME=value", entry)
		}
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	c.Args = slices.Clone(c.Args)
	program := c.Args[0]
	if c.Dir != "" {
		var err error
		if c.Dir, err = filepath.Abs(c.Dir); err != nil {
			return c, err
		}
		if info, err := os.Stat(c.Dir); err != nil {
			return c, err
		} else if !info.IsDir() {
			return c, fmt.Errorf("%s is no folder", c.Dir)
		}
		for i, argument := range c.Args {
			if !filepath.IsLocal(argument) || i == 0 && !strings.Contains(argument, "/") {
				continue
			}
			file := filepath.Join(c.Dir, argument)
			if _, err := os.Stat(file); err == nil {
				c.Args[i] = file
			} else if errors.Is(err, fs.ErrPermission) {
				return c, err
			}
		}
	}
	var err error
	if isModule(program) {
		if len(c.Preload) > 0 {
			return c, errors.New("a WebAssembly module has nothing to preload")
		}
		return c, findModule(&c)
	}
	if c.Args[0], err = lookUp(c.Args[0], path); err != nil {
		return c, err
	}
	option := len(c.Args) < 2 || strings.HasPrefix(c.Args[1], "-")
	switch {
	case len(c.Preload) > 0 && option:
		return c, errors.New("with modules to preload it is Python or Node.js, a script and the script's arguments")
	case len(c.Preload) > 0, c.Dir != "" && !option && filepath.Ext(c.Args[1]) != "" && takesScript(program):
		if !filepath.IsAbs(c.Args[1]) {
			if c.Args[1], err = filepath.Abs(filepath.Join(c.Dir, c.Args[1])); err != nil {
				return c, err
			}
		}
		_, err = os.Stat(c.Args[1])
	}
	return c, err
}

// takesScript says that a program's first argument, unless it is an option, is the script that it runs. One that is
// missing is found out before it fails every rollout.
func takesScript(program string) bool {
	name := strings.TrimRight(filepath.Base(program), "0123456789.")
	return slices.Contains([]string{"python", "pypy", "node", "ruby", "perl", "sh", "bash"}, name)
}

// isNode says that a program is Node.js, by its name.
func isNode(program string) bool {
	name := strings.TrimRight(filepath.Base(program), "0123456789.-")
	return name == "node" || name == "nodejs"
}

// isModule says that a program is a WebAssembly module, by its name.
func isModule(program string) bool { return filepath.Ext(program) == ".wasm" }

// findModule makes the path of a command's module absolute.
func findModule(c *Command) (err error) {
	if file := &c.Args[0]; !filepath.IsAbs(*file) {
		if *file, err = filepath.Abs(filepath.Join(c.Dir, *file)); err != nil {
			return err
		}
	}
	info, err := os.Stat(c.Args[0])
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", c.Args[0])
	}
	return err
}

// lookUp finds a program.
func lookUp(program, path string) (string, error) {
	candidates, why := []string{program}, "it has to be a file that may be executed; of a script, name the interpreter too, as in python3 agent.py"
	if !strings.Contains(program, "/") {
		candidates, why = nil, fmt.Sprintf("it is not in PATH; one in the agent's folder is ./%s", program)
		for _, dir := range filepath.SplitList(path) {
			candidates = append(candidates, filepath.Join(dir, program))
		}
	}
	for _, file := range candidates {
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return filepath.Abs(file)
		}
	}
	return "", fmt.Errorf("%s is no program that can be run: %s", program, why)
}
