package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/lightswarm/lightswarm/rollout"
)

// Draws is the rollout.Counters of a store: it gives out draw counters 0, 1, 2, …, each durably before it is used.
// Announce ends a reservation.
type Draws struct{ s *Store }

var _ rollout.Counters = Draws{}

// Draws returns the draw counters.
func (s *Store) Draws() Draws { return Draws{s} }

func (s *Store) loadDraws() (err error) {
	s.nextDraw, err = getUint64(s.db, drawKey)
	return err
}

// Pending implements rollout.Counters.
func (d Draws) Pending(ctx context.Context) ([]uint64, error) {
	var pending []uint64
	err := scanPrefix(d.s.db, key(tagDraw), func(k, _ []byte) (bool, error) {
		pending = append(pending, binary.BigEndian.Uint64(k[1:]))
		return true, ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list unfinished draws: %w", err)
	}
	return pending, nil
}

// Reserve implements rollout.Counters.
func (d Draws) Reserve(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var counter uint64
	err := d.s.update(durable, func(t *transaction) error {
		counter = t.nextDraw
		t.nextDraw++
		t.put(drawKey, uint64Field(t.nextDraw))
		t.put(key(tagDraw, uint64Field(counter)), nil)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reserve draw: %w", err)
	}
	return counter, nil
}
