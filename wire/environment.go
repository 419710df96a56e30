package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// EnvironmentManifest describes an environment package. The CID of its encoding identifies the environment.
type EnvironmentManifest struct {
	Name        string
	Version     string
	Description string
	Licence     string
	// Kind names the driver that runs it, such as "builtin".
	Kind string
	// Entry is what the driver runs; for "builtin" the registered name, for "wasm" the artefact with the module, for "exec" the program, for "openenv" the artefact that says how it is met.
	Entry  string
	Splits []Split
	// RewardMin and RewardMax bound every reward, inclusive.
	RewardMin, RewardMax float32
	Determinism          Determinism
	// Agents are the roles whose calls a rollout records; TrainedAgents are those of them that are trained.
	Agents, TrainedAgents []string
	// ToolRewards reward calls for what came of the tools that they called (automatic intermediate rewarding). Of those
	// that fit an outcome the first counts. The sum of a rollout's rewards stays within RewardMin and RewardMax.
	ToolRewards []ToolReward
	// AgentRewards says which of the rewards that agents report themselves count.
	AgentRewards AgentRewards
	// Artefacts are the files that the driver needs; none for "builtin".
	Artefacts []Artefact
	// Limits bound one episode; zero where the driver has none.
	Limits EpisodeLimits
}

// ToolReward rewards a call for each execution of a tool that it called.
type ToolReward struct {
	// Tool names the tool; empty stands for every tool.
	Tool   string
	Status ToolStatus
	Reward float32
}

// ToolStatus says how the execution of a tool ended.
type ToolStatus uint8

// The ends of a tool's execution.
const (
	ToolOK     ToolStatus = 1
	ToolFailed ToolStatus = 2
)

// AgentRewards is a set of rewards that agents report: by posting them or in their telemetry.
type AgentRewards uint8

// The rewards that agents report.
const (
	AgentRewardFinal AgentRewards = 1 // of the rollout, in place of the environment's
	AgentRewardCalls AgentRewards = 2 // of single calls
)

// Split is a numbered set of tasks: indices 0 to Tasks-1.
type Split struct {
	Name  string
	Tasks uint64
	// Data is the artefact that holds the tasks, one JSON value a line; empty when the environment makes them.
	Data string
}

// Artefact is a file of an environment package. Its content is that of its blocks, in order.
type Artefact struct {
	Name   string
	Blocks []BlockRef
}

// Bytes is the artefact's length.
func (a Artefact) Bytes() uint64 {
	var n uint64
	for _, b := range a.Blocks {
		n += uint64(b.Bytes)
	}
	return n
}

// EpisodeLimits bound what one episode may use; how they are counted is the driver's definition.
type EpisodeLimits struct {
	MemoryBytes uint64
	// Steps bound each request to the environment: its start, a tool call, the scoring. For "exec" and "openenv" they are milliseconds.
	Steps uint64
}

// Determinism says what a repetition of a task gives.
type Determinism uint8

// The kinds of determinism.
const (
	DeterminismExact      Determinism = 1 // same task and actions, same bytes
	DeterminismStochastic Determinism = 2
)

// Tasks returns the number of tasks of a split, 0 when there is no such split.
func (m EnvironmentManifest) Tasks(split string) uint64 {
	for _, s := range m.Splits {
		if s.Name == split {
			return s.Tasks
		}
	}
	return 0
}

// Artefact returns the artefact of a name.
func (m EnvironmentManifest) Artefact(name string) (a Artefact, ok bool) {
	i := slices.IndexFunc(m.Artefacts, func(a Artefact) bool { return a.Name == name })
	if i < 0 {
		return Artefact{}, false
	}
	return m.Artefacts[i], true
}

// Validate returns a *ValidationError that names the first field at fault.
func (m EnvironmentManifest) Validate() error {
	r := check("environment manifest")
	r.name("name", m.Name, MaxNameBytes)
	r.text("version", m.Version, MaxVersionBytes)
	r.text("description", m.Description, MaxDescriptionBytes)
	r.text("licence", m.Licence, MaxNameBytes)
	r.name("kind", m.Kind, MaxNameBytes)
	r.text("entry", m.Entry, MaxDescriptionBytes)
	r.require(len(m.Splits) > 0, "splits", "must have at least one split")
	r.atMost("splits", len(m.Splits), MaxSplits)
	splits := make(map[string]bool)
	for i, s := range m.Splits {
		field := fmt.Sprintf("splits[%d]", i)
		r.name(field+".name", s.Name, MaxNameBytes)
		r.require(!splits[s.Name], field+".name", "must differ from the other splits'")
		splits[s.Name] = true
		r.between(field+".tasks", s.Tasks, 1, MaxSplitTasks)
		_, there := m.Artefact(s.Data)
		r.require(s.Data == "" || there, field+".data", "must be among artefacts")
	}
	r.require(finite(m.RewardMin) && finite(m.RewardMax) && m.RewardMin < m.RewardMax,
		"reward_max", "must be above reward_min, and both finite")
	r.require(m.Determinism == DeterminismExact || m.Determinism == DeterminismStochastic,
		"determinism", "must be exact or stochastic")
	r.require(len(m.Agents) > 0, "agents", "must name at least one agent")
	r.agents("agents", m.Agents)
	r.agents("trained_agents", m.TrainedAgents)
	for _, a := range m.TrainedAgents {
		r.require(slices.Contains(m.Agents, a), "trained_agents", "must all be among agents")
	}
	r.atMost("tool_rewards", len(m.ToolRewards), MaxToolRewards)
	if r.err != nil {
		return r.err
	}
	for i, t := range m.ToolRewards {
		field := fmt.Sprintf("tool_rewards[%d]", i)
		r.text(field+".tool", t.Tool, MaxNameBytes)
		r.require(t.Status == ToolOK || t.Status == ToolFailed, field+".status", "must be ok or failed")
		r.require(t.Reward >= m.RewardMin && t.Reward <= m.RewardMax, field+".reward", "must be between reward_min and reward_max")
	}
	r.require(m.AgentRewards <= AgentRewardFinal|AgentRewardCalls, "agent_rewards", "is unknown to this version of lightswarm")
	r.artefacts(m.Artefacts)
	r.between("limits.memory_bytes", m.Limits.MemoryBytes, 0, MaxEpisodeMemory)
	r.between("limits.steps", m.Limits.Steps, 0, MaxEpisodeSteps)
	return r.err
}

func (r *rules) artefacts(list []Artefact) {
	r.atMost("artefacts", len(list), MaxArtefacts)
	names := make(map[string]bool)
	blocks := 0
	for i, a := range list {
		field := fmt.Sprintf("artefacts[%d]", i)
		r.require(fileName(a.Name), field+".name", "must be letters, digits, dots, - and _, and not start with a dot")
		r.text(field+".name", a.Name, MaxNameBytes)
		// Names that differ in capital letters alone are one file on some systems.
		r.require(!names[strings.ToLower(a.Name)], field+".name", "must differ from the other artefacts', in more than capital letters")
		names[strings.ToLower(a.Name)] = true
		r.require(len(a.Blocks) > 0, field+".blocks", "must not be empty")
		blocks += len(a.Blocks)
		r.atMost("artefacts' blocks", blocks, MaxArtefactBlocks)
		for j, b := range a.Blocks {
			if r.err != nil {
				return
			}
			field := fmt.Sprintf("%s.blocks[%d]", field, j)
			r.definedCID(field+".cid", b.CID)
			r.between(field+".bytes", uint64(b.Bytes), 1, MaxBlockBytes)
		}
	}
}

// fileName accepts names that are a file's on every system.
func fileName(s string) bool {
	return s != "" && s[0] != '.' && !strings.ContainsFunc(s, func(c rune) bool {
		allowed := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
		return !allowed
	})
}

func (r *rules) agents(field string, names []string) {
	r.atMost(field, len(names), MaxAgents)
	if r.err != nil {
		return
	}
	for i, name := range names {
		r.name(field, name, MaxAgentName)
		r.require(!slices.Contains(names[:i], name), field, "must name each agent once")
	}
}

// EncodeManifest validates m and returns its deterministic encoding; SumCID of it identifies the environment.
func EncodeManifest(m EnvironmentManifest) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	p := &wirepb.EnvironmentManifest{
		Major:         Major,
		Name:          m.Name,
		Version:       m.Version,
		Description:   m.Description,
		Licence:       m.Licence,
		Kind:          m.Kind,
		Entry:         m.Entry,
		RewardMin:     m.RewardMin,
		RewardMax:     m.RewardMax,
		Determinism:   wirepb.Determinism(m.Determinism),
		Agents:        m.Agents,
		TrainedAgents: m.TrainedAgents,
		AgentRewards:  wirepb.AgentRewards(m.AgentRewards),
	}
	for _, t := range m.ToolRewards {
		p.ToolRewards = append(p.ToolRewards, &wirepb.ToolReward{Tool: t.Tool, Status: wirepb.ToolStatus(t.Status), Reward: t.Reward})
	}
	for _, s := range m.Splits {
		p.Splits = append(p.Splits, &wirepb.Split{Name: s.Name, Tasks: s.Tasks, Data: s.Data})
	}
	for _, a := range m.Artefacts {
		artefact := &wirepb.Artefact{Name: a.Name}
		for _, b := range a.Blocks {
			artefact.Blocks = append(artefact.Blocks, &wirepb.BlockRef{Cid: b.CID.Bytes(), Bytes: b.Bytes})
		}
		p.Artefacts = append(p.Artefacts, artefact)
	}
	if m.Limits != (EpisodeLimits{}) {
		p.Limits = &wirepb.EpisodeLimits{MemoryBytes: m.Limits.MemoryBytes, Steps: m.Limits.Steps}
	}
	return marshal("environment manifest", MaxManifestBytes, p)
}

// DecodeManifest decodes and validates an environment manifest.
func DecodeManifest(raw []byte) (EnvironmentManifest, error) {
	var p wirepb.EnvironmentManifest
	if err := unmarshal("environment manifest", MaxManifestBytes, raw, &p); err != nil {
		return EnvironmentManifest{}, err
	}
	if err := checkMajor("environment manifest", p.Major); err != nil {
		return EnvironmentManifest{}, err
	}
	if p.Determinism < 0 || p.Determinism > wirepb.Determinism_DETERMINISM_STOCHASTIC {
		return EnvironmentManifest{}, &ValidationError{"environment manifest", "determinism", "must be exact or stochastic"}
	}
	if p.AgentRewards < 0 || p.AgentRewards > wirepb.AgentRewards_AGENT_REWARDS_ALL {
		return EnvironmentManifest{}, &ValidationError{"environment manifest", "agent_rewards", "is unknown to this version of lightswarm"}
	}
	m := EnvironmentManifest{
		Name:          p.Name,
		Version:       p.Version,
		Description:   p.Description,
		Licence:       p.Licence,
		Kind:          p.Kind,
		Entry:         p.Entry,
		RewardMin:     p.RewardMin,
		RewardMax:     p.RewardMax,
		Determinism:   Determinism(p.Determinism),
		Agents:        p.Agents,
		TrainedAgents: p.TrainedAgents,
		AgentRewards:  AgentRewards(p.AgentRewards),
	}
	for _, t := range p.ToolRewards {
		rule := ToolReward{Tool: t.Tool, Reward: t.Reward}
		if t.Status == wirepb.ToolStatus_TOOL_STATUS_OK || t.Status == wirepb.ToolStatus_TOOL_STATUS_FAILED {
			rule.Status = ToolStatus(t.Status) // else it fails validation
		}
		m.ToolRewards = append(m.ToolRewards, rule)
	}
	for _, s := range p.Splits {
		m.Splits = append(m.Splits, Split{Name: s.Name, Tasks: s.Tasks, Data: s.Data})
	}
	r := check("environment manifest")
	for i, a := range p.Artefacts {
		artefact := Artefact{Name: a.Name}
		for j, b := range a.Blocks {
			cid := r.cid(fmt.Sprintf("artefacts[%d].blocks[%d].cid", i, j), b.Cid)
			artefact.Blocks = append(artefact.Blocks, BlockRef{CID: cid, Bytes: b.Bytes})
		}
		m.Artefacts = append(m.Artefacts, artefact)
	}
	m.Limits = EpisodeLimits{MemoryBytes: p.Limits.GetMemoryBytes(), Steps: p.Limits.GetSteps()}
	if r.err != nil {
		return EnvironmentManifest{}, r.err
	}
	return m, m.Validate()
}
