package transformer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrState is wrapped by every error about a state that does not fit the trainer.
var ErrState = errors.New("trainer state")

// stateMagic starts every state; its last byte is the version of the format.
const stateMagic = "lstrain\x01"

// State returns everything that the next steps depend on: masters, moments and the number of steps, as after the last
// Step; gradients accumulated since are not part of it. A trainer restored from it goes on with the same bits. The
// same state gives the same bytes.
//
// The format is the magic, the length of config.json (uint32), config.json, the number of steps (uint64), then masters,
// means and mean squares as float32 in the order of Parameters.Flat; all little-endian.
func (t *Trainer) State() []byte {
	config := t.config.JSON()
	b := make([]byte, 0, len(stateMagic)+4+len(config)+8+3*4*len(t.masters.Flat))
	b = append(b, stateMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(config)))
	b = append(b, config...)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.steps))
	for _, flat := range t.stateVectors() {
		for _, v := range flat {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

func (t *Trainer) stateVectors() [3][]float32 {
	return [3][]float32{t.masters.Flat, t.moments[0].Flat, t.moments[1].Flat}
}

// Restore takes over a state of a model of the same shape and drops accumulated gradients. An error wraps ErrState and
// leaves the trainer as it was.
func (t *Trainer) Restore(state []byte) error {
	b, ok := bytes.CutPrefix(state, []byte(stateMagic))
	if !ok {
		if bytes.HasPrefix(state, []byte(stateMagic[:len(stateMagic)-1])) {
			return fmt.Errorf("%w: its format is of another version of this program", ErrState)
		}
		return fmt.Errorf("%w: it is not one", ErrState)
	}
	config := t.config.JSON()
	want := 4 + len(config) + 8 + 3*4*len(t.masters.Flat)
	if len(b) < 4 || int(binary.LittleEndian.Uint32(b)) != len(config) || !bytes.HasPrefix(b[4:], config) {
		return fmt.Errorf("%w: it belongs to a model of another shape", ErrState)
	}
	if len(b) != want {
		return fmt.Errorf("%w: it has %d bytes after the magic, not %d", ErrState, len(b), want)
	}
	b = b[4+len(config):]
	steps := binary.LittleEndian.Uint64(b)
	if steps > math.MaxInt32 {
		return fmt.Errorf("%w: %d steps", ErrState, steps)
	}
	b = b[8:]
	for i := 0; i < len(b); i += 4 {
		if bits := binary.LittleEndian.Uint32(b[i:]); bits&0x7f800000 == 0x7f800000 {
			return fmt.Errorf("%w: number %d is not finite", ErrState, i/4)
		}
	}
	for _, flat := range t.stateVectors() {
		for i := range flat {
			flat[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		b = b[4*len(flat):]
	}
	t.steps = int(steps)
	clear(t.gradients.Flat)
	if t.config.TieEmbeddings {
		clear(t.headGradient)
	}
	t.release()
	return nil
}
