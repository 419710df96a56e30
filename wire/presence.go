package wire

import (
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// Roles is the set of roles that a node takes.
type Roles uint32

// The roles of a node; one may take several.
const (
	RoleLearner Roles = 1 << iota // trains and signs releases
	RoleRollout                   // runs agents and announces bundles
	RoleRelay                     // helps others to reach one another
)

// Has says whether all of roles are in r.
func (r Roles) Has(roles Roles) bool { return r&roles == roles }

// String lists the roles that this build knows, such as "learner,rollout".
func (r Roles) String() string {
	var names []string
	for i, name := range []string{"learner", "rollout", "relay"} {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Presence is a peer's periodic sign of life.
type Presence struct {
	Network CID
	// Roles may have bits that this build does not know.
	Roles Roles
	// HeadVersion is the newest version that the peer runs.
	HeadVersion uint64
	// NextSequence is the sequence of the peer's next announcement, so that others see what they missed.
	NextSequence uint64
	// Created has millisecond precision; SignPresence cuts the rest off.
	Created time.Time
	// AgentVersion names the peer's program, such as "lightswarm/0.1.0"; it may be empty.
	AgentVersion string
	// Results say what a learner has of an evaluation; the zero value says nothing.
	Results EvaluationResults
}

// EvaluationResults say which evaluation blocks of a version have all their results.
type EvaluationResults struct {
	Version uint64
	// Sampled and Greedy have a bit for each block, block b's being bit b%8 of byte b/8, in at most MaxResultBytes.
	Sampled, Greedy []byte
}

// Has says whether a block has its results.
func (r EvaluationResults) Has(purpose Purpose, block uint64) bool {
	bits := r.Sampled
	if purpose == PurposeEvaluateGreedy {
		bits = r.Greedy
	}
	return block/8 < uint64(len(bits)) && bits[block/8]&(1<<(block%8)) != 0
}

func (r EvaluationResults) message() *wirepb.EvaluationResults {
	if r.Version == 0 && len(r.Sampled) == 0 && len(r.Greedy) == 0 {
		return nil
	}
	return &wirepb.EvaluationResults{Version: r.Version, Sampled: r.Sampled, Greedy: r.Greedy}
}

// SignedPresence is a sign of life whose signature was verified.
type SignedPresence struct {
	Presence
	// ID is the CID of Raw.
	ID     CID
	Signer PeerID
	// Raw is the encoded Signed message; callers do not change it.
	Raw []byte
}

// Validate returns a *ValidationError that names the first field at fault.
func (p Presence) Validate() error {
	r := check("presence")
	r.definedCID("network", p.Network)
	r.instant("created_unix_ms", p.Created)
	r.text("agent_version", p.AgentVersion, MaxVersionBytes)
	r.require(len(p.Results.Sampled) <= MaxResultBytes, "results.sampled", "is too long")
	r.require(len(p.Results.Greedy) <= MaxResultBytes, "results.greedy", "is too long")
	return r.err
}

// SignPresence validates p and signs it. The result is exactly what OpenPresence returns for its bytes.
func SignPresence(k Key, p Presence) (SignedPresence, error) {
	if err := p.Validate(); err != nil {
		return SignedPresence{}, err
	}
	payload, err := marshal("presence", MaxGossipBytes, &wirepb.Presence{
		Major:         Major,
		Network:       p.Network.Bytes(),
		Roles:         uint32(p.Roles),
		HeadVersion:   p.HeadVersion,
		NextSequence:  p.NextSequence,
		CreatedUnixMs: p.Created.UnixMilli(),
		AgentVersion:  p.AgentVersion,
		Results:       p.Results.message(),
	})
	if err != nil {
		return SignedPresence{}, err
	}
	raw, err := Sign(k, DomainPresence, payload)
	if err != nil {
		return SignedPresence{}, err
	}
	return OpenPresence(raw)
}

// OpenPresence verifies, decodes and validates a signed sign of life. It copies raw.
func OpenPresence(raw []byte) (SignedPresence, error) {
	payload, signer, err := Open(DomainPresence, raw)
	if err != nil {
		return SignedPresence{}, err
	}
	p, err := decodePresence(payload)
	if err != nil {
		return SignedPresence{}, err
	}
	return SignedPresence{Presence: p, ID: SumCID(raw), Signer: signer, Raw: append([]byte(nil), raw...)}, nil
}

func decodePresence(payload []byte) (Presence, error) {
	var m wirepb.Presence
	if err := unmarshal("presence", MaxGossipBytes, payload, &m); err != nil {
		return Presence{}, err
	}
	if err := checkMajor("presence", m.Major); err != nil {
		return Presence{}, err
	}
	f := &fields{message: "presence"}
	p := Presence{
		Network:      f.cid("network", m.Network),
		Roles:        Roles(m.Roles),
		HeadVersion:  m.HeadVersion,
		NextSequence: m.NextSequence,
		Created:      fromMillis(m.CreatedUnixMs),
		AgentVersion: m.AgentVersion,
		Results:      decodeResults(m.GetResults()),
	}
	if f.err != nil {
		return Presence{}, f.err
	}
	return p, p.Validate()
}

func decodeResults(m *wirepb.EvaluationResults) EvaluationResults {
	r := EvaluationResults{Version: m.GetVersion(), Sampled: m.GetSampled(), Greedy: m.GetGreedy()}
	if len(r.Sampled) == 0 { // An empty field and none mean the same.
		r.Sampled = nil
	}
	if len(r.Greedy) == 0 {
		r.Greedy = nil
	}
	return r
}
