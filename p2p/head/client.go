package head

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// ErrOtherNetwork says that the peer does not belong to the network that it was asked about.
var ErrOtherNetwork = errors.New("the peer belongs to another network")

// Session is a stream to one peer on which up to MaxRequests requests are asked one after the other. It is not safe
// for concurrent use.
type Session struct {
	peer   peer.ID
	stream network.Stream
	reader *bufio.Reader
}

// Open opens a session with a connected peer; it does not dial, and does not use connections that a relay limits.
func Open(ctx context.Context, h host.Host, p peer.ID) (*Session, error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "head"), exchangeTimeout)
	defer cancel()
	s, err := h.NewStream(ctx, p, Protocol)
	if err != nil {
		return nil, fmt.Errorf("open a head stream to %s: %w", p, err)
	}
	return &Session{peer: p, stream: s, reader: bufio.NewReaderSize(s, 64<<10)}, nil
}

// Ask sends one request and returns the answer, whose records are within the request's limits and not verified in any
// other way. It fails with ErrOtherNetwork when the peer does not know the request's network. After an error the
// session is of no more use.
func (s *Session) Ask(ctx context.Context, request wire.HeadRequest) (wire.HeadResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	// Resetting fails only when the stream is over anyway.
	stop := context.AfterFunc(ctx, func() { _ = s.stream.Reset() })
	defer stop()
	response, err := s.ask(request)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return wire.HeadResponse{}, fmt.Errorf("ask %s for its head: %w", s.peer, err)
	}
	return response, nil
}

func (s *Session) ask(request wire.HeadRequest) (wire.HeadResponse, error) {
	encoded, err := wire.EncodeHeadRequest(request)
	if err != nil {
		return wire.HeadResponse{}, err
	}
	if err := stream.WriteFrame(s.stream, encoded); err != nil {
		return wire.HeadResponse{}, err
	}
	raw, err := stream.ReadFrame(s.reader, wire.MaxHeadResponseBytes)
	if err != nil {
		return wire.HeadResponse{}, err
	}
	response, err := wire.DecodeHeadResponse(raw)
	if err != nil {
		return wire.HeadResponse{}, err
	}
	switch {
	case !response.KnownNetwork:
		return wire.HeadResponse{}, ErrOtherNetwork
	case len(response.Releases) > int(request.MaxReleases) || len(response.Announcements) > int(request.MaxAnnouncements):
		return wire.HeadResponse{}, fmt.Errorf("%w: more records than asked for", wire.ErrMalformed)
	}
	return response, nil
}

// Full reports whether an answer may have left out announcements for want of room, so that asking again from later
// cursors is worth it.
func Full(request wire.HeadRequest, response wire.HeadResponse) bool {
	size := 0
	for _, records := range [][][]byte{response.Releases, response.Announcements} {
		for _, record := range records {
			size += len(record) + recordOverhead
		}
	}
	return len(response.Announcements) >= int(request.MaxAnnouncements) || size+wire.MaxGossipBytes+recordOverhead > responseRoom
}

// Close ends the session.
func (s *Session) Close() {
	// An error means that the stream is over, which is what was wanted.
	_ = s.stream.Close()
}
