package main

import (
	"strings"
	"testing"
)

// An environment's texts cannot command the terminal.
func TestPlayedTasksAreHarmless(t *testing.T) {
	const evil = "\x1b]0;title\a"
	var out strings.Builder
	runText(&out, &runResult{
		Split: "train", Messages: []runMessage{{"user", "one\ntwo" + evil}}, Tools: []runTool{{"t", evil, evil}},
		Calls: []runCall{{evil, evil, evil}}, Answer: evil,
	})
	if said := out.String(); strings.ContainsAny(said, "\x1b\a") || !strings.Contains(said, "  user: one\n    two\uFFFD]0;title") {
		t.Errorf("%q", said)
	}
}
