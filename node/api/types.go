package api

import "time"

// Status is one node at a glance.
type Status struct {
	// Version is the program's.
	Version string    `json:"version"`
	Peer    string    `json:"peer"`
	Roles   []string  `json:"roles"`
	Started time.Time `json:"started"`
	// Phase says what the node does or waits for, in words.
	Phase   string  `json:"phase"`
	Network Network `json:"network"`
	// Head is the newest release that the node knows; absent before the first.
	Head *Release `json:"head,omitempty"`
	// Policy is the release whose policy the node runs; absent before the first is ready.
	Policy *Release `json:"policy,omitempty"`
	// Fetching is the release whose policy the node downloads now.
	Fetching *Release `json:"fetching,omitempty"`
	// Addresses are where others may reach the node, each ending in /p2p/ and its peer id.
	Addresses []string `json:"addresses"`
	// Connected counts connected members.
	Connected int `json:"connected"`
	// Join is a command that makes another machine a rollout node of the same network.
	Join string `json:"join"`

	// NextSequence is how many announcements the node made.
	NextSequence uint64         `json:"next_sequence"`
	Store        StoreStatus    `json:"store"`
	Rollout      *RolloutStatus `json:"rollout,omitempty"`
	Learner      *LearnerStatus `json:"learner,omitempty"`
}

// Network is a network's charter in short.
type Network struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Learners     []string `json:"learners"`
	Environments []string `json:"environments"`
	GroupSize    int      `json:"group_size"`
	MaxLag       int      `json:"max_lag"`
}

// Release is a policy version.
type Release struct {
	Version uint64 `json:"version"`
	// ID is the CID of the signed release.
	ID string `json:"id"`
	// Policy is the policy's digest in hexadecimal, Manifest the CID of the block that lists its blocks.
	Policy   string    `json:"policy"`
	Manifest string    `json:"manifest"`
	Created  time.Time `json:"created"`
	// GroupsTrained is how many groups the chain was trained on up to this version.
	GroupsTrained uint64 `json:"groups_trained"`
	Evaluate      bool   `json:"evaluate"`
	// Final says that training has ended.
	Final bool `json:"final"`
}

// StoreStatus is the room that blocks take up.
type StoreStatus struct {
	BlockBytes    int64 `json:"block_bytes"`
	MaxBlockBytes int64 `json:"max_block_bytes"`
}

// RolloutStatus is what a rollout node did since it started.
type RolloutStatus struct {
	Activity string    `json:"activity"`
	Since    time.Time `json:"since"`
	// Running counts the groups and evaluation blocks in flight.
	Running int `json:"running"`
	Total   Run `json:"total"`
	// Agent is the program, or the runners, that play the rollouts; absent where the built-in agent does.
	Agent *AgentStatus `json:"agent,omitempty"`
}

// AgentStatus is a program that plays rollouts, or runners of Agent Lightning that do.
type AgentStatus struct {
	// Command is how the program is started.
	Command string `json:"command,omitempty"`
	// Lightning is where runners connect to.
	Lightning string `json:"lightning,omitempty"`
	// Running counts the program's processes now, Started those since the node started: one a rollout. Of runners they are
	// the rollouts that they play, and the attempts; Waiting counts the rollouts that wait for one.
	Running int    `json:"running"`
	Started uint64 `json:"started"`
	Waiting int    `json:"waiting,omitempty"`
}

// Run is what a node ran and announced, under one policy version or in all.
type Run struct {
	Version uint64 `json:"version"`
	// Groups are training groups, Blocks evaluation blocks.
	Groups   uint64 `json:"groups"`
	Blocks   uint64 `json:"blocks"`
	Rollouts uint64 `json:"rollouts"`
	Calls    uint64 `json:"calls"`
	// PromptTokens counts each call's whole prompt; CompletionTokens what the policy sampled.
	PromptTokens     uint64 `json:"prompt_tokens"`
	CompletionTokens uint64 `json:"completion_tokens"`
	// Outcomes counts rollouts by outcome: scored, truncated, agent_error, env_error, timeout.
	Outcomes map[string]uint64 `json:"outcomes"`
	// Rewards is the mean reward of scored and truncated rollouts by purpose; a purpose without any is absent.
	Rewards map[string]float64 `json:"rewards"`
}

// LearnerStatus is what a learner did.
type LearnerStatus struct {
	// Version is the newest that the learner made.
	Version uint64 `json:"version"`
	// Queued announcements wait for their fetch, Fetching bundles are on their way to the store, Waiting groups to be
	// trained on. A step takes Batch of them, or, where Most is larger, goes on up to Most until Batch of them teach
	// something; Teaching of those that wait do, and it is 0 where no step asks.
	Queued   int `json:"queued"`
	Fetching int `json:"fetching"`
	Waiting  int `json:"waiting"`
	Teaching int `json:"teaching"`
	Batch    int `json:"batch"`
	Most     int `json:"most"`
	// Training says that a step is under way, which makes the next version.
	Training bool `json:"training"`
	// StepDue is when the next step begins with the groups that wait then, if none comes before; absent while none waits.
	StepDue time.Time `json:"step_due,omitzero"`
	// GroupsTrained and TokensTrained count what the chain has learned from.
	GroupsTrained uint64 `json:"groups_trained"`
	TokensTrained uint64 `json:"tokens_trained"`
	// Reasons counts what became of bundles since the chain began: "accepted", or why one was refused or not used.
	Reasons map[string]uint64 `json:"reasons"`
	// RolloutsAccepted and RolloutsRefused count the rollouts of training bundles since the node started.
	RolloutsAccepted uint64            `json:"rollouts_accepted"`
	RolloutsRefused  map[string]uint64 `json:"rollouts_refused"`
	Evaluations      []Evaluation      `json:"evaluations"`
	// Alerts are those that stand, the oldest first.
	Alerts []Alert `json:"alerts"`
	// Finished says that the last version is out and its evaluation is complete or given up.
	Finished bool `json:"finished"`
}

// Alert says that something goes wrong in a learner's training. Package learner/watch defines the kinds.
type Alert struct {
	Kind string `json:"kind"`
	// Since is the version with which it was raised.
	Since uint64 `json:"since"`
	// Message says what was seen then, Advice what to do about it.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Evaluation is one version measured on held-out tasks.
type Evaluation struct {
	Version uint64 `json:"version"`
	// Purpose is that of the bundles: sampled or greedy evaluation.
	Purpose string `json:"purpose"`
	// Tasks have a result, of Expected.
	Tasks    int  `json:"tasks"`
	Expected int  `json:"expected"`
	Complete bool `json:"complete"`
	// Success is the share of the tasks that were solved, within Low and High with 95% confidence (Wilson).
	Success float64 `json:"success"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	// RewardMean is the mean reward.
	RewardMean float64 `json:"reward_mean"`
}

// Peer is a connected peer.
type Peer struct {
	ID string `json:"id"`
	// Address is that of the oldest connection; Inbound says that the peer dialled it, Limited that it runs through a
	// relay and carries control traffic only.
	Address string    `json:"address"`
	Inbound bool      `json:"inbound"`
	Limited bool      `json:"limited"`
	Since   time.Time `json:"since"`
	// Member says that the peer has shown to be of this network, Learner that the charter lets it sign releases.
	Member  bool `json:"member"`
	Learner bool `json:"learner"`
	// HeadVersion is the newest version that the peer said it knows.
	HeadVersion uint64 `json:"head_version"`
	// Roles, NextSequence and AgentVersion are what it last said of itself, at LastPresence; absent before.
	Roles        []string  `json:"roles,omitempty"`
	NextSequence uint64    `json:"next_sequence,omitzero"`
	AgentVersion string    `json:"agent_version,omitempty"`
	LastPresence time.Time `json:"last_presence,omitzero"`
	// RoundTripMS is a moving average of round trips in milliseconds; absent if none was measured.
	RoundTripMS float64 `json:"round_trip_ms,omitzero"`
	// Score is the gossip score.
	Score float64 `json:"score"`
}

// LedgerEntry says what a version was made from.
type LedgerEntry struct {
	Version uint64 `json:"version"`
	// Release is the CID of the version's signed release, Parent that of the version before; empty for version 0.
	Release string `json:"release"`
	Parent  string `json:"parent"`
	// Policy is the policy's digest in hexadecimal, Manifest the CID of the block that lists its blocks.
	Policy   string `json:"policy"`
	Manifest string `json:"manifest"`
	// Trained are the CIDs of the groups that the step used up: trained on, or dropped because they were too old or nothing
	// was to be learned from them. Evaluated are those of the evaluation blocks that were counted meanwhile, which are never trained on.
	Trained   []string `json:"trained"`
	Evaluated []string `json:"evaluated"`
}

// Environment is an environment package that somebody keeps, as its author's statement says.
type Environment struct {
	// CID is that of the manifest: it identifies the environment.
	CID     string `json:"cid"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Author is the peer that signed, Reference the package as people write it: author/name@version.
	Author    string    `json:"author"`
	Reference string    `json:"reference"`
	Signed    time.Time `json:"signed"`
	// Statement is what the author signed: an encoded wire.SignedEnvironmentPackage.
	Statement []byte `json:"statement"`
	// Kept says that this node keeps the package; Holders are the connected members that do.
	Kept    bool     `json:"kept"`
	Holders []string `json:"holders"`
}

// Error is the answer to a request that is refused.
type Error struct {
	// Code is stable: bad_request, unauthorized, forbidden_host, not_found, conflict, too_large, busy, full, timeout or
	// internal.
	Code string `json:"code"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }
