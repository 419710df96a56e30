package learner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lightswarm/lightswarm/wire"
)

// Wherever a learner of a folder dies, and dies again, the next one on its store ends with the trainer's state and the
// counters of one that never died. Among the files are some that it refuses at first and would not later, and flat ones, that a
// step may have to go on behind.
func TestRunFolderContinues(t *testing.T) {
	for dynamic, versions := range map[float64]uint64{1: 4, 3: 3} {
		t.Run(fmt.Sprint("dynamic ", dynamic), func(t *testing.T) { continues(t, dynamic, versions) })
	}
}

// continues compares lives of a learner whose whole life makes so many versions.
func continues(t *testing.T, dynamic float64, versions uint64) {
	n := plainNetwork(t)
	dir := t.TempDir()
	write := func(name string, raw []byte) {
		if err := os.WriteFile(filepath.Join(dir, name+BundleSuffix), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	peer := key(1).Peer()
	for counter := range uint64(14) {
		version := uint64(0)
		if counter%4 == 1 {
			version = 2 // It does not exist yet, and has another digest once it does.
		}
		g := n.group(version, n.base.Digest(), peer, counter)
		if counter%3 == 0 {
			g = groupOf(n, counter, 0, 1, 1, 1, 1).bundle
		}
		_, raw := encode(t, g, peer)
		write(fmt.Sprintf("%02d", counter), raw)
		if counter%5 == 0 {
			write(fmt.Sprintf("%02d-again", counter), raw)
		}
	}
	// run dies at point first of its first life, one later in the next and so on until it ends; 0 is never.
	run := func(first int64) (Checkpoint, int) {
		memory, deaths := NewMemory(), 0
		for life := int64(1); ; life++ {
			c := n.config(newSwarm())
			c.Key, c.Batch.Groups, c.Batch.Dynamic = nil, 3, dynamic
			at := int64(-1)
			if first > 0 {
				at = first + life - 1
			}
			dying := &crashing{Store: memory, Publisher: nowhere{}, at: at, consumed: make(map[wire.CID]int)}
			c.Store, c.Publisher = dying, dying
			_, _, err := RunFolder(t.Context(), dir, c)
			if errors.Is(err, errCrash) {
				deaths++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := memory.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return *r.Checkpoint, deaths
		}
	}
	whole, _ := run(0)
	if whole.Version != versions {
		t.Fatalf("the run ends at version %d, want %d", whole.Version, versions)
	}
	for first := int64(1); first < 30; first++ {
		again, deaths := run(first)
		if deaths == 0 {
			t.Fatalf("a run with a death at point %d has none", first)
		}
		if again.Version != whole.Version || !bytes.Equal(again.Trainer, whole.Trainer) || !bytes.Equal(again.Progress, whole.Progress) {
			t.Fatalf("with %d deaths from point %d on it ends at version %d otherwise than at version %d without", deaths, first, again.Version, whole.Version)
		}
	}
}
