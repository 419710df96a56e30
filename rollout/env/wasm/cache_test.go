package wasm

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What stays fits, is what was used last, and no more is removed than has to be.
func TestBeyondRemovesTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []cached
		for i, used := range rapid.SliceOf(rapid.Int64Range(0, 9)).Draw(t, "used") {
			bytes := rapid.Int64Range(0, 100).Draw(t, "bytes")
			files = append(files, cached{string(rune('a' + i)), bytes, time.Unix(used, 0)})
		}
		limit := rapid.Int64Range(0, 300).Draw(t, "limit")
		removed := beyond(files, limit)
		kept := slices.DeleteFunc(slices.Clone(files), func(f cached) bool { return slices.Contains(removed, f) })
		var sum int64
		for _, f := range kept {
			sum += f.bytes
			for _, r := range removed {
				if r.used.After(f.used) {
					t.Fatalf("%v was removed and %v kept", r, f)
				}
			}
		}
		if sum > limit || len(removed) > 0 && sum+removed[0].bytes <= limit {
			t.Fatalf("%d bytes of %d are kept, and %v removed", sum, limit, removed)
		}
	})
}

// put makes a file of n bytes in a module's folder that was used at some time.
func put(t *testing.T, cache, module string, n int, used time.Time) string {
	t.Helper()
	folder := moduleFolder(cache, []byte(module))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, "code")
	if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, used, used); err != nil {
		t.Fatal(err)
	}
	return name
}

// there says which of some files exist.
func there(names ...string) (list []bool) {
	for _, name := range names {
		_, err := os.Stat(name)
		list = append(list, err == nil)
	}
	return list
}

func TestPruneKeepsWhatIsUsed(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	a := put(t, cache, "a", 100, now.Add(-3*time.Hour))
	b := put(t, cache, "b", 100, now.Add(-2*time.Hour))
	c := put(t, cache, "c", 100, now.Add(-time.Hour))
	if err := use(filepath.Dir(a), now); err != nil {
		t.Fatal(err)
	}
	if err := prune(cache, 200, now); err != nil {
		t.Fatal(err)
	}
	if got := there(a, b, c); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("what stays: %v", got)
	}
	if got := there(filepath.Dir(b)); !got[0] {
		t.Error("a folder went that somebody may be about to use")
	}
	if err := prune(cache, 200, now.Add(2*emptyFor)); err != nil {
		t.Fatal(err)
	}
	if got := there(filepath.Dir(a), filepath.Dir(b)); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("what stays of the folders: %v", got)
	}
	if err := prune(filepath.Join(cache, "nowhere"), 200, now); err != nil {
		t.Errorf("no cache: %v", err)
	}
}

// Several nodes of a user share the cache: what one removes is no error of another.
func TestPruneAmongOthers(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	for i := range 50 {
		put(t, cache, string(rune('A'+i)), 10, now.Add(-time.Duration(i)*time.Minute))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := use(moduleFolder(cache, []byte("A")), now); err != nil {
				t.Error(err)
			}
			if err := prune(cache, 100, now); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := filepath.Glob(filepath.Join(cache, "*", "code"))
	if err != nil || len(left) != 10 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
