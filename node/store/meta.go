package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/lightswarm/lightswarm/wire"
)

// schema numbers the layout of keys and values. Raise it with any change that an older program would misread, and
// teach convert.
//
//	1  the first
//	2  a reserved draw has the policy version that it is for
const schema = 2

var (
	schemaKey   = key(tagMeta, []byte("schema"))
	networkKey  = key(tagMeta, []byte("network"))
	sequenceKey = key(tagMeta, []byte("sequence")) // next of own announcements, u64
	drawKey     = key(tagMeta, []byte("draw"))     // next draw counter, u64
	peersKey    = key(tagMeta, []byte("peers"))    // JSON list of addresses
	foundedKey  = key(tagMeta, []byte("founded"))  // there once the founding is complete
)

// SchemaError says that a newer program wrote the database.
type SchemaError struct {
	Found, Supported uint32
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the database has schema %d and this program knows schemas up to %d: upgrade lightswarm, or use another data folder", e.Found, e.Supported)
}

// ErrOtherNetwork says that a database belongs to another network than the one wanted.
var ErrOtherNetwork = errors.New("the data folder belongs to another network")

// getUint64 reads an integer that is 0 before it is first written.
func getUint64(r pebble.Reader, k []byte) (uint64, error) {
	v, ok, err := get(r, k)
	if err != nil || !ok {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("damaged entry %q in the database; restore the data folder from a backup", k)
	}
	return binary.BigEndian.Uint64(v), nil
}

// checkSchema writes the schema number into a new database; it converts an older one and refuses a newer one.
func (s *Store) checkSchema() error {
	value, ok, err := get(s.db, schemaKey)
	switch {
	case err != nil:
		return err
	case !ok:
		return s.update(durable, func(t *transaction) error {
			t.put(schemaKey, binary.BigEndian.AppendUint32(nil, schema))
			return nil
		})
	case len(value) != 4:
		return errors.New("damaged schema number; restore the data folder from a backup")
	}
	found := binary.BigEndian.Uint32(value)
	if found > schema {
		return &SchemaError{Found: found, Supported: schema}
	}
	return s.convert(found)
}

// convert brings a database of an older schema to the newest one.
func (s *Store) convert(from uint32) error {
	if from == schema {
		return nil
	}
	return s.update(durable, func(t *transaction) error {
		t.put(schemaKey, binary.BigEndian.AppendUint32(nil, schema))
		// Nobody knows what the reserved draws of schema 1 were for: they are left out.
		return t.DeleteRange(key(tagDraw), after(key(tagDraw)), nil)
	})
}

// NetworkSet pins the blocks that Bind was given.
const NetworkSet = "network"

// Bind ties the database to a network, since counters and sequence numbers mean nothing in another, and keeps blocks that
// belong to the network as such, in one change. Binding again to the same network keeps more blocks; binding to another
// one is ErrOtherNetwork.
func (s *Store) Bind(network wire.CID, blocks map[wire.CID][]byte) error {
	return s.update(durable, func(t *transaction) error {
		bound, ok, err := get(t, networkKey)
		switch {
		case err != nil:
			return err
		case !ok:
			t.put(networkKey, network.Bytes())
		case string(bound) != string(network.Bytes()):
			id, err := wire.ParseCID(bound)
			if err != nil {
				return fmt.Errorf("damaged network id in the database: %w", err)
			}
			return fmt.Errorf("%w, %s: use another one with --data", ErrOtherNetwork, id)
		}
		return t.putPinned(NetworkSet, blocks)
	})
}

// SetFounded notes durably that the founding of the network is complete, so that people may be told of it.
func (s *Store) SetFounded() error {
	return s.update(durable, func(t *transaction) error {
		t.put(foundedKey, nil)
		return nil
	})
}

// Founded says whether SetFounded was called.
func (s *Store) Founded() (bool, error) { return has(s.db, foundedKey) }

// Network is the network that the database is bound to; ok is false before Bind.
func (s *Store) Network() (network wire.CID, ok bool, err error) {
	bound, ok, err := get(s.db, networkKey)
	if err != nil || !ok {
		return wire.CID{}, false, err
	}
	network, err = wire.ParseCID(bound)
	if err != nil {
		return wire.CID{}, false, fmt.Errorf("damaged network id in the database: %w", err)
	}
	return network, true, nil
}
