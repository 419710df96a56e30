package pack

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/wire"
)

//go:embed template
var templateFiles embed.FS

// Template writes the folder of a small environment of the given name, in Go, which passes all checks as it is. The
// folder is made if it does not exist; no file in it is overwritten. It returns the files' names.
func Template(dir, name string) ([]string, error) {
	if !wire.PackageName(name) || len(name) > wire.MaxNameBytes {
		return nil, fmt.Errorf("name %q %s", name, wire.PackageNameRule)
	}
	entries, err := templateFiles.ReadDir("template")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		file := filepath.Join(dir, strings.TrimSuffix(e.Name(), ".tmpl"))
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s exists: name another folder, or remove it", file)
		}
		files = append(files, file)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for i, e := range entries {
		content, err := templateFiles.ReadFile("template/" + e.Name())
		if err != nil {
			return nil, err
		}
		if e.Name() == SourceFile {
			content = bytes.Replace(content, []byte(`"letters"`), []byte(`"`+name+`"`), 1)
		}
		if err := os.WriteFile(files[i], content, 0o666); err != nil {
			return nil, err
		}
	}
	return files, nil
}
