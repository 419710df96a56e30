package process

import (
	"errors"
	"fmt"
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
			file := filepath.Join(c.Dir, argument)
			if _, err := os.Stat(file); err == nil && filepath.IsLocal(argument) && (i > 0 || strings.Contains(argument, "/")) {
				c.Args[i] = file
			}
		}
	}
	var err error
	if c.Args[0], err = lookUp(c.Args[0], path); err != nil {
		return c, err
	}
	if len(c.Preload) == 0 {
		return c, nil
	}
	if len(c.Args) < 2 || strings.HasPrefix(c.Args[1], "-") {
		return c, errors.New("with modules to preload it is a Python interpreter, a script and the script's arguments")
	}
	if c.Args[1], err = filepath.Abs(c.Args[1]); err != nil {
		return c, err
	}
	_, err = os.Stat(c.Args[1])
	return c, err
}

// lookUp finds a program.
func lookUp(program, path string) (string, error) {
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = nil
		for _, dir := range filepath.SplitList(path) {
			candidates = append(candidates, filepath.Join(dir, program))
		}
	}
	for _, file := range candidates {
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return filepath.Abs(file)
		}
	}
	return "", fmt.Errorf("%s is no program that can be run", program)
}
