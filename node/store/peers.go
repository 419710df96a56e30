package store

import (
	"encoding/json"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/discovery"
)

// Peers is the discovery.Cache of a store.
type Peers struct{ s *Store }

var _ discovery.Cache = Peers{}

// Peers returns the cache of members' addresses.
func (s *Store) Peers() Peers { return Peers{s} }

// Load returns what Save was last given.
func (p Peers) Load() ([]peer.AddrInfo, error) {
	v, ok, err := get(p.s.db, peersKey)
	if err != nil || !ok {
		return nil, err
	}
	var list []peer.AddrInfo
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, fmt.Errorf("damaged peer cache in the database: %w", err)
	}
	return list, nil
}

// Save replaces the list, lazily.
func (p Peers) Save(list []peer.AddrInfo) error {
	v, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode peer cache: %w", err)
	}
	return p.s.update(lazy, func(t *transaction) error {
		t.put(peersKey, v)
		return nil
	})
}
