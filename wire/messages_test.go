package wire

import (
	"bytes"
	"crypto/ed25519"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

// testKey is the same key for the same letter.
func testKey(letter byte) Key {
	return NewKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(letter)), ed25519.SeedSize))))
}

func testDigest(s string) [32]byte { return SumCID([]byte(s)).Digest() }

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)

func testPolicy(s string) PolicyRef {
	return PolicyRef{Digest: testDigest(s), StateDigest: testDigest(s + " state"), Anchor: SumCID([]byte(s + " anchor"))}
}

// Each function returns a valid message with every field set.

func testCharter() Charter {
	return Charter{
		Name:     "arithmetic for everyone",
		Created:  testTime,
		Nonce:    []byte("sixteen letters!"),
		Learners: []PeerID{testKey('a').Peer(), testKey('b').Peer()},
		Environments: []EnvironmentRef{
			{Manifest: SumCID([]byte("calc")), Name: "calc", Weight: 3, TrainTasks: 1 << 20, ValidationTasks: 4096},
			{Manifest: SumCID([]byte("maze")), Name: "maze", Weight: 1, TrainTasks: 100, ValidationTasks: 128},
		},
		Base: testPolicy("base"),
		Rollout: RolloutRules{
			GroupSize:           8,
			MaxCalls:            4,
			MaxCompletionTokens: 48,
			Sampling:            Sampling{Temperature: 1, TopK: 50, TopP: 0.95},
			MaxLag:              4,
			GroupsPerVersion:    16,
		},
		Evaluation: EvaluationRules{Tasks: 128, BlockTasks: 16},
	}
}

func testRelease() Release {
	return Release{
		Network:           SumCID([]byte("network")),
		Version:           7,
		Policy:            testPolicy("seven"),
		Parent:            SumCID([]byte("six")),
		ParentStateDigest: testDigest("six state"),
		Deltas:            []DeltaRef{{FromVersion: 6, CID: SumCID([]byte("delta 6")), Bytes: 1000}, {FromVersion: 4, CID: SumCID([]byte("delta 4")), Bytes: 3000}},
		Created:           testTime,
		Evaluate:          true,
		GroupsPerVersion:  32,
		GroupsTrained:     700,
		Final:             true,
	}
}

func testAnnouncement() Announcement {
	return Announcement{
		Network:          SumCID([]byte("network")),
		Sequence:         12,
		Purpose:          PurposeEvaluateSampled,
		Bundle:           SumCID([]byte("bundle")),
		BundleBytes:      420,
		PolicyVersion:    7,
		PolicyDigest:     testDigest("seven"),
		Environment:      SumCID([]byte("calc")),
		Counter:          3,
		Rollouts:         8,
		CompletionTokens: 160,
		Created:          testTime,
	}
}

func testPresence() Presence {
	return Presence{
		Network:      SumCID([]byte("network")),
		Roles:        RoleRollout | RoleRelay,
		HeadVersion:  7,
		NextSequence: 13,
		Created:      testTime,
		AgentVersion: "lightswarm/0.1.0",
	}
}

func testManifest() EnvironmentManifest {
	return EnvironmentManifest{
		Name:          "calc",
		Version:       "1.0.0",
		Description:   "word problems with a calculator",
		Licence:       "Apache-2.0",
		Kind:          "builtin",
		Entry:         "calc",
		Splits:        []Split{{Name: SplitTrain, Tasks: 1 << 20}, {Name: SplitValidation, Tasks: 4096}},
		RewardMin:     -1,
		RewardMax:     1,
		Determinism:   DeterminismExact,
		Agents:        []string{"solver", "critic"},
		TrainedAgents: []string{"solver"},
	}
}

// testRewardingManifest is one of an environment that rewards calls.
func testRewardingManifest() EnvironmentManifest {
	m := testManifest()
	m.ToolRewards = []ToolReward{{Tool: "calculator", Status: ToolFailed, Reward: -0.25}, {Status: ToolOK, Reward: 0.125}}
	m.AgentRewards = AgentRewardFinal | AgentRewardCalls
	return m
}

func testArtefactManifest() EnvironmentManifest {
	m := testManifest()
	m.Kind, m.Entry = "wasm", "maze.wasm"
	m.Splits[1].Data = "validation.jsonl"
	m.Artefacts = []Artefact{
		{"maze.wasm", []BlockRef{{CID: SumCID([]byte("block 0")), Bytes: 1 << 20}, {CID: SumCID([]byte("block 1")), Bytes: 17}}},
		{"validation.jsonl", []BlockRef{{CID: SumCID([]byte("tasks")), Bytes: 420}}},
	}
	m.Limits = EpisodeLimits{MemoryBytes: 64 << 20, Steps: 1e9}
	return m
}

func testEnvironmentPackage() EnvironmentPackage {
	return EnvironmentPackage{Name: "maze-3d", Version: "1.0.0-beta.2", Manifest: SumCID([]byte("maze")), Created: testTime}
}

func testPolicyManifest() PolicyManifest {
	return PolicyManifest{
		ConfigJSON:     []byte(`{"hidden_size":64}`),
		Tokenizer:      SumCID([]byte("tokenizer")),
		Template:       "lightswarm-1",
		GenerationJSON: []byte(`{"stop":[8]}`),
		Tensors: []TensorRef{
			{Name: "model.embed_tokens.weight", DType: "BF16", Shape: []uint64{512, 64}, Digest: testDigest("embed")},
			{Name: "model.norm.weight", DType: "F32", Shape: []uint64{64}, Digest: testDigest("norm")},
		},
		Blocks:      []BlockRef{{CID: SumCID([]byte("block 0")), Bytes: 1 << 20}, {CID: SumCID([]byte("block 1")), Bytes: 17}},
		StateDigest: testDigest("state"),
	}
}

// form is one message type: a valid value, how to encode it, and how to decode bytes to a value.
type form struct {
	name   string
	value  any
	encode func() ([]byte, error)
	decode func([]byte) (any, error)
}

// forms lists every message.
func forms() []form {
	k := testKey('a')
	return []form{
		{"charter", testCharter(),
			func() ([]byte, error) { s, err := SignCharter(k, testCharter()); return s.Raw, err },
			func(b []byte) (any, error) { s, err := OpenCharter(b); return s.Charter, err }},
		{"release", testRelease(),
			func() ([]byte, error) { s, err := SignRelease(k, testRelease()); return s.Raw, err },
			func(b []byte) (any, error) { s, err := OpenRelease(b); return s.Release, err }},
		{"announcement", testAnnouncement(),
			func() ([]byte, error) { s, err := SignAnnouncement(k, testAnnouncement()); return s.Raw, err },
			func(b []byte) (any, error) { s, err := OpenAnnouncement(b); return s.Announcement, err }},
		{"presence", testPresence(),
			func() ([]byte, error) { s, err := SignPresence(k, testPresence()); return s.Raw, err },
			func(b []byte) (any, error) { s, err := OpenPresence(b); return s.Presence, err }},
		formOf("environment-manifest", testManifest(), EncodeManifest, DecodeManifest),
		formOf("environment-manifest-rewards", testRewardingManifest(), EncodeManifest, DecodeManifest),
		formOf("environment-manifest-artefacts", testArtefactManifest(), EncodeManifest, DecodeManifest),
		{"environment-package", testEnvironmentPackage(),
			func() ([]byte, error) {
				s, err := SignEnvironmentPackage(k, testEnvironmentPackage())
				return s.Raw, err
			},
			func(b []byte) (any, error) { s, err := OpenEnvironmentPackage(b); return s.EnvironmentPackage, err }},
		formOf("policy-manifest", testPolicyManifest(), EncodePolicyManifest, DecodePolicyManifest),
		formOf("block-request", BlockRequest{CIDs: []CID{SumCID([]byte("one")), SumCID([]byte("two"))}}, EncodeBlockRequest, DecodeBlockRequest),
		formOf("block-header", BlockHeader{Index: 1, Found: true, Bytes: 420}, EncodeBlockHeader, DecodeBlockHeader),
		formOf("head-request", HeadRequest{
			Network:          SumCID([]byte("network")),
			ReleaseFrom:      3,
			MaxReleases:      16,
			Cursors:          []Cursor{{Peer: testKey('a').Peer(), FromSequence: 5}, {Peer: testKey('b').Peer()}},
			MaxAnnouncements: 64,
		}, EncodeHeadRequest, DecodeHeadRequest),
		formOf("head-response", HeadResponse{
			Releases:      [][]byte{[]byte("release 3"), []byte("release 4")},
			Announcements: [][]byte{[]byte("announcement")},
			HeadVersion:   4,
			KnownNetwork:  true,
		}, EncodeHeadResponse, DecodeHeadResponse),
		formOf("peers-request", PeersRequest{Network: SumCID([]byte("network")), MaxPeers: 16}, EncodePeersRequest, DecodePeersRequest),
		formOf("peers-response", PeersResponse{Records: [][]byte{[]byte("record")}}, EncodePeersResponse, DecodePeersResponse),
		formOf("packages-request", PackagesRequest{
			Network: SumCID([]byte("network")), Manifest: SumCID([]byte("manifest")), MaxPackages: 16,
		}, EncodePackagesRequest, DecodePackagesRequest),
		formOf("packages-response", PackagesResponse{Packages: [][]byte{[]byte("package")}}, EncodePackagesResponse, DecodePackagesResponse),
	}
}

func formOf[T any](name string, value T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) form {
	return form{name, value,
		func() ([]byte, error) { return encode(value) },
		func(b []byte) (any, error) { return decode(b) }}
}

// golden compares b with a file, or writes the file.
func golden(t *testing.T, name string, b []byte) []byte {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// The largest results fit a gossiped message and come back as they were.
func TestPresenceResults(t *testing.T) {
	p := testPresence()
	p.Roles = RoleLearner
	p.Results = EvaluationResults{Version: 1 << 40, Sampled: bytes.Repeat([]byte{0x82}, MaxResultBytes), Greedy: []byte{0, 1}}
	s, err := SignPresence(testKey('a'), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Results, s.Results); diff != "" {
		t.Error(diff)
	}
	for block, want := range map[uint64][2]bool{0: {}, 1: {true, false}, 7: {true, false}, 8: {false, true}, 9: {true, false}, 4095: {true, false}, 4096: {}, math.MaxUint64: {}} {
		got := [2]bool{s.Results.Has(PurposeEvaluateSampled, block), s.Results.Has(PurposeEvaluateGreedy, block)}
		if got != want {
			t.Errorf("block %d: %v, want %v", block, got, want)
		}
	}
}
