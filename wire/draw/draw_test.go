package draw

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

var update = flag.Bool("update", false, "write golden files anew")

func testPeer(letter byte) wire.PeerID {
	seed := strings.Repeat(string(rune(letter)), ed25519.SeedSize)
	return wire.NewPeerID(ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey))
}

func testCharter() *wire.Charter {
	return &wire.Charter{
		Environments: []wire.EnvironmentRef{
			{Manifest: wire.SumCID([]byte("calc")), Weight: 3, TrainTasks: 1000, ValidationTasks: 100},
			{Manifest: wire.SumCID([]byte("maze")), Weight: 1, TrainTasks: 7, ValidationTasks: 40},
		},
		Evaluation: wire.EvaluationRules{Tasks: 40, BlockTasks: 16},
	}
}

// TestChaCha8 compares blocks with published test vectors of ChaCha8 (draft-strombergson-chacha-test-vectors, 256-bit
// keys, TC1 and TC2).
func TestChaCha8(t *testing.T) {
	tests := []struct {
		firstKeyByte byte
		stream       string // the first two blocks
	}{
		{0, "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42" +
			"d2aefa0deaa5c151bf0adb6c01f2a5adc0fd581259f9a2aadcf20f8fd566a26b5032ec38bbc5da98ee0c6f568b872a65a08abf251deb21bb4b56e5d8821e68aa"},
		{1, "cf5ee9a0494aa9613e05d5ed725b804b12f4a465ee635acc3a311de8740489ea289d04f43c7518db56eb4433e498a1238cd8464d3763ddbb9222ee3bd8fae3c8"},
	}
	for _, test := range tests {
		key := [32]byte{test.firstKeyByte}
		var got []byte
		for counter := range uint64(len(test.stream) / 128) {
			for _, w := range block(key, counter) {
				got = binary.LittleEndian.AppendUint32(got, w)
			}
		}
		if hex.EncodeToString(got) != test.stream {
			t.Errorf("key %x…: %x", key[0], got)
		}
	}
}

// vectors is the golden file, meant for other implementations too.
type vectors struct {
	Network wire.CID            `json:"network"`
	Charter []vectorEnvironment `json:"environments"`
	Tasks   []vectorTask        `json:"tasks"`
	Keys    []vectorKey         `json:"keys"`
	Orders  []vectorOrder       `json:"evaluation_orders"`
}

type vectorEnvironment struct {
	Manifest   wire.CID `json:"manifest"`
	Weight     uint32   `json:"weight"`
	TrainTasks uint64   `json:"train_tasks"`
}

type vectorTask struct {
	Peer             wire.PeerID `json:"peer"`
	Version          uint64      `json:"version"`
	Counter          uint64      `json:"counter"`
	EnvironmentIndex int         `json:"environment_index"`
	Index            uint64      `json:"index"`
}

type vectorKey struct {
	Of     string    `json:"of"`
	Key    string    `json:"key"`
	Floats []float32 `json:"floats_0_1_15_16_2^32"`
}

type vectorOrder struct {
	Peer    wire.PeerID `json:"peer"`
	Version uint64      `json:"version"`
	Order   []int       `json:"order"`
}

func TestGoldenVectors(t *testing.T) {
	c := testCharter()
	v := vectors{Network: wire.SumCID([]byte("network"))}
	for _, e := range c.Environments {
		v.Charter = append(v.Charter, vectorEnvironment{e.Manifest, e.Weight, e.TrainTasks})
	}
	key := func(of string, k [32]byte) {
		entry := vectorKey{Of: of, Key: hex.EncodeToString(k[:])}
		for _, position := range []uint64{0, 1, 15, 16, 1 << 32} {
			entry.Floats = append(entry.Floats, Float32(k, position))
		}
		v.Keys = append(v.Keys, entry)
	}
	for _, peer := range []wire.PeerID{testPeer('a'), testPeer('b')} {
		for _, version := range []uint64{0, 1, math.MaxUint64} {
			for _, counter := range []uint64{0, 1, 2, 1 << 40} {
				d := Train(v.Network, c, version, peer, counter)
				v.Tasks = append(v.Tasks, vectorTask{peer, version, counter, d.EnvironmentIndex, d.Index})
			}
			v.Orders = append(v.Orders, vectorOrder{peer, version, EvaluationOrder(v.Network, version, peer, EvaluationBlocks(c))})
		}
		key(fmt.Sprintf("train version 1 peer %s counter 2 member 3 call 4", peer), TrainKey(v.Network, 1, peer, 2, 3, 4))
	}
	key("evaluate version 1 environment 0 task 2 call 3", EvaluateKey(v.Network, 1, c.Environments[0].Manifest, 2, 3))

	got, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/vectors.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.TrimSpace(string(want)), string(got)); d != "" {
		t.Errorf("draws changed, which splits networks that exist:\n%s", d)
	}
}

// uniform fails when counts are too far from expected: by chance once in a million runs of other draws.
func uniform(t *testing.T, what string, counts []int, expected []float64) {
	t.Helper()
	chi := 0.0
	for i, n := range counts {
		d := float64(n) - expected[i]
		chi += d * d / expected[i]
	}
	if limit := (distuv.ChiSquared{K: float64(len(counts) - 1)}).Quantile(1 - 1e-6); chi > limit {
		t.Errorf("%s: chi-squared is %.1f, above %.1f", what, chi, limit)
	}
}

func equal(n int, total float64) []float64 {
	return slices.Repeat([]float64{total / float64(n)}, n)
}

func TestTrainIsUniformAndHonoursWeights(t *testing.T) {
	network, c, peer := wire.SumCID([]byte("n")), testCharter(), testPeer('a')
	const draws = 40000
	environments, tasks, maze := make([]int, 2), make([]int, 1000), make([]int, 7)
	for counter := range uint64(draws) {
		d := Train(network, c, 3, peer, counter)
		environments[d.EnvironmentIndex]++
		if d.Environment != c.Environments[d.EnvironmentIndex].Manifest || d.Split != wire.SplitTrain {
			t.Fatalf("drew %+v", d)
		}
		if d.EnvironmentIndex == 0 {
			tasks[d.Index]++
		} else {
			maze[d.Index]++
		}
	}
	uniform(t, "environments", environments, []float64{draws * 0.75, draws * 0.25})
	uniform(t, "tasks of the first", tasks, equal(1000, float64(environments[0])))
	uniform(t, "tasks of the second", maze, equal(7, float64(environments[1])))
}

// TestBelowHasNoModuloBias uses a range of two thirds of 2^64, where a plain remainder would make the lower half of
// the results twice as likely.
func TestBelowHasNoModuloBias(t *testing.T) {
	const n = 1 << 63 / 3 * 4
	s := newStream([32]byte{1})
	halves := make([]int, 2)
	for range 20000 {
		halves[s.below(n)/(n/2)]++
	}
	uniform(t, "halves", halves, equal(2, 20000))
}

func TestBelowStaysBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, math.MaxUint64).Draw(t, "n")
		s := newStream([32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")))
		for range 20 {
			if v := s.below(n); v >= n {
				t.Fatalf("%d is not below %d", v, n)
			}
		}
	})
}

func TestFloat32IsUniform(t *testing.T) {
	key := TrainKey(wire.SumCID([]byte("n")), 1, testPeer('a'), 2, 3, 4)
	counts := make([]int, 64)
	s := newStream(key)
	for position := uint64(0); position < 64000; position += 2 {
		x, y := Float32(key, position), Float32(key, position+1)
		for _, v := range []float32{x, y} {
			if v < 0 || v >= 1 || v*(1<<24) != float32(math.Trunc(float64(v*(1<<24)))) {
				t.Fatalf("%v is no multiple of 2^-24 in [0, 1)", v)
			}
			counts[int(v*64)]++
		}
		// Random access and reading in order are the same stream.
		if w := s.uint64(); float32(uint32(w)>>8)/(1<<24) != x || float32(w>>40)/(1<<24) != y {
			t.Fatalf("position %d is %v, %v", position, x, y)
		}
	}
	uniform(t, "floats", counts, equal(64, 64000))
}

// TestKeysDependOnEveryField changes one field at a time.
func TestKeysDependOnEveryField(t *testing.T) {
	n, m := wire.SumCID([]byte("n")), wire.SumCID([]byte("m"))
	a, b := testPeer('a'), testPeer('b')
	keys := [][32]byte{
		TrainKey(n, 1, a, 2, 3, 4), TrainKey(m, 1, a, 2, 3, 4), TrainKey(n, 9, a, 2, 3, 4), TrainKey(n, 1, b, 2, 3, 4),
		TrainKey(n, 1, a, 9, 3, 4), TrainKey(n, 1, a, 2, 9, 4), TrainKey(n, 1, a, 2, 3, 9), TrainKey(n, 2, a, 1, 4, 3),
		EvaluateKey(n, 1, m, 2, 3), EvaluateKey(m, 1, m, 2, 3), EvaluateKey(n, 9, m, 2, 3), EvaluateKey(n, 1, n, 2, 3),
		EvaluateKey(n, 1, m, 9, 3), EvaluateKey(n, 1, m, 2, 9),
	}
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			t.Errorf("key %d repeats an earlier one", i)
		}
	}
}

func TestEvaluationOrderIsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.IntRange(0, 200).Draw(t, "blocks")
		version := rapid.Uint64().Draw(t, "version")
		order := EvaluationOrder(wire.SumCID([]byte("n")), version, testPeer('a'), blocks)
		sorted := slices.Sorted(slices.Values(order))
		for i, v := range sorted {
			if i != v {
				t.Fatalf("%v is no permutation", order)
			}
		}
		if len(order) != blocks {
			t.Fatalf("%d blocks of %d", len(order), blocks)
		}
	})
}

// TestEvaluationOrdersSpread makes sure that each block comes first for as many peers as any other.
func TestEvaluationOrdersSpread(t *testing.T) {
	const blocks, peers = 16, 8000
	first, last := make([]int, blocks), make([]int, blocks)
	for i := range peers {
		order := EvaluationOrder(wire.SumCID(fmt.Append(nil, i)), 1, testPeer('a'), blocks)
		first[order[0]]++
		last[order[blocks-1]]++
	}
	uniform(t, "first blocks", first, equal(blocks, peers))
	uniform(t, "last blocks", last, equal(blocks, peers))
}

func TestEvaluationBlocksCoverEveryTaskOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := testCharter()
		c.Evaluation = wire.EvaluationRules{
			Tasks:      rapid.Uint32Range(0, 40).Draw(t, "tasks"),
			BlockTasks: rapid.Uint32Range(1, 50).Draw(t, "block tasks"),
		}
		next := make([]uint64, len(c.Environments))
		for n := range EvaluationBlocks(c) {
			b := EvaluationBlock(c, n)
			if b.First != next[b.EnvironmentIndex] || b.Tasks == 0 || b.Tasks > c.Evaluation.BlockTasks {
				t.Fatalf("block %d is %+v after task %d", n, b, next[b.EnvironmentIndex])
			}
			if b.Environment != c.Environments[b.EnvironmentIndex].Manifest {
				t.Fatalf("block %d is of %s", n, b.Environment)
			}
			next[b.EnvironmentIndex] += uint64(b.Tasks)
		}
		for e, tasks := range next {
			if tasks != uint64(c.Evaluation.Tasks) {
				t.Fatalf("environment %d has %d tasks in blocks", e, tasks)
			}
		}
	})
}

func TestBlocksOutOfRangeAreAMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("there is a block after the last")
		}
	}()
	EvaluationBlock(testCharter(), EvaluationBlocks(testCharter()))
}

func BenchmarkFloat32(b *testing.B) {
	key := [32]byte{1}
	position := uint64(0)
	for b.Loop() {
		Float32(key, position)
		position++
	}
}
