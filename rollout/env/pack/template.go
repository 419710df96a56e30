package pack

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/rollout/env/program"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

//go:embed template
var templateFiles embed.FS

// TemplateKinds are the kinds that there are templates of.
var TemplateKinds = []string{wasm.Kind, program.Kind, openenv.Kind}

// Kinds are the TemplateKinds in words.
func Kinds() string {
	last := len(TemplateKinds) - 1
	return strings.Join(TemplateKinds[:last], ", ") + " or " + TemplateKinds[last]
}

// Template writes the folder of a small environment of the given name, which passes all checks as it is: in Go for the kind
// wasm, in Python for exec, in Python with OpenEnv's package for openenv, where its server has to be started. The folder is
// made if it does not exist; no file in it is overwritten, which is an error that wraps fs.ErrExist. It returns the files'
// names.
func Template(dir, name, kind string) ([]string, error) {
	if !slices.Contains(TemplateKinds, kind) {
		return nil, fmt.Errorf("there is no environment of kind %q to start from: use %s", kind, Kinds())
	}
	if !wire.PackageName(name) || len(name) > wire.MaxNameBytes {
		return nil, fmt.Errorf("name %q %s", name, wire.PackageNameRule)
	}
	entries, err := templateFiles.ReadDir("template/" + kind)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		file := filepath.Join(dir, strings.TrimSuffix(e.Name(), ".tmpl"))
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w: name another folder, or remove it", file, fs.ErrExist)
		}
		files = append(files, file)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for i, e := range entries {
		content, err := templateFiles.ReadFile("template/" + kind + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		if e.Name() == SourceFile {
			content = bytes.Replace(content, []byte(`"letters"`), []byte(`"`+name+`"`), 1)
		}
		mode := fs.FileMode(0o666)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o777
		}
		if err := os.WriteFile(files[i], content, mode); err != nil {
			return nil, err
		}
	}
	return files, nil
}
