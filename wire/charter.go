package wire

import (
	"fmt"
	"time"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// Charter founds a network: its learners, environments, first policy and rules.
type Charter struct {
	Name string
	// Created has millisecond precision; SignCharter cuts the rest off.
	Created time.Time
	// Nonce makes two networks of the same rules and instant distinct; 16 random bytes are plenty.
	Nonce []byte
	// Learners are the peers that may sign releases; at least one.
	Learners     []PeerID
	Environments []EnvironmentRef
	// Base is version 0 of the release chain.
	Base       PolicyRef
	Rollout    RolloutRules
	Evaluation EvaluationRules
}

// EnvironmentRef names an environment that a network trains on.
type EnvironmentRef struct {
	Manifest CID
	Name     string
	// Weight is the environment's share of task draws relative to the others', at least 1.
	Weight uint32
	// TrainTasks and ValidationTasks are the manifest's split sizes, so that a draw can be checked without it.
	TrainTasks      uint64
	ValidationTasks uint64
}

// PolicyRef names a policy and where to get it.
type PolicyRef struct {
	// Digest identifies model, tokenizer, chat template and generation config together.
	Digest [32]byte
	// StateDigest identifies the weights alone.
	StateDigest [32]byte
	// Anchor is the policy manifest's block.
	Anchor CID
}

// RolloutRules are the same for every rollout that a network accepts.
type RolloutRules struct {
	// GroupSize is how many rollouts of one task are compared with one another, at least 2.
	GroupSize           uint32
	MaxCalls            uint32
	MaxCompletionTokens uint32
	Sampling            Sampling
	// MaxLag is the largest lag, in versions at consumption, that is trained on.
	MaxLag uint32
	// GroupsPerVersion is how many groups a node runs under one version before it waits for the next, until a
	// release says otherwise; at least 1.
	GroupsPerVersion uint32
}

// EvaluationRules say which held-out tasks measure a release.
type EvaluationRules struct {
	// Tasks is how many tasks of each environment's validation split, from index 0 on; 0 turns evaluation off.
	Tasks uint32
	// BlockTasks is how many of them one evaluation bundle holds; the last block may hold fewer.
	BlockTasks uint32
}

// SignedCharter is a charter whose signature was verified. The signer founded the network.
type SignedCharter struct {
	Charter
	// ID is the CID of Raw: the network id.
	ID     CID
	Signer PeerID
	// Raw is the encoded Signed message; callers do not change it.
	Raw []byte
}

// Validate returns a *ValidationError that names the first field at fault.
func (c Charter) Validate() error {
	r := check("charter")
	r.name("name", c.Name, MaxNameBytes)
	r.instant("created_unix_ms", c.Created)
	r.require(len(c.Nonce) <= MaxNonceBytes, "nonce", "is too long")
	r.require(len(c.Learners) > 0, "learners", "must name at least one peer")
	r.atMost("learners", len(c.Learners), MaxLearners)
	learners := make(map[PeerID]bool)
	for _, p := range c.Learners {
		_, err := ParsePeerID([]byte(p))
		r.require(err == nil, "learners", "must be peer ids with an ed25519 key inside")
		r.require(!learners[p], "learners", "must name each peer once")
		learners[p] = true
	}
	r.require(len(c.Environments) > 0, "environments", "must name at least one environment")
	r.atMost("environments", len(c.Environments), MaxEnvironments)
	manifests := make(map[CID]bool)
	for i, e := range c.Environments {
		field := fmt.Sprintf("environments[%d]", i)
		e.validate(r, field, c.Evaluation)
		r.require(!manifests[e.Manifest], field+".manifest_cid", "must differ from the other environments'")
		manifests[e.Manifest] = true
	}
	c.Base.validate(r, "base")
	c.Rollout.validate(r)
	r.between("evaluation.tasks", uint64(c.Evaluation.Tasks), 0, MaxEvaluationTasks)
	if c.Evaluation.Tasks > 0 {
		r.between("evaluation.block_tasks", uint64(c.Evaluation.BlockTasks), 1, MaxRolloutsPerBundle)
	}
	return r.err
}

func (e EnvironmentRef) validate(r *rules, field string, evaluation EvaluationRules) {
	r.definedCID(field+".manifest_cid", e.Manifest)
	r.name(field+".name", e.Name, MaxNameBytes)
	r.between(field+".weight", uint64(e.Weight), 1, MaxEnvironmentWeight)
	r.between(field+".train_tasks", e.TrainTasks, 1, MaxSplitTasks)
	r.between(field+".validation_tasks", e.ValidationTasks, 0, MaxSplitTasks)
	r.require(e.ValidationTasks >= uint64(evaluation.Tasks), field+".validation_tasks",
		"must be at least evaluation.tasks")
}

func (p PolicyRef) validate(r *rules, field string) {
	r.setDigest(field+".digest", p.Digest)
	r.setDigest(field+".state_digest", p.StateDigest)
	r.definedCID(field+".anchor_cid", p.Anchor)
}

func (u RolloutRules) validate(r *rules) {
	r.between("rollout.group_size", uint64(u.GroupSize), 2, MaxRolloutsPerBundle)
	r.between("rollout.max_calls", uint64(u.MaxCalls), 1, MaxCallsPerRollout)
	r.between("rollout.max_completion_tokens", uint64(u.MaxCompletionTokens), 1, MaxTokensPerCall)
	if err := u.Sampling.Validate(); err != nil {
		invalid := err.(*ValidationError)
		r.fail("rollout.sampling."+invalid.Field, invalid.Why)
	}
	r.between("rollout.max_lag", uint64(u.MaxLag), 0, MaxLag)
	r.between("rollout.groups_per_version", uint64(u.GroupsPerVersion), 1, MaxGroupsPerVersion)
}

// SignCharter validates c and signs it. The result is exactly what OpenCharter returns for its bytes.
func SignCharter(k Key, c Charter) (SignedCharter, error) {
	if err := c.Validate(); err != nil {
		return SignedCharter{}, err
	}
	payload, err := marshal("charter", MaxCharterBytes, c.proto())
	if err != nil {
		return SignedCharter{}, err
	}
	raw, err := Sign(k, DomainCharter, payload)
	if err != nil {
		return SignedCharter{}, err
	}
	return OpenCharter(raw)
}

// OpenCharter verifies, decodes and validates a signed charter. It copies raw.
func OpenCharter(raw []byte) (SignedCharter, error) {
	payload, signer, err := Open(DomainCharter, raw)
	if err != nil {
		return SignedCharter{}, err
	}
	c, err := decodeCharter(payload)
	if err != nil {
		return SignedCharter{}, err
	}
	return SignedCharter{Charter: c, ID: SumCID(raw), Signer: signer, Raw: append([]byte(nil), raw...)}, nil
}

func (c Charter) proto() *wirepb.Charter {
	m := &wirepb.Charter{
		Major:         Major,
		Name:          c.Name,
		CreatedUnixMs: c.Created.UnixMilli(),
		Nonce:         c.Nonce,
		Base:          c.Base.proto(),
		Rollout: &wirepb.RolloutRules{
			GroupSize:           c.Rollout.GroupSize,
			MaxCalls:            c.Rollout.MaxCalls,
			MaxCompletionTokens: c.Rollout.MaxCompletionTokens,
			Sampling: &wirepb.Sampling{
				Temperature: c.Rollout.Sampling.Temperature,
				TopK:        c.Rollout.Sampling.TopK,
				TopP:        c.Rollout.Sampling.TopP,
			},
			MaxLag:           c.Rollout.MaxLag,
			GroupsPerVersion: c.Rollout.GroupsPerVersion,
		},
		Evaluation: &wirepb.EvaluationRules{Tasks: c.Evaluation.Tasks, BlockTasks: c.Evaluation.BlockTasks},
	}
	for _, p := range c.Learners {
		m.Learners = append(m.Learners, []byte(p))
	}
	for _, e := range c.Environments {
		m.Environments = append(m.Environments, &wirepb.EnvironmentRef{
			ManifestCid:     e.Manifest.Bytes(),
			Name:            e.Name,
			Weight:          e.Weight,
			TrainTasks:      e.TrainTasks,
			ValidationTasks: e.ValidationTasks,
		})
	}
	return m
}

func decodeCharter(payload []byte) (Charter, error) {
	var m wirepb.Charter
	if err := unmarshal("charter", MaxCharterBytes, payload, &m); err != nil {
		return Charter{}, err
	}
	if err := checkMajor("charter", m.Major); err != nil {
		return Charter{}, err
	}
	f := &fields{message: "charter"}
	c := Charter{
		Name:    m.Name,
		Created: fromMillis(m.CreatedUnixMs),
		Nonce:   append([]byte(nil), m.Nonce...), // none and empty are the same
		Base:    f.policyRef("base", m.Base),
		Rollout: RolloutRules{
			GroupSize:           m.GetRollout().GetGroupSize(),
			MaxCalls:            m.GetRollout().GetMaxCalls(),
			MaxCompletionTokens: m.GetRollout().GetMaxCompletionTokens(),
			Sampling: Sampling{
				Temperature: m.GetRollout().GetSampling().GetTemperature(),
				TopK:        m.GetRollout().GetSampling().GetTopK(),
				TopP:        m.GetRollout().GetSampling().GetTopP(),
			},
			MaxLag:           m.GetRollout().GetMaxLag(),
			GroupsPerVersion: m.GetRollout().GetGroupsPerVersion(),
		},
		Evaluation: EvaluationRules{
			Tasks:      m.GetEvaluation().GetTasks(),
			BlockTasks: m.GetEvaluation().GetBlockTasks(),
		},
	}
	for _, p := range m.Learners {
		c.Learners = append(c.Learners, f.peer("learners", p))
	}
	for i, e := range m.Environments {
		c.Environments = append(c.Environments, EnvironmentRef{
			Manifest:        f.cid(fmt.Sprintf("environments[%d].manifest_cid", i), e.ManifestCid),
			Name:            e.Name,
			Weight:          e.Weight,
			TrainTasks:      e.TrainTasks,
			ValidationTasks: e.ValidationTasks,
		})
	}
	if f.err != nil {
		return Charter{}, f.err
	}
	return c, c.Validate()
}

func (p PolicyRef) proto() *wirepb.PolicyRef {
	return &wirepb.PolicyRef{
		Digest:      digestBytes(p.Digest),
		StateDigest: digestBytes(p.StateDigest),
		AnchorCid:   p.Anchor.Bytes(),
	}
}

func (f *fields) policyRef(field string, m *wirepb.PolicyRef) PolicyRef {
	return PolicyRef{
		Digest:      f.digest(field+".digest", m.GetDigest()),
		StateDigest: f.digest(field+".state_digest", m.GetStateDigest()),
		Anchor:      f.cid(field+".anchor_cid", m.GetAnchorCid()),
	}
}
