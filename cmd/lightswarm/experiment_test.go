package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lightswarm/lightswarm/experiment"
)

// Every run that the project's own declarations ask for could begin.
func TestDeclaredExperiments(t *testing.T) {
	t.Chdir("../..")
	files, err := filepath.Glob("examples/experiments/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("declarations %q, %v", files, err)
	}
	for _, file := range append(files, "scripts/checks/threetasks/quick.toml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, err := experiment.Parse(file, text, runFlags())
			if err != nil {
				t.Fatal(err)
			}
			runs := &testnetRuns{name: d.Name, environments: map[string]environmentArgument{}}
			if err := experiment.Check(t.Context(), d, experiment.Folder(t.TempDir()), runs); err != nil {
				t.Error(err)
			}
		})
	}
}
