package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// damaged is a valid message with one thing wrong, and the field that its error must name.
type damaged struct {
	field string
	err   error
}

func damage[T interface{ Validate() error }](field string, value T, change func(*T)) damaged {
	change(&value)
	return damaged{field, value.Validate()}
}

func TestValidationNamesTheField(t *testing.T) {
	charter := func(field string, change func(*Charter)) damaged { return damage(field, testCharter(), change) }
	release := func(field string, change func(*Release)) damaged { return damage(field, testRelease(), change) }
	announcement := func(field string, change func(*Announcement)) damaged {
		return damage(field, testAnnouncement(), change)
	}
	presence := func(field string, change func(*Presence)) damaged { return damage(field, testPresence(), change) }
	manifest := func(field string, change func(*EnvironmentManifest)) damaged {
		return damage(field, testManifest(), change)
	}
	artefacts := func(field string, change func(*EnvironmentManifest)) damaged {
		return damage(field, testArtefactManifest(), change)
	}
	pack := func(field string, change func(*EnvironmentPackage)) damaged {
		return damage(field, testEnvironmentPackage(), change)
	}
	policy := func(field string, change func(*PolicyManifest)) damaged {
		return damage(field, testPolicyManifest(), change)
	}
	nan := float32(math.NaN())

	for i, d := range []damaged{
		charter("name", func(c *Charter) { c.Name = "" }),
		charter("name", func(c *Charter) { c.Name = " padded" }),
		charter("name", func(c *Charter) { c.Name = "two\nlines" }),
		charter("name", func(c *Charter) { c.Name = "\xff" }),
		charter("name", func(c *Charter) { c.Name = strings.Repeat("n", MaxNameBytes+1) }),
		charter("created_unix_ms", func(c *Charter) { c.Created = time.Time{} }),
		charter("created_unix_ms", func(c *Charter) { c.Created = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }),
		charter("nonce", func(c *Charter) { c.Nonce = make([]byte, MaxNonceBytes+1) }),
		charter("learners", func(c *Charter) { c.Learners = nil }),
		charter("learners", func(c *Charter) { c.Learners = make([]PeerID, MaxLearners+1) }),
		charter("learners", func(c *Charter) { c.Learners[1] = c.Learners[0] }),
		charter("learners", func(c *Charter) { c.Learners[1] = "x" }),
		charter("environments", func(c *Charter) { c.Environments = nil }),
		charter("environments", func(c *Charter) { c.Environments = make([]EnvironmentRef, MaxEnvironments+1) }),
		charter("environments[1].manifest_cid", func(c *Charter) { c.Environments[1].Manifest = CID{} }),
		charter("environments[1].manifest_cid", func(c *Charter) { c.Environments[1].Manifest = c.Environments[0].Manifest }),
		charter("environments[1].name", func(c *Charter) { c.Environments[1].Name = "" }),
		charter("environments[1].weight", func(c *Charter) { c.Environments[1].Weight = 0 }),
		charter("environments[1].weight", func(c *Charter) { c.Environments[1].Weight = MaxEnvironmentWeight + 1 }),
		charter("environments[1].train_tasks", func(c *Charter) { c.Environments[1].TrainTasks = 0 }),
		charter("environments[1].validation_tasks", func(c *Charter) { c.Environments[1].ValidationTasks = 127 }),
		charter("base.digest", func(c *Charter) { c.Base.Digest = [32]byte{} }),
		charter("base.state_digest", func(c *Charter) { c.Base.StateDigest = [32]byte{} }),
		charter("base.anchor_cid", func(c *Charter) { c.Base.Anchor = CID{} }),
		charter("rollout.group_size", func(c *Charter) { c.Rollout.GroupSize = 1 }),
		charter("rollout.max_calls", func(c *Charter) { c.Rollout.MaxCalls = 0 }),
		charter("rollout.max_completion_tokens", func(c *Charter) { c.Rollout.MaxCompletionTokens = MaxTokensPerCall + 1 }),
		charter("rollout.sampling.temperature", func(c *Charter) { c.Rollout.Sampling.Temperature = nan }),
		charter("rollout.sampling.temperature", func(c *Charter) { c.Rollout.Sampling.Temperature = -1 }),
		charter("rollout.sampling.top_p", func(c *Charter) { c.Rollout.Sampling.TopP = 1.5 }),
		charter("rollout.sampling.top_k", func(c *Charter) { c.Rollout.Sampling.TopK = 1 << 31 }),
		charter("rollout.max_lag", func(c *Charter) { c.Rollout.MaxLag = MaxLag + 1 }),
		charter("rollout.groups_per_version", func(c *Charter) { c.Rollout.GroupsPerVersion = 0 }),
		charter("environments[0].validation_tasks", func(c *Charter) { c.Evaluation.Tasks = MaxEvaluationTasks }),
		charter("evaluation.block_tasks", func(c *Charter) { c.Evaluation.BlockTasks = 0 }),

		release("network", func(l *Release) { l.Network = CID{} }),
		release("policy.digest", func(l *Release) { l.Policy.Digest = [32]byte{} }),
		release("parent_cid", func(l *Release) { l.Parent = CID{} }),
		release("parent_state_digest", func(l *Release) { l.ParentStateDigest = [32]byte{} }),
		release("parent_cid", func(l *Release) { l.Version, l.Deltas = 0, nil }),
		release("parent_state_digest", func(l *Release) { l.Version, l.Deltas, l.Parent = 0, nil, CID{} }),
		release("deltas", func(l *Release) { l.Deltas = make([]DeltaRef, MaxDeltas+1) }),
		release("deltas[1].from_version", func(l *Release) { l.Deltas[1].FromVersion = 7 }),
		release("deltas[1].from_version", func(l *Release) { l.Deltas[1].FromVersion = 6 }),
		release("deltas[1].cid", func(l *Release) { l.Deltas[1].CID = CID{} }),
		release("deltas[1].bytes", func(l *Release) { l.Deltas[1].Bytes = 0 }),
		release("created_unix_ms", func(l *Release) { l.Created = time.Time{} }),
		release("groups_per_version", func(l *Release) { l.GroupsPerVersion = MaxGroupsPerVersion + 1 }),

		announcement("network", func(a *Announcement) { a.Network = CID{} }),
		announcement("purpose", func(a *Announcement) { a.Purpose = 0 }),
		announcement("bundle_cid", func(a *Announcement) { a.Bundle = CID{} }),
		announcement("bundle_bytes", func(a *Announcement) { a.BundleBytes = MaxBundleBytes + 1 }),
		announcement("policy_digest", func(a *Announcement) { a.PolicyDigest = [32]byte{} }),
		announcement("environment_cid", func(a *Announcement) { a.Environment = CID{} }),
		announcement("rollouts", func(a *Announcement) { a.Rollouts = 0 }),
		announcement("completion_tokens", func(a *Announcement) { a.CompletionTokens = MaxBundleTokens + 1 }),
		announcement("created_unix_ms", func(a *Announcement) { a.Created = time.Time{} }),

		presence("network", func(p *Presence) { p.Network = CID{} }),
		presence("created_unix_ms", func(p *Presence) { p.Created = time.Time{} }),
		presence("results.sampled", func(p *Presence) { p.Results.Sampled = make([]byte, MaxResultBytes+1) }),
		presence("results.greedy", func(p *Presence) { p.Results.Greedy = make([]byte, MaxResultBytes+1) }),
		presence("agent_version", func(p *Presence) { p.AgentVersion = "\x1b[31m" }),

		manifest("name", func(m *EnvironmentManifest) { m.Name = "" }),
		manifest("version", func(m *EnvironmentManifest) { m.Version = strings.Repeat("1", MaxVersionBytes+1) }),
		manifest("description", func(m *EnvironmentManifest) { m.Description = "\x00" }),
		manifest("licence", func(m *EnvironmentManifest) { m.Licence = "\n" }),
		manifest("kind", func(m *EnvironmentManifest) { m.Kind = "" }),
		manifest("entry", func(m *EnvironmentManifest) { m.Entry = "\n" }),
		manifest("splits", func(m *EnvironmentManifest) { m.Splits = nil }),
		manifest("splits", func(m *EnvironmentManifest) { m.Splits = make([]Split, MaxSplits+1) }),
		manifest("splits[1].name", func(m *EnvironmentManifest) { m.Splits[1].Name = m.Splits[0].Name }),
		manifest("splits[1].tasks", func(m *EnvironmentManifest) { m.Splits[1].Tasks = 0 }),
		manifest("reward_max", func(m *EnvironmentManifest) { m.RewardMax = nan }),
		manifest("reward_max", func(m *EnvironmentManifest) { m.RewardMin = 1 }),
		manifest("determinism", func(m *EnvironmentManifest) { m.Determinism = 0 }),
		manifest("tool_rewards", func(m *EnvironmentManifest) { m.ToolRewards = make([]ToolReward, MaxToolRewards+1) }),
		manifest("tool_rewards[0].tool", func(m *EnvironmentManifest) { m.ToolRewards = []ToolReward{{"\n", ToolOK, 0}} }),
		manifest("tool_rewards[0].status", func(m *EnvironmentManifest) { m.ToolRewards = []ToolReward{{"", 3, 0}} }),
		manifest("tool_rewards[1].reward", func(m *EnvironmentManifest) { m.ToolRewards = []ToolReward{{"", ToolOK, 0}, {"", ToolOK, 2}} }),
		manifest("tool_rewards[0].reward", func(m *EnvironmentManifest) { m.ToolRewards = []ToolReward{{"", ToolFailed, nan}} }),
		manifest("agent_rewards", func(m *EnvironmentManifest) { m.AgentRewards = 4 }),
		manifest("agents", func(m *EnvironmentManifest) { m.Agents = nil }),
		manifest("agents", func(m *EnvironmentManifest) { m.Agents = []string{"solver", "solver"} }),
		manifest("agents", func(m *EnvironmentManifest) { m.Agents = make([]string, MaxAgents+1) }),
		manifest("trained_agents", func(m *EnvironmentManifest) { m.TrainedAgents = []string{"judge"} }),

		artefacts("splits[1].data", func(m *EnvironmentManifest) { m.Splits[1].Data = "other.jsonl" }),
		artefacts("artefacts", func(m *EnvironmentManifest) { m.Artefacts = append(m.Artefacts, make([]Artefact, MaxArtefacts)...) }),
		artefacts("artefacts[0].name", func(m *EnvironmentManifest) { m.Artefacts[0].Name = "../maze.wasm" }),
		artefacts("artefacts[0].name", func(m *EnvironmentManifest) { m.Artefacts[0].Name = ".wasm" }),
		artefacts("artefacts[0].name", func(m *EnvironmentManifest) { m.Artefacts[0].Name = "" }),
		artefacts("artefacts[1].name", func(m *EnvironmentManifest) { m.Artefacts[0].Name = m.Artefacts[1].Name }),
		artefacts("artefacts[1].name", func(m *EnvironmentManifest) { m.Artefacts[0].Name = strings.ToUpper(m.Artefacts[1].Name) }),
		artefacts("artefacts[0].blocks", func(m *EnvironmentManifest) { m.Artefacts[0].Blocks = nil }),
		artefacts("artefacts' blocks", func(m *EnvironmentManifest) { m.Artefacts[0].Blocks = make([]BlockRef, MaxArtefactBlocks+1) }),
		artefacts("artefacts[0].blocks[1].cid", func(m *EnvironmentManifest) { m.Artefacts[0].Blocks[1].CID = CID{} }),
		artefacts("artefacts[0].blocks[1].bytes", func(m *EnvironmentManifest) { m.Artefacts[0].Blocks[1].Bytes = MaxBlockBytes + 1 }),
		artefacts("limits.memory_bytes", func(m *EnvironmentManifest) { m.Limits.MemoryBytes = MaxEpisodeMemory + 1 }),
		artefacts("limits.steps", func(m *EnvironmentManifest) { m.Limits.Steps = MaxEpisodeSteps + 1 }),

		pack("name", func(p *EnvironmentPackage) { p.Name = "" }),
		pack("name", func(p *EnvironmentPackage) { p.Name = "Maze" }),
		pack("name", func(p *EnvironmentPackage) { p.Name = "maze--3d" }),
		pack("name", func(p *EnvironmentPackage) { p.Name = strings.Repeat("a", MaxNameBytes+1) }),
		pack("version", func(p *EnvironmentPackage) { p.Version = "1.0" }),
		pack("version", func(p *EnvironmentPackage) { p.Version = "1.0.0-" }),
		pack("version", func(p *EnvironmentPackage) { p.Version = "1.00.0" }),
		pack("version", func(p *EnvironmentPackage) { p.Version = "1.0.0-" + strings.Repeat("a", MaxVersionBytes) }),
		pack("manifest_cid", func(p *EnvironmentPackage) { p.Manifest = CID{} }),
		pack("created_unix_ms", func(p *EnvironmentPackage) { p.Created = time.Time{} }),

		policy("config_json", func(m *PolicyManifest) { m.ConfigJSON = nil }),
		policy("tokenizer_cid", func(m *PolicyManifest) { m.Tokenizer = CID{} }),
		policy("template", func(m *PolicyManifest) { m.Template = "" }),
		policy("generation_json", func(m *PolicyManifest) { m.GenerationJSON = make([]byte, MaxConfigBytes+1) }),
		policy("tensors", func(m *PolicyManifest) { m.Tensors = nil }),
		policy("tensors", func(m *PolicyManifest) { m.Tensors = make([]TensorRef, MaxTensors+1) }),
		policy("tensors[1].name", func(m *PolicyManifest) { m.Tensors[1].Name = m.Tensors[0].Name }),
		policy("tensors[1].dtype", func(m *PolicyManifest) { m.Tensors[1].DType = "F16" }),
		policy("tensors[1].shape", func(m *PolicyManifest) { m.Tensors[1].Shape = []uint64{0} }),
		policy("tensors[1].shape", func(m *PolicyManifest) { m.Tensors[1].Shape = []uint64{1 << 32, 1 << 32} }),
		policy("tensors[1].shape", func(m *PolicyManifest) { m.Tensors[1].Shape = make([]uint64, MaxTensorRank+1) }),
		policy("tensors[1].digest", func(m *PolicyManifest) { m.Tensors[1].Digest = [32]byte{} }),
		policy("blocks", func(m *PolicyManifest) { m.Blocks = nil }),
		policy("blocks", func(m *PolicyManifest) { m.Blocks = make([]BlockRef, MaxPolicyBlocks+1) }),
		policy("blocks[1].cid", func(m *PolicyManifest) { m.Blocks[1].CID = CID{} }),
		policy("blocks[1].bytes", func(m *PolicyManifest) { m.Blocks[1].Bytes = MaxBlockBytes + 1 }),
		policy("state_digest", func(m *PolicyManifest) { m.StateDigest = [32]byte{} }),

		{"cids", BlockRequest{}.Validate()},
		{"cids", BlockRequest{CIDs: make([]CID, 1)}.Validate()},
		{"cids", BlockRequest{CIDs: make([]CID, MaxBlockRequestCIDs+1)}.Validate()},
		{"index", BlockHeader{Index: MaxBlockRequestCIDs}.Validate()},
		{"bytes", BlockHeader{Found: true, Bytes: MaxBlockBytes + 1}.Validate()},
		{"bytes", BlockHeader{Bytes: 1}.Validate()},
		{"network", HeadRequest{}.Validate()},
		{"max_releases", HeadRequest{Network: SumCID(nil), MaxReleases: MaxHeadReleases + 1}.Validate()},
		{"max_announcements", HeadRequest{Network: SumCID(nil), MaxAnnouncements: MaxHeadAnnouncements + 1}.Validate()},
		{"cursors", HeadRequest{Network: SumCID(nil), Cursors: make([]Cursor, 1)}.Validate()},
		{"cursors", HeadRequest{Network: SumCID(nil), Cursors: make([]Cursor, MaxHeadCursors+1)}.Validate()},
		{"releases", HeadResponse{Releases: make([][]byte, 1)}.Validate()},
		{"releases", HeadResponse{Releases: make([][]byte, MaxHeadReleases+1)}.Validate()},
		{"announcements", HeadResponse{Announcements: [][]byte{make([]byte, MaxGossipBytes+1)}}.Validate()},
		{"network", PeersRequest{}.Validate()},
		{"max_peers", PeersRequest{Network: SumCID(nil), MaxPeers: MaxPeerRecords + 1}.Validate()},
		{"records", PeersResponse{Records: make([][]byte, MaxPeerRecords+1)}.Validate()},
		{"network", PackagesRequest{}.Validate()},
		{"max_packages", PackagesRequest{Network: SumCID(nil), MaxPackages: MaxPackageRecords + 1}.Validate()},
		{"packages", PackagesResponse{Packages: make([][]byte, MaxPackageRecords+1)}.Validate()},
		{"packages", PackagesResponse{Packages: [][]byte{make([]byte, MaxGossipBytes+1)}}.Validate()},
	} {
		t.Run(fmt.Sprint(i, " ", d.field), func(t *testing.T) {
			var invalid *ValidationError
			if !errors.As(d.err, &invalid) || invalid.Field != d.field {
				t.Errorf("the error is %v, want one about %s", d.err, d.field)
			}
			if !errors.Is(d.err, ErrMalformed) {
				t.Error("it is no ErrMalformed")
			}
		})
	}
}

// TestInvalidMessagesAreNotSigned makes sure that nobody signs what others refuse.
func TestInvalidMessagesAreNotSigned(t *testing.T) {
	k := testKey('a')
	if _, err := SignCharter(k, Charter{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := SignRelease(k, Release{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := SignAnnouncement(k, Announcement{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := SignPresence(k, Presence{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := SignEnvironmentPackage(k, EnvironmentPackage{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := EncodeManifest(EnvironmentManifest{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := EncodePolicyManifest(PolicyManifest{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}
