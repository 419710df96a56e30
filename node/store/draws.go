package store

import (
	"context"
	"encoding/binary"
	"errors"
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

// Resume implements rollout.Counters.
func (d Draws) Resume(ctx context.Context, version uint64) (left []uint64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = d.s.update(durable, func(t *transaction) error {
		var others [][]byte
		err := scanPrefix(t, key(tagDraw), func(k, v []byte) (bool, error) {
			switch {
			case len(v) != 8:
				return false, errors.New("damaged draw in the database; restore the data folder from a backup")
			case binary.BigEndian.Uint64(v) == version:
				left = append(left, binary.BigEndian.Uint64(k[1:]))
			default:
				others = append(others, append([]byte{}, k...))
			}
			return true, nil
		})
		for _, k := range others {
			t.remove(k)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("resume draws: %w", err)
	}
	return left, nil
}

// Reserve implements rollout.Counters.
func (d Draws) Reserve(ctx context.Context, version uint64) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var counter uint64
	err := d.s.update(durable, func(t *transaction) error {
		counter = t.nextDraw
		t.nextDraw++
		t.put(drawKey, uint64Field(t.nextDraw))
		t.put(key(tagDraw, uint64Field(counter)), uint64Field(version))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reserve draw: %w", err)
	}
	return counter, nil
}
