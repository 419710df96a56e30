package tensorboard

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A file is, to the byte, what TensorBoard's own writer makes of the same events: testdata/golden.py.
func TestFileIsTensorBoards(t *testing.T) {
	want, err := os.ReadFile("testdata/golden.tfevents")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 250_000_000, time.UTC)
	folder := t.TempDir()
	f, err := Create(folder, began)
	if err != nil {
		t.Fatal(err)
	}
	lags := &Histogram{Limits: []float64{0.5, 1.5, 2.5, 3.5}, Counts: []float64{2, 2, 1, 1}}
	for lag, n := range lags.Counts {
		lags.Add(float64(lag), n)
	}
	err = f.Write(Event{Time: began.Add(1250 * time.Millisecond), Step: 300, Values: []Value{
		{Tag: "reward/mean", Scalar: 0.625}, {Tag: "policy/entropy"}, {Tag: "groups/lag", Histogram: lags},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("event files %v, %v", names, err)
	}
	got, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the file is\n%x, TensorBoard writes\n%x", got, want)
	}
}

// A later start has a later name, also within a second.
func TestFilesAreInOrder(t *testing.T) {
	folder := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 3 {
		f, err := Create(folder, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
	}
	if _, err := Create(folder, now.Add(-time.Millisecond)); err == nil {
		t.Error("an event file is written over")
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
}

// So it has when another process starts it.
func TestNamesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		process := rapid.IntRange(1, 1<<22)
		earlier := rapid.Int64Range(0, 1<<60).Draw(t, "earlier")
		later := earlier + rapid.Int64Range(1, 2e9).Draw(t, "later")
		a := fileName(time.Unix(0, earlier), process.Draw(t, "first"))
		if b := fileName(time.Unix(0, later), process.Draw(t, "second")); a >= b {
			t.Errorf("%s comes before %s", b, a)
		}
	})
}

// What is written after a failure begins where the last whole record ended.
func TestWriteFailsWhole(t *testing.T) {
	folder := t.TempDir()
	f, err := Create(folder, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	name := f.file.Name()
	whole := f.end
	if err := f.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(Event{Time: time.Unix(2, 0)}); err == nil {
		t.Fatal("a closed file was written to")
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() != whole || f.end != whole {
		t.Errorf("the file has %d bytes, %v; its records %d", info.Size(), err, f.end)
	}
}

func TestRecordsHoldTheirData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		r := record(data)
		n := binary.LittleEndian.Uint64(r)
		if n != uint64(len(data)) || !bytes.Equal(r[12:12+n], data) || len(r) != len(data)+16 {
			t.Errorf("a record of %d bytes is %x", len(data), r)
		}
	})
}
