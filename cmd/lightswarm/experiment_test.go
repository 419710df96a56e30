package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lightswarm/lightswarm/experiment"
)

// The examples are declarations of what testnets have flags for.
func TestExampleExperiments(t *testing.T) {
	files, err := filepath.Glob("../../examples/experiments/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := experiment.Parse(file, text, runFlags()); err != nil {
			t.Error(err)
		}
	}
}
