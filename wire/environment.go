package wire

import (
	"fmt"
	"slices"

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
	// Entry is what the driver runs; for "builtin" the registered name.
	Entry  string
	Splits []Split
	// RewardMin and RewardMax bound every reward, inclusive.
	RewardMin, RewardMax float32
	Determinism          Determinism
	// Agents are the roles whose calls a rollout records; TrainedAgents are those of them that are trained.
	Agents, TrainedAgents []string
}

// Split is a numbered set of tasks: indices 0 to Tasks-1.
type Split struct {
	Name  string
	Tasks uint64
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
	return r.err
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
	}
	for _, s := range m.Splits {
		p.Splits = append(p.Splits, &wirepb.Split{Name: s.Name, Tasks: s.Tasks})
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
	}
	for _, s := range p.Splits {
		m.Splits = append(m.Splits, Split{Name: s.Name, Tasks: s.Tasks})
	}
	return m, m.Validate()
}
