package packages

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// Protocol is the protocol's id.
const Protocol protocol.ID = "/lightswarm/packages/1"

const (
	// exchangeTimeout is how long a question and its answer may take.
	exchangeTimeout = 10 * time.Second
	// recordOverhead bounds the field tag and length before each record.
	recordOverhead = 4
)

// ErrMisbehaved says that a peer's answer is not what an honest one gives.
var ErrMisbehaved = errors.New("the peer gave an answer about packages that is not valid")

// Source has the statements about the packages that a node keeps. It is safe for concurrent use.
type Source interface {
	// Packages returns up to most signed statements: those about one environment, or all if the manifest is the zero CID.
	Packages(manifest wire.CID, most int) ([][]byte, error)
}

// Serve answers requests for one network from a source until the returned server is closed.
func Serve(h host.Host, networkID wire.CID, source Source) *stream.Server {
	a := answerer{networkID, source}
	return stream.Serve(h, Protocol, stream.Limits{Total: 32, PerPeer: 2}, func(s network.Stream) error { return a.handle(s) })
}

// answerer is what answers depend on.
type answerer struct {
	network wire.CID
	source  Source
}

// conduit is what is used of a stream.
type conduit interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// handle answers the one request of a stream.
func (a answerer) handle(s conduit) error {
	if err := s.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return err
	}
	raw, err := stream.ReadFrame(bufio.NewReaderSize(s, wire.MaxPackagesRequestBytes), wire.MaxPackagesRequestBytes)
	if err != nil {
		return err
	}
	request, err := wire.DecodePackagesRequest(raw)
	if err != nil {
		return err
	}
	var response wire.PackagesResponse
	if request.Network == a.network {
		if response.Packages, err = a.records(request); err != nil {
			return err
		}
	}
	encoded, err := wire.EncodePackagesResponse(response)
	if err != nil {
		return err
	}
	return stream.WriteFrame(s, encoded)
}

// records are the statements that were asked for, as many as fit.
func (a answerer) records(request wire.PackagesRequest) ([][]byte, error) {
	list, err := a.source.Packages(request.Manifest, int(request.MaxPackages))
	if err != nil {
		return nil, err
	}
	room := wire.MaxPackagesResponseBytes
	for i, record := range list {
		if room -= len(record) + recordOverhead; room < 0 {
			return list[:i], nil
		}
	}
	return list, nil
}

// Ask asks a connected peer for up to most packages that it keeps: those of one environment, or all if the manifest is
// the zero CID. It does not dial, and does not use connections that a relay limits.
func Ask(ctx context.Context, h host.Host, p peer.ID, networkID, manifest wire.CID, most int) ([]wire.SignedEnvironmentPackage, error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "packages"), exchangeTimeout)
	defer cancel()
	request := wire.PackagesRequest{Network: networkID, Manifest: manifest, MaxPackages: uint32(most)}
	list, err := ask(ctx, h, p, request)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("ask %s for packages: %w", p, err)
	}
	return list, nil
}

func ask(ctx context.Context, h host.Host, p peer.ID, request wire.PackagesRequest) ([]wire.SignedEnvironmentPackage, error) {
	encoded, err := wire.EncodePackagesRequest(request)
	if err != nil {
		return nil, err
	}
	s, err := h.NewStream(ctx, p, Protocol)
	if err != nil {
		return nil, err
	}
	// Resetting and closing fail only when the stream is over anyway.
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	defer func() { _ = s.Close() }()
	if err := stream.WriteFrame(s, encoded); err != nil {
		return nil, err
	}
	raw, err := stream.ReadFrame(bufio.NewReader(s), wire.MaxPackagesResponseBytes)
	if errors.Is(err, stream.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", ErrMisbehaved, err)
	}
	if err != nil {
		return nil, err
	}
	return open(raw, request)
}

// open decodes an answer and verifies each statement in it.
func open(raw []byte, request wire.PackagesRequest) ([]wire.SignedEnvironmentPackage, error) {
	response, err := wire.DecodePackagesResponse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrMisbehaved, err)
	case len(response.Packages) > int(request.MaxPackages):
		return nil, fmt.Errorf("%w: %d packages, and %d were asked for", ErrMisbehaved, len(response.Packages), request.MaxPackages)
	}
	var list []wire.SignedEnvironmentPackage
	for _, record := range response.Packages {
		p, err := wire.OpenEnvironmentPackage(record)
		switch {
		case errors.Is(err, wire.ErrNewerMajor):
			continue
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrMisbehaved, err)
		case request.Manifest.Defined() && p.Manifest != request.Manifest:
			return nil, fmt.Errorf("%w: a package of environment %s, and %s was asked for", ErrMisbehaved, p.Manifest, request.Manifest)
		}
		list = append(list, p)
	}
	return list, nil
}
