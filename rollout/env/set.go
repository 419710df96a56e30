package env

import (
	"errors"
	"fmt"
	"maps"

	"github.com/lightswarm/lightswarm/wire"
)

// ErrUnknown says that a set does not hold an environment.
var ErrUnknown = errors.New("environment is not available here")

// Set is the environments that a process can run, by the CID of their manifest. It is immutable.
type Set struct{ byCID map[wire.CID]Environment }

// NewSet returns the set of these environments. It fails if a manifest is invalid.
func NewSet(environments ...Environment) (*Set, error) {
	s := &Set{byCID: make(map[wire.CID]Environment, len(environments))}
	for _, e := range environments {
		cid, err := CID(e)
		if err != nil {
			return nil, err
		}
		s.byCID[cid] = e
	}
	return s, nil
}

// With returns the set that has these environments too. It fails if a manifest is invalid.
func (s *Set) With(environments ...Environment) (*Set, error) {
	more, err := NewSet(environments...)
	if err != nil {
		return nil, err
	}
	maps.Copy(more.byCID, s.byCID)
	return more, nil
}

// Get returns the environment that a CID names, or an error that wraps ErrUnknown.
func (s *Set) Get(cid wire.CID) (Environment, error) {
	e, ok := s.byCID[cid]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, cid)
	}
	return e, nil
}

// CID identifies an environment by its manifest.
func CID(e Environment) (wire.CID, error) {
	m := e.Manifest()
	b, err := wire.EncodeManifest(m)
	if err != nil {
		return wire.CID{}, fmt.Errorf("environment %q: %w", m.Name, err)
	}
	return wire.SumCID(b), nil
}

// Reference is what a charter says of an environment, with a share of 1 in task draws.
func Reference(e Environment) (wire.EnvironmentRef, error) {
	cid, err := CID(e)
	if err != nil {
		return wire.EnvironmentRef{}, err
	}
	return reference(cid, e.Manifest()), nil
}

// Reference is what a charter says of the package's environment, with a share of 1 in task draws.
func (p *Package) Reference() wire.EnvironmentRef { return reference(p.cid, p.manifest) }

func reference(cid wire.CID, m wire.EnvironmentManifest) wire.EnvironmentRef {
	return wire.EnvironmentRef{
		Manifest:        cid,
		Name:            m.Name,
		Weight:          1,
		TrainTasks:      m.Tasks(wire.SplitTrain),
		ValidationTasks: m.Tasks(wire.SplitValidation),
	}
}
