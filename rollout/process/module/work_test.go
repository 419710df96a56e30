//go:build unix

package module

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a module does when it runs, the tests of package process show.
func TestWhatCannotBeDone(t *testing.T) {
	dir := t.TempDir()
	large, empty := filepath.Join(dir, "large.wasm"), filepath.Join(dir, "empty.wasm")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, MaxModuleBytes+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments []string
		environ   []string
		err       string
	}{
		{[]string{"run", dir}, nil, "2 arguments are too few"},
		{[]string{"run", dir, filepath.Join(dir, "none.wasm")}, nil, "no such file"},
		{[]string{"run", dir, large}, nil, "more than 67108864 bytes"},
		{[]string{"walk", dir, empty}, nil, `nothing called "walk"`},
		{[]string{"run", dir, empty}, nil, "OPENAI_BASE_URL is not set"},
		{[]string{"run", dir, empty}, []string{"OPENAI_BASE_URL=http://model.example/v1"}, "OPENAI_BASE_URL: "},
		{[]string{"run", dir, empty}, []string{"OPENAI_BASE_URL=http://127.0.0.1/v1"}, "OPENAI_BASE_URL: "},
		{[]string{"run", dir, empty}, []string{"OPENAI_BASE_URL=://"}, "OPENAI_BASE_URL: "},
	} {
		if status, err := Work(c.arguments, c.environ); status != trapped || err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: %d, %v, want %s", c.arguments, status, err, c.err)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:4747/v1": "127.0.0.1:4747",
		"http://[::1]:80/s/1/v1":   "[::1]:80",
	} {
		if got, err := endpoint([]string{"PATH=/bin", "OPENAI_BASE_URL=" + url}); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	if got := milliseconds(time.Time{}); got != -1 {
		t.Errorf("without a due time it waits %d", got)
	}
	if got := milliseconds(time.Now().Add(-time.Hour)); got != 0 {
		t.Errorf("when it is due it waits %d", got)
	}
	if got := milliseconds(time.Now().Add(time.Hour)); got <= 0 || got > 3600_000 {
		t.Errorf("an hour is %d", got)
	}
}
