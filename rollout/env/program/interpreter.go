package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// firstLine is what a program begins with.
var firstLine = regexp.MustCompile(`^#!/usr/bin/env ([A-Za-z0-9][A-Za-z0-9._+-]*)[ \t]*\r?\n`)

// maxName bounds an interpreter's name.
const maxName = 64

// interpreter is the command that a program is to be added to, and the folders besides the system's that it needs.
func interpreter(ctx context.Context, program []byte) (command, folders []string, err error) {
	if bytes.HasPrefix(program, []byte("\x7fELF")) {
		return nil, nil, nil
	}
	match := firstLine.FindSubmatch(program[:min(len(program), 256)])
	if match == nil || len(match[1]) > maxName {
		return nil, nil, errors.New(`this is no program that can be run: its first line must be "#!/usr/bin/env NAME", NAME being that of an interpreter such as python3`)
	}
	name := string(match[1])
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, nil, fmt.Errorf("it needs %s, and there is no %s in PATH: install it", name, name)
	}
	if strings.HasPrefix(name, "python") {
		return python(ctx, path)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, nil, err
	}
	if err := notScript(path); err != nil {
		return nil, nil, err
	}
	folders, err = outside(filepath.Dir(filepath.Dir(path)))
	return []string{path}, folders, err
}

// python asks an interpreter where it really is: what is called python is often a script that chooses one.
func python(ctx context.Context, path string) (command, folders []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ask := exec.CommandContext(ctx, path, "-I", "-c", "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix]))")
	ask.WaitDelay = time.Second
	said, err := ask.Output()
	var paths []string
	if err == nil {
		err = json.Unmarshal(said, &paths)
	}
	if err == nil && (len(paths) != 3 || !filepath.IsAbs(paths[0])) {
		err = fmt.Errorf("it says %q", paths)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s where it is: %w", path, err)
	}
	found, err := filepath.EvalSymlinks(paths[0])
	if err != nil {
		return nil, nil, err
	}
	for _, folder := range append(paths[1:], filepath.Dir(filepath.Dir(found))) {
		more, err := outside(folder)
		if err != nil {
			return nil, nil, err
		}
		folders = append(folders, more...)
	}
	// Not the real path: that of a virtual environment is what makes it one.
	return paths[:1], folders, notScript(found)
}

// notScript is an error if a file is no executable of the system.
func notScript(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var head [4]byte
	if _, err := f.Read(head[:]); err != nil || string(head[:]) != "\x7fELF" {
		return fmt.Errorf("%s is no executable but a script: put the interpreter that it starts first in PATH", path)
	}
	return nil
}

// systemFolders are those that programs read, where they exist.
var systemFolders = []string{"/usr", "/bin", "/lib", "/lib32", "/lib64", "/nix/store"}

// outside is a folder that an interpreter has its files in, or nothing if it is one of the system's. It is an error if
// others than the interpreter have theirs there.
func outside(folder string) ([]string, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	for _, system := range systemFolders {
		if within(folder, system) {
			return nil, nil
		}
	}
	for _, p := range private() {
		if p, err := filepath.EvalSymlinks(p); err == nil && within(p, folder) {
			return nil, fmt.Errorf("the interpreter is installed in %s, which has other files too: install it in a folder of its own", folder)
		}
	}
	return []string{folder}, nil
}

// private are folders of which no program may read all, those where programs keep what they know of their user: with an
// interpreter in ~/.local/bin, ~/.local would be its folder.
func private() []string {
	folders := []string{os.TempDir(), os.Getenv("XDG_DATA_HOME"), os.Getenv("XDG_STATE_HOME")}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, home, filepath.Join(home, ".local", "share"), filepath.Join(home, ".local", "state"))
	}
	for _, find := range []func() (string, error){os.UserConfigDir, os.UserCacheDir} {
		if folder, err := find(); err == nil {
			folders = append(folders, folder)
		}
	}
	return slices.DeleteFunc(folders, func(folder string) bool { return folder == "" })
}

// within says whether a path is a folder or below it.
func within(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rest)
}
