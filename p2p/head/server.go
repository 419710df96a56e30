package head

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// Protocol is the head protocol's id.
const Protocol protocol.ID = "/lightswarm/head/1"

// MaxRequests is how many requests a server answers on one stream.
const MaxRequests = 64

const (
	// exchangeTimeout is how long one request or response may take to arrive whole.
	exchangeTimeout = 20 * time.Second
	// responseRoom is what a response may hold in records, below the limit by more than its other fields take.
	responseRoom = wire.MaxHeadResponseBytes - 1024
	// recordOverhead bounds the field tag and length before each record.
	recordOverhead = 4
)

// Serve answers head requests for one network from a source until the returned server is closed. The host's own
// announcements are those that the source has under the host's peer id.
func Serve(h host.Host, networkID wire.CID, source Source) *stream.Server {
	a := answerer{network: networkID, self: wire.PeerID(h.ID()), source: source}
	return stream.Serve(h, Protocol, stream.Limits{Total: 128, PerPeer: 4},
		func(s network.Stream) error { return a.handle(s) })
}

// answerer is what answers depend on.
type answerer struct {
	network wire.CID
	self    wire.PeerID
	source  Source
}

// conduit is what is used of a stream.
type conduit interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// handle answers the requests of one stream.
func (a answerer) handle(s conduit) error {
	r := bufio.NewReader(s)
	for range MaxRequests {
		if err := s.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
			return err
		}
		raw, err := stream.ReadFrame(r, wire.MaxHeadRequestBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		request, err := wire.DecodeHeadRequest(raw)
		if err != nil {
			return err
		}
		response, err := a.answer(request)
		if err != nil {
			return err
		}
		encoded, err := wire.EncodeHeadResponse(response)
		if err != nil {
			return err
		}
		if err := stream.WriteFrame(s, encoded); err != nil {
			return err
		}
	}
	return nil
}

// answer collects what a request asks for, within its limits and the protocol's: releases first, then each cursor's
// announcements in the order of the cursors.
func (a answerer) answer(request wire.HeadRequest) (wire.HeadResponse, error) {
	if request.Network != a.network {
		return wire.HeadResponse{}, nil
	}
	response := wire.HeadResponse{KnownNetwork: true, HeadVersion: a.source.Head()}
	room := responseRoom
	take := func(into *[][]byte, records [][]byte) bool {
		for _, record := range records {
			if len(record)+recordOverhead > room {
				return false
			}
			*into = append(*into, record)
			room -= len(record) + recordOverhead
		}
		return true
	}

	if request.MaxReleases > 0 {
		releases, err := a.source.Releases(request.ReleaseFrom, int(request.MaxReleases))
		if err != nil {
			return wire.HeadResponse{}, fmt.Errorf("read releases from version %d: %w", request.ReleaseFrom, err)
		}
		if !take(&response.Releases, releases) {
			return response, nil
		}
	}
	cursors := request.Cursors
	if len(cursors) == 0 {
		cursors = []wire.Cursor{{Peer: a.self}}
	}
	for _, c := range cursors {
		left := int(request.MaxAnnouncements) - len(response.Announcements)
		if left <= 0 {
			break
		}
		announcements, err := a.source.Announcements(c.Peer, c.FromSequence, left)
		if err != nil {
			return wire.HeadResponse{}, fmt.Errorf("read announcements of %s from %d: %w", c.Peer, c.FromSequence, err)
		}
		if !take(&response.Announcements, announcements) {
			break
		}
	}
	return response, nil
}
