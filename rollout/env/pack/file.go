package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	magic     = "LSWE"
	fileMajor = 1
	// MaxFileBytes bounds a file.
	MaxFileBytes = 64 + wire.MaxGossipBytes + wire.MaxManifestBytes + wire.MaxArtefactBlocks*wire.MaxBlockBytes
)

// ErrFile says that bytes are no package.
var ErrFile = errors.New("not an environment package")

// File is a package with its author's statement.
type File struct {
	*env.Package
	// Statement is nil if nobody signed the package.
	Statement *wire.SignedEnvironmentPackage
}

// Sign makes the key's peer the author of a package.
func Sign(p *env.Package, key wire.Key, at time.Time) (File, error) {
	m := p.Manifest()
	if err := env.CheckManifest(m); err != nil {
		return File{}, err
	}
	s, err := wire.SignEnvironmentPackage(key, wire.EnvironmentPackage{Name: m.Name, Version: m.Version, Manifest: p.CID(), Created: at})
	if err != nil {
		return File{}, err
	}
	return File{p, &s}, nil
}

// Encode is the file's bytes.
func (f File) Encode() []byte {
	out := append([]byte(magic), fileMajor)
	var statement []byte
	if f.Statement != nil {
		statement = f.Statement.Raw
	}
	for _, part := range [][]byte{statement, f.Encoded()} {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	for _, a := range f.Manifest().Artefacts {
		out = append(out, f.Artefact(a.Name)...)
	}
	return out
}

// Decode reads and verifies a file: signature, sizes and CIDs. Its errors wrap ErrFile or those of package wire.
func Decode(b []byte) (File, error) {
	f, err := decode(b)
	if err != nil {
		return File{}, fmt.Errorf("environment package: %w", err)
	}
	return f, nil
}

func decode(b []byte) (File, error) {
	if len(b) > MaxFileBytes {
		return File{}, fmt.Errorf("%w: it has %d bytes; at most %d are allowed", ErrFile, len(b), MaxFileBytes)
	}
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(rest) == 0 {
		return File{}, ErrFile
	}
	if rest[0] > fileMajor {
		return File{}, fmt.Errorf("%w: it has format %d, this program reads up to %d: upgrade lightswarm", ErrFile, rest[0], fileMajor)
	}
	if rest[0] == 0 {
		return File{}, fmt.Errorf("%w: its format is 0", ErrFile)
	}
	statement, rest, err := cut(rest[1:], wire.MaxGossipBytes)
	if err != nil {
		return File{}, fmt.Errorf("%w: its statement %w", ErrFile, err)
	}
	raw, rest, err := cut(rest, wire.MaxManifestBytes)
	if err != nil {
		return File{}, fmt.Errorf("%w: its manifest %w", ErrFile, err)
	}
	m, err := wire.DecodeManifest(raw)
	if err != nil {
		return File{}, err
	}
	artefacts := make(map[string][]byte, len(m.Artefacts))
	for _, a := range m.Artefacts {
		if a.Bytes() > uint64(len(rest)) {
			return File{}, fmt.Errorf("%w: it ends inside %s", ErrFile, a.Name)
		}
		artefacts[a.Name], rest = rest[:a.Bytes()], rest[a.Bytes():]
	}
	if len(rest) > 0 {
		return File{}, fmt.Errorf("%w: there are %d bytes behind its end", ErrFile, len(rest))
	}
	p, err := env.OpenPackage(raw, artefacts)
	if err != nil {
		return File{}, err
	}
	f := File{Package: p}
	if len(statement) == 0 {
		return f, nil
	}
	s, err := wire.OpenEnvironmentPackage(statement)
	if err != nil {
		return File{}, err
	}
	if s.Manifest != p.CID() || s.Name != m.Name || s.Version != m.Version {
		return File{}, fmt.Errorf("%w: %s signed another package, %s@%s with manifest %s", ErrFile, s.Author, s.Name, s.Version, s.Manifest)
	}
	f.Statement = &s
	return f, nil
}

// cut reads a length of at most limit and that many bytes.
func cut(b []byte, limit uint64) (part, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > limit || n > uint64(len(b)-size) {
		return nil, nil, errors.New("is too long, or the file too short")
	}
	if size != len(binary.AppendUvarint(nil, n)) {
		return nil, nil, errors.New("has a length that is not in its shortest form")
	}
	return b[size:][:n], b[size:][n:], nil
}
