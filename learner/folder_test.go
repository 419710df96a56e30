package learner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lightswarm/lightswarm/wire"
)

// batches are made-up acceptances: two batches of two bundles.
func batches() [][]Accepted {
	var out [][]Accepted
	for b := range 2 {
		var batch []Accepted
		for i := range 2 {
			body := fmt.Appendf(nil, "bundle %d of batch %d", i, b)
			batch = append(batch, Accepted{Record{
				CID: wire.SumCID(body), Purpose: wire.PurposeTrain, Environment: wire.SumCID([]byte("e")),
				Peer: key(1).Peer(), Counter: uint64(b), Order: uint64(2*b + i),
			}, body})
		}
		out = append(out, batch)
	}
	return out
}

// recorded returns how many bundles a folder holds, after checking that it can give them out.
func recorded(t *testing.T, dir string) int {
	t.Helper()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range r.Records {
		if _, err := f.Bundle(t.Context(), record.CID); err != nil {
			t.Fatal(err)
		}
	}
	return len(r.Records)
}

// No name of a folder is a pattern that its logs are looked for by.
func TestFolderOfAnyName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run[1]")
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Accept(t.Context(), batches()[0]), f.Close()); err != nil {
		t.Fatal(err)
	}
	if got := recorded(t, dir); got != 2 {
		t.Errorf("%d bundles were kept, want 2", got)
	}
}

// A power cut in the middle of a batch leaves any prefix of its bytes, or bytes that were never written; the folder then
// holds the batches before, whole, and takes the cut one again.
func TestFolderTornBatch(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	log := filepath.Join(dir, "bundles-00000000.log")
	for _, batch := range batches() {
		if err := f.Accept(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(info.Size()))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(whole); cut += 11 {
		for _, garbage := range []int{0, 50} {
			torn := t.TempDir()
			data := append(whole[:cut:cut], make([]byte, garbage)...)
			if err := os.WriteFile(filepath.Join(torn, "bundles-00000000.log"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			want := 0
			if cut >= ends[0] {
				want = 2
			}
			if got := recorded(t, torn); got != want {
				t.Fatalf("%d bundles of a log cut at %d of %d, want %d", got, cut, len(whole), want)
			}
			f, err := OpenFolder(torn)
			if err != nil {
				t.Fatal(err)
			}
			for _, batch := range batches() {
				if err := f.Accept(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if got := recorded(t, torn); got != 4 {
				t.Fatalf("%d bundles after accepting again, want 4", got)
			}
		}
	}
}

// What no crash explains is reported, not dropped.
func TestFolderCorrupt(t *testing.T) {
	prepare := func(t *testing.T) string {
		dir := t.TempDir()
		f, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, batch := range batches() {
			if err := f.Accept(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Commit(t.Context(), Checkpoint{Version: 1, Release: []byte("r"), Trainer: []byte("t"), Progress: []byte("p")}); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	flip := func(t *testing.T, name string, at int) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[at] ^= 1
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(t *testing.T, dir string) {
		f, err := OpenFolder(dir)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("opens with %v", err)
		}
	}
	t.Run("checkpoint", func(t *testing.T) {
		dir := prepare(t)
		info, err := os.Stat(filepath.Join(dir, "checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		for at := range int(info.Size()) {
			flip(t, filepath.Join(dir, "checkpoint"), at)
			open(t, dir)
			flip(t, filepath.Join(dir, "checkpoint"), at)
		}
	})
	t.Run("a log that is not the newest", func(t *testing.T) {
		dir := prepare(t)
		log, err := createLog(dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.file.Close(); err != nil {
			t.Fatal(err)
		}
		flip(t, filepath.Join(dir, "bundles-00000000.log"), 100)
		open(t, dir)
	})
	t.Run("a bundle under an open folder", func(t *testing.T) {
		dir := prepare(t)
		f, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := os.Stat(filepath.Join(dir, "bundles-00000000.log"))
		if err != nil {
			t.Fatal(err)
		}
		flip(t, filepath.Join(dir, "bundles-00000000.log"), int(info.Size())-1)
		if _, err := f.Bundle(t.Context(), batches()[1][1].Record.CID); !errors.Is(err, ErrCorrupt) {
			t.Errorf("gives out a changed bundle with %v", err)
		}
	})
	t.Run("an unfinished checkpoint is none", func(t *testing.T) {
		dir := prepare(t)
		if err := os.WriteFile(filepath.Join(dir, "checkpoint.tmp"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := recorded(t, dir); got != 4 {
			t.Errorf("%d bundles, want 4", got)
		}
	})
}

// Logs do not pile up: what is used up leaves the disk.
func TestFolderDeletesUsedLogs(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	body := make([]byte, wire.MaxBundleBytes)
	var used []wire.CID
	for i := range 40 {
		copy(body, unique(i))
		r := Record{CID: wire.SumCID(body), Purpose: wire.PurposeTrain, Environment: wire.SumCID([]byte("e")), Order: uint64(i), Version: uint64(i)}
		if err := f.Accept(t.Context(), []Accepted{{r, body}}); err != nil {
			t.Fatal(err)
		}
		used = append(used, r.CID)
		if len(used) == 8 {
			if err := f.Commit(t.Context(), Checkpoint{Version: uint64(i), Consumed: used, Oldest: uint64(i)}); err != nil {
				t.Fatal(err)
			}
			used = nil
		}
	}
	if got := len(f.logs); got > 2 {
		t.Errorf("%d logs stay", got)
	}
	if got := len(f.entries); got > 16+8+1 { // those of the newest log and of the version window
		t.Errorf("%d records stay", got)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	r := batches()[0][0].Record
	b, err := r.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(b)
		if err != nil {
			return
		}
		encoded, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeRecord(encoded); err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzDecodeProgress(f *testing.F) {
	n := plainNetwork(f)
	rules, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		f.Fatal(err)
	}
	board := NewBoard(rules)
	board.Add(n.evaluation(1, digestOf(1), wire.PurposeEvaluateSampled, 0, 1))
	b, err := progress{nextOrder: 3, reasons: map[Reason]uint64{Stale: 1}, board: board, behaviours: []Behaviour{{1, digestOf(1), true}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProgress(b, rules)
		if err != nil {
			return
		}
		p.board.Evaluations()
		if _, err := p.encode(); err != nil {
			t.Fatal(err)
		}
	})
}
