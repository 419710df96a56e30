package block_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/wire"
)

// TestMemoryStoreKeepsTheMostRecent compares the store with a list in order of use.
func TestMemoryStoreKeepsTheMostRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 100
		store := block.NewMemoryStore(capacity)
		var recent [][]byte // The most recently used last.
		use := func(data []byte) {
			for i, b := range recent {
				if bytes.Equal(b, data) {
					recent = append(recent[:i:i], recent[i+1:]...)
					break
				}
			}
			recent = append(recent, data)
			size := 0
			for i := len(recent) - 1; i >= 0; i-- {
				if size += len(recent[i]); size > capacity {
					recent = recent[i+1:]
					break
				}
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			n := rapid.IntRange(1, 110).Draw(t, "block")
			data := bytes.Repeat([]byte{byte(n)}, n)
			switch {
			case rapid.Bool().Draw(t, "put"):
				err := store.Put(wire.SumCID(data), data)
				if (err != nil) != (n > capacity) {
					t.Fatalf("put %d bytes: %v", n, err)
				}
				if err == nil {
					use(data)
				}
			default:
				kept := false
				for _, b := range recent {
					kept = kept || bytes.Equal(b, data)
				}
				got, err := store.Get(wire.SumCID(data))
				if kept != (err == nil) || (!kept && !errors.Is(err, block.ErrNotFound)) || kept && !bytes.Equal(got, data) {
					t.Fatalf("get %d bytes: %v, kept %v", n, err, kept)
				}
				if kept {
					use(data)
				}
			}
		}
	})
}
