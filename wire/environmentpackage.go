package wire

import (
	"fmt"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// EnvironmentPackage says which manifest a version of an environment is. Whoever signs it is the environment's author:
// names are an author's own, so nobody can take another's.
type EnvironmentPackage struct {
	// Name is lower-case letters, digits and single hyphens between them; Version is a semantic version.
	Name, Version string
	// Manifest is the environment.
	Manifest CID
	// Created has millisecond precision; SignEnvironmentPackage cuts the rest off.
	Created time.Time
}

// SignedEnvironmentPackage is a package statement whose signature was verified.
type SignedEnvironmentPackage struct {
	EnvironmentPackage
	// ID is the CID of Raw.
	ID CID
	// Author signed it.
	Author PeerID
	// Raw is the encoded Signed message; callers do not change it.
	Raw []byte
}

// Reference is the package as people write it: author/name@version.
func (p SignedEnvironmentPackage) Reference() string {
	return fmt.Sprintf("%s/%s@%s", p.Author, p.Name, p.Version)
}

// Validate returns a *ValidationError that names the first field at fault.
func (p EnvironmentPackage) Validate() error {
	r := check("environment package")
	r.require(PackageName(p.Name), "name", PackageNameRule)
	r.text("name", p.Name, MaxNameBytes)
	r.require(PackageVersion(p.Version), "version", PackageVersionRule)
	r.text("version", p.Version, MaxVersionBytes)
	r.definedCID("manifest_cid", p.Manifest)
	r.instant("created_unix_ms", p.Created)
	return r.err
}

// The rules of PackageName and PackageVersion, in words.
const (
	PackageNameRule    = "must be lower-case letters, digits and single hyphens between them, such as word-problems"
	PackageVersionRule = "must be a semantic version, such as 1.0.0 or 1.0.0-beta.2"
)

// PackageName says whether a package may have this name.
func PackageName(name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// PackageVersion says whether a package may have this version: three numbers, and perhaps a hyphen and what comes before
// a release.
func PackageVersion(version string) bool {
	numbers, before, has := strings.Cut(version, "-")
	parts := strings.Split(numbers, ".")
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" || len(part) > 1 && part[0] == '0' {
			return false
		}
	}
	return len(parts) == 3 && (!has || fileName(before))
}

// SignEnvironmentPackage validates p and signs it. The result is exactly what OpenEnvironmentPackage returns for its
// bytes.
func SignEnvironmentPackage(k Key, p EnvironmentPackage) (SignedEnvironmentPackage, error) {
	if err := p.Validate(); err != nil {
		return SignedEnvironmentPackage{}, err
	}
	payload, err := marshal("environment package", MaxGossipBytes, &wirepb.EnvironmentPackage{
		Major:         Major,
		Name:          p.Name,
		Version:       p.Version,
		ManifestCid:   p.Manifest.Bytes(),
		CreatedUnixMs: p.Created.UnixMilli(),
	})
	if err != nil {
		return SignedEnvironmentPackage{}, err
	}
	raw, err := Sign(k, DomainEnvironment, payload)
	if err != nil {
		return SignedEnvironmentPackage{}, err
	}
	return OpenEnvironmentPackage(raw)
}

// OpenEnvironmentPackage verifies, decodes and validates a signed package statement. It copies raw.
func OpenEnvironmentPackage(raw []byte) (SignedEnvironmentPackage, error) {
	payload, signer, err := Open(DomainEnvironment, raw)
	if err != nil {
		return SignedEnvironmentPackage{}, err
	}
	p, err := decodeEnvironmentPackage(payload)
	if err != nil {
		return SignedEnvironmentPackage{}, err
	}
	return SignedEnvironmentPackage{EnvironmentPackage: p, ID: SumCID(raw), Author: signer, Raw: append([]byte(nil), raw...)}, nil
}

func decodeEnvironmentPackage(payload []byte) (EnvironmentPackage, error) {
	var m wirepb.EnvironmentPackage
	if err := unmarshal("environment package", MaxGossipBytes, payload, &m); err != nil {
		return EnvironmentPackage{}, err
	}
	if err := checkMajor("environment package", m.Major); err != nil {
		return EnvironmentPackage{}, err
	}
	f := &fields{message: "environment package"}
	p := EnvironmentPackage{
		Name:     m.Name,
		Version:  m.Version,
		Manifest: f.cid("manifest_cid", m.ManifestCid),
		Created:  fromMillis(m.CreatedUnixMs),
	}
	if f.err != nil {
		return EnvironmentPackage{}, f.err
	}
	return p, p.Validate()
}
