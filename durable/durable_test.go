package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "state")
	if err := os.WriteFile(name+".tmp", []byte("what a crash left, longer than the rest"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first", "the second", ""} {
		if err := WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("the file has %q, want %q: %v", got, content, err)
		}
	}
	if mode := stat(t, name).Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %o", mode)
	}
	checkAlone(t, dir, "state")
}

// A failure leaves the file as it was, and nothing beside it.
func TestWriteFileFailsWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "state")
	if err := os.Mkdir(name, 0o700); err != nil { // no rename replaces a folder by a file
		t.Fatal(err)
	}
	if err := WriteFile(name, []byte("new"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if !stat(t, name).IsDir() {
		t.Error("the folder is gone")
	}
	checkAlone(t, dir, "state")
	if err := WriteFile(filepath.Join(dir, "nowhere", "state"), nil, 0o600); err == nil {
		t.Error("a file was written in no folder")
	}
}

func TestSyncFolderNeedsAFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there it does nothing")
	}
	dir := t.TempDir()
	if err := SyncFolder(dir); err != nil {
		t.Error(err)
	}
	if err := SyncFolder(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("no error without a folder")
	}
}

func stat(t *testing.T, name string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// checkAlone checks that a folder has one entry.
func checkAlone(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the folder has %v, want %s alone: %v", entries, name, err)
	}
}
