package env

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/wire"
)

// Limits on the tasks that a package lists. Those that an environment makes itself are not listed, so that they have
// only the manifest's bound.
const (
	// MaxListedTasks bounds the tasks of one split.
	MaxListedTasks = 1 << 20
	// MaxTaskBytes bounds one of them.
	MaxTaskBytes = 64 << 10
)

// Package is an environment as it is moved from machine to machine: a manifest and the files that it names. Every file
// is cut into blocks, each named by its CID in the manifest, so that the manifest's CID names all of it. A Package is
// valid and immutable.
type Package struct {
	manifest  wire.EnvironmentManifest
	raw       []byte
	cid       wire.CID
	artefacts map[string][]byte
	lines     map[string][]uint32 // where each task of a file of tasks begins, and where the last one ends
}

// NewPackage makes a package of a manifest and the contents of its artefacts by name. The manifest's own list of
// artefacts is replaced. The contents are kept.
func NewPackage(m wire.EnvironmentManifest, artefacts map[string][]byte) (*Package, error) {
	m.Artefacts = nil
	for _, name := range slices.Sorted(maps.Keys(artefacts)) {
		content := artefacts[name]
		if len(content) == 0 {
			return nil, fmt.Errorf("%s: the file is empty", name)
		}
		if len(content) > wire.MaxArtefactBlocks*wire.MaxBlockBytes {
			return nil, fmt.Errorf("%s: the file has %d bytes; all files of a package together may have %d MiB", name, len(content), wire.MaxArtefactBlocks)
		}
		a := wire.Artefact{Name: name}
		for block := range slices.Chunk(content, wire.MaxBlockBytes) {
			a.Blocks = append(a.Blocks, wire.BlockRef{CID: wire.SumCID(block), Bytes: uint32(len(block))})
		}
		m.Artefacts = append(m.Artefacts, a)
	}
	raw, err := wire.EncodeManifest(m)
	if err != nil {
		return nil, err
	}
	return newPackage(m, raw, artefacts)
}

// AssemblePackage fetches the package whose manifest is named, and verifies every block against its CID and its length.
// Sizes are checked against limits before anything is allocated for them. The bytes that get returns are not kept.
func AssemblePackage(ctx context.Context, manifest wire.CID, get func(context.Context, wire.CID) ([]byte, error)) (*Package, error) {
	fail := func(err error) (*Package, error) {
		return nil, fmt.Errorf("assemble environment %s: %w", manifest, err)
	}
	raw, err := get(ctx, manifest)
	if err != nil {
		return fail(err)
	}
	if err := manifest.Verify(raw); err != nil {
		return fail(err)
	}
	m, err := wire.DecodeManifest(raw)
	if err != nil {
		return fail(err)
	}
	artefacts := make(map[string][]byte, len(m.Artefacts))
	for _, a := range m.Artefacts {
		content := make([]byte, 0, a.Bytes())
		for i, ref := range a.Blocks {
			block, err := get(ctx, ref.CID)
			if err == nil {
				err = verifyBlock(ref, block)
			}
			if err != nil {
				return fail(fmt.Errorf("%s: block %d of %d: %w", a.Name, i, len(a.Blocks), err))
			}
			content = append(content, block...)
		}
		artefacts[a.Name] = content
	}
	p, err := newPackage(m, bytes.Clone(raw), artefacts)
	if err != nil {
		return fail(err)
	}
	return p, nil
}

// OpenPackage returns the package of an encoded manifest and the contents of all its artefacts, every block of which it
// verifies. It keeps what it gets.
func OpenPackage(manifest []byte, artefacts map[string][]byte) (*Package, error) {
	m, err := wire.DecodeManifest(manifest)
	if err != nil {
		return nil, err
	}
	for _, a := range m.Artefacts {
		rest := artefacts[a.Name]
		if uint64(len(rest)) != a.Bytes() {
			return nil, fmt.Errorf("%s has %d bytes, the manifest says %d", a.Name, len(rest), a.Bytes())
		}
		for i, ref := range a.Blocks {
			if err := verifyBlock(ref, rest[:ref.Bytes]); err != nil {
				return nil, fmt.Errorf("%s: block %d of %d: %w", a.Name, i, len(a.Blocks), err)
			}
			rest = rest[ref.Bytes:]
		}
	}
	return newPackage(m, manifest, artefacts)
}

func verifyBlock(ref wire.BlockRef, block []byte) error {
	if len(block) != int(ref.Bytes) {
		return fmt.Errorf("it has %d bytes, the manifest says %d", len(block), ref.Bytes)
	}
	return ref.CID.Verify(block)
}

// newPackage checks what a manifest says of its artefacts' contents.
func newPackage(m wire.EnvironmentManifest, raw []byte, artefacts map[string][]byte) (*Package, error) {
	p := &Package{manifest: m, raw: raw, cid: wire.SumCID(raw), artefacts: artefacts, lines: make(map[string][]uint32)}
	for _, s := range m.Splits {
		if s.Data == "" {
			continue
		}
		lines, ok := p.lines[s.Data]
		if !ok {
			var err error
			if lines, err = taskLines(artefacts[s.Data]); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Data, err)
			}
			p.lines[s.Data] = lines
		}
		if n := uint64(len(lines) - 1); n != s.Tasks {
			return nil, fmt.Errorf("split %q has %d tasks in the manifest and %d lines in %s: make them equal", s.Name, s.Tasks, n, s.Data)
		}
	}
	return p, nil
}

// taskLines checks a file of tasks and returns where its lines begin, and where the last one ends with its line end.
func taskLines(content []byte) ([]uint32, error) {
	starts := []uint32{0}
	at := 0
	for line := range bytes.Lines(content) {
		at += len(line)
		line = bytes.TrimRight(line, "\r\n")
		n := len(starts)
		switch {
		case n > MaxListedTasks:
			return nil, fmt.Errorf("line %d: there are more than %d tasks; let the environment make them from their numbers", n, MaxListedTasks)
		case len(bytes.TrimSpace(line)) == 0:
			return nil, fmt.Errorf("line %d: it is empty; put one JSON value on each line", n)
		case len(line) > MaxTaskBytes:
			return nil, fmt.Errorf("line %d: a task of %d bytes; at most %d are allowed", n, len(line), MaxTaskBytes)
		case !utf8.Valid(line):
			return nil, fmt.Errorf("line %d: it is not UTF-8", n)
		}
		var value json.RawMessage
		if err := json.Unmarshal(line, &value); err != nil {
			return nil, fmt.Errorf("line %d: it is not JSON (%w); put one JSON value on each line", n, err)
		}
		starts = append(starts, uint32(at))
	}
	return starts, nil
}

// Manifest describes the environment; the caller does not change it.
func (p *Package) Manifest() wire.EnvironmentManifest { return p.manifest }

// CID identifies the environment.
func (p *Package) CID() wire.CID { return p.cid }

// Encoded is the manifest's block; the caller does not change it.
func (p *Package) Encoded() []byte { return p.raw }

// Artefact is the content of a file, nil if there is none of that name; the caller does not change it.
func (p *Package) Artefact(name string) []byte { return p.artefacts[name] }

// Task is what the package lists as a task: one JSON value, of an index below the split's tasks. It is nil if the
// environment makes the split's tasks itself.
func (p *Package) Task(split string, index uint64) []byte {
	for _, s := range p.manifest.Splits {
		if s.Name == split && s.Data != "" && index < s.Tasks {
			lines := p.lines[s.Data]
			return bytes.TrimSpace(p.artefacts[s.Data][lines[index]:lines[index+1]])
		}
	}
	return nil
}

// Bytes is how many the files have together.
func (p *Package) Bytes() uint64 { return FileBytes(p.manifest) }

// FileBytes is how many bytes the files of a manifest have together.
func FileBytes(m wire.EnvironmentManifest) (n uint64) {
	for _, a := range m.Artefacts {
		n += a.Bytes()
	}
	return n
}

// Blocks are all blocks of the package by CID, the manifest's too; the caller does not change them.
func (p *Package) Blocks() map[wire.CID][]byte {
	blocks := map[wire.CID][]byte{p.cid: p.raw}
	for _, a := range p.manifest.Artefacts {
		rest := p.artefacts[a.Name]
		for _, ref := range a.Blocks {
			blocks[ref.CID], rest = rest[:ref.Bytes], rest[ref.Bytes:]
		}
	}
	return blocks
}
