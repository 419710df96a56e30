package bundle

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/lightswarm/lightswarm/wire"
)

var train = flag.Bool("train", false, "make a new dictionary from testdata/training")

// The dictionary is trained on recordings that the size check does not measure. Training writes both folders anew,
// since their files need the dictionary that they were written with.
const (
	trainingFolder = "testdata/training"
	recordedFolder = "testdata/recorded"
)

// historyGroups is how many groups a dictionary holds to be matched against; the others shape its entropy tables.
// More keep helping slowly: 80 groups save another 1% for twice the memory.
const historyGroups = 40

// TestDictionary makes sure that the dictionaries are there under their ids, and that the specification names them: a
// second implementation needs the same bytes.
func TestDictionary(t *testing.T) {
	if *train {
		trainDictionary(t)
	}
	specification, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= newestDictionary; id++ {
		d, err := zstd.InspectDictionary(dictionary(id))
		if err != nil {
			t.Fatal(err)
		}
		if d.ID() != uint32(id) {
			t.Errorf("dictionary/%d.zdict has the id %d", id, d.ID())
		}
		if cid := wire.SumCID(dictionary(id)); !bytes.Contains(specification, []byte(cid.String())) {
			t.Errorf("docs/protocol.md does not name %s, dictionary/%d.zdict", cid, id)
		}
	}
}

func trainDictionary(t *testing.T) {
	training, recorded := readFolder(t, trainingFolder), readFolder(t, recordedFolder)
	if len(training) < 2*historyGroups {
		t.Fatalf("%s has %d bundles; a dictionary needs %d or more", trainingFolder, len(training), 2*historyGroups)
	}
	var history []byte
	var contents [][]byte
	i := 0
	for _, name := range slices.Sorted(maps.Keys(training)) {
		e, err := encodeColumns(training[name])
		if err != nil {
			t.Fatal(err)
		}
		// Spread the history over the whole recording, from an untrained to a trained policy.
		if body := joinColumns(e.columns()); i*historyGroups/len(training) != (i+1)*historyGroups/len(training) {
			history = append(history, body...)
		} else {
			contents = append(contents, body)
		}
		i++
	}
	built, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID:         newestDictionary,
		Contents:   contents,
		History:    history,
		Offsets:    [3]int{1, 4, 8},
		CompatV155: true,
		Level:      level,
	})
	if err != nil {
		t.Fatal(err)
	}
	z := newEncoder(built)
	for _, folder := range []map[string]*Bundle{training, recorded} {
		for name, b := range folder {
			data, err := encodeWith(z, b)
			if err == nil {
				err = os.WriteFile(name, data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(fmt.Sprintf("dictionary/%d.zdict", newestDictionary), built, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes from %d groups", len(built), len(training))
}

// readFolder decodes a folder's bundles, by file name.
func readFolder(t *testing.T, folder string) map[string]*Bundle {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	bundles := make(map[string]*Bundle)
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bundles[name], err = Decode(data, Limits{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return bundles
}
