package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, path string) *Folder {
	t.Helper()
	f, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestLockNamesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	first := open(t, path)
	_, err := OpenFolder(path)
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	for _, want := range []string{fmt.Sprintf("process %d", os.Getpid()), path, "--data"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestIdentityIsCreatedOnce(t *testing.T) {
	path := t.TempDir()
	f := open(t, path)
	keys := make([][]byte, 8)
	var running sync.WaitGroup
	for i := range keys {
		running.Go(func() {
			key, err := View(path).Identity()
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	running.Wait()
	again, err := f.Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !bytes.Equal(key, again) {
			t.Fatal("two identities were created")
		}
	}
	info, err := os.Stat(f.IdentityFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("identity file: %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(path, ".*")); len(left) > 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

func TestBadSecretsAreRefused(t *testing.T) {
	f := open(t, t.TempDir())
	if _, err := f.Identity(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f.IdentityFile(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Identity(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("open identity: %v", err)
	}
	for _, content := range []string{"", "junk", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(f.IdentityFile(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Chmod(f.IdentityFile(), 0o600)
		if _, err := f.Identity(); err == nil || !strings.Contains(err.Error(), "backup") {
			t.Errorf("damaged identity %q: %v", content, err)
		}
	}
	if err := os.WriteFile(f.tokenFile(), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Token(); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("damaged token: %v", err)
	}
}

func TestTokenAndAddress(t *testing.T) {
	f := open(t, t.TempDir())
	if _, err := f.ReadAddress(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no node runs") {
		t.Errorf("address before a node runs: %v", err)
	}
	token, err := f.Token()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := View(f.Path()).ReadToken(); err != nil || again != token {
		t.Errorf("token changed: %q %q %v", token, again, err)
	}
	for _, address := range []string{"127.0.0.1:1", "127.0.0.1:2"} {
		if err := f.WriteAddress(address); err != nil {
			t.Fatal(err)
		}
		if got, err := f.ReadAddress(); err != nil || got != address {
			t.Errorf("address is %q, %v", got, err)
		}
	}
	if err := errors.Join(f.RemoveAddress(), f.RemoveAddress()); err != nil {
		t.Error(err)
	}
}
