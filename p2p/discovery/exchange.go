package discovery

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/record"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// Protocol is peer exchange: one PeersRequest frame, answered by one PeersResponse frame.
const Protocol protocol.ID = "/lightswarm/peers/1"

const (
	exchangeTimeout    = 10 * time.Second
	exchangeAskAtOnce  = 3 // Peers asked in one round.
	exchangeSoon       = 10 * time.Second
	exchangeLater      = 3 * time.Minute
	exchangeFirstAfter = 2 * time.Second
)

// Exchange is the Source that asks connected members for addresses of others, and the server that answers such
// questions. Addresses travel as libp2p signed peer records, so that nobody can make up another peer's addresses.
type Exchange struct {
	host    host.Host
	network wire.CID
	record  func(peer.ID) []byte
	members func() int
	want    int
	rng     *rand.Rand // Used by Run alone.
	server  *stream.Server
}

// NewExchange returns an exchange that answers from now on, until Close. It tells others about connected peers for
// which record returns a signed peer record, as it came in the identify exchange; for peers that are not members it
// returns nil. Run asks often while members counts fewer than want and rarely beyond.
func NewExchange(h host.Host, network wire.CID, record func(peer.ID) []byte, members func() int, want int, rng *rand.Rand) *Exchange {
	x := &Exchange{host: h, network: network, record: record, members: members, want: want, rng: rng}
	x.server = stream.Serve(h, Protocol, stream.Limits{Total: 32, PerPeer: 2}, x.answer)
	return x
}

// Close stops answering.
func (x *Exchange) Close() { x.server.Close() }

// Name implements Source.
func (*Exchange) Name() string { return "peer exchange" }

// Run implements Source.
func (x *Exchange) Run(ctx context.Context, found func(peer.AddrInfo)) error {
	for pause := exchangeFirstAfter; wait(ctx, pause); {
		peers := x.host.Network().Peers()
		slices.Sort(peers) // So that a seeded generator chooses the same peers again.
		x.rng.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
		for _, p := range peers[:min(len(peers), exchangeAskAtOnce)] {
			// A peer that does not answer is no loss; the next round asks others.
			infos, err := x.Ask(ctx, p)
			if err != nil {
				continue
			}
			for _, info := range infos {
				found(info)
			}
		}
		interval := exchangeLater
		if x.members() < x.want {
			interval = exchangeSoon
		}
		pause = interval*3/4 + time.Duration(x.rng.Int64N(int64(interval/2)))
	}
	return nil
}

// Ask asks one connected peer for members. Every record in the answer is verified; one that is not sound makes the
// whole answer an error.
func (x *Exchange) Ask(ctx context.Context, p peer.ID) ([]peer.AddrInfo, error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "peer exchange"), exchangeTimeout)
	defer cancel()
	request, err := wire.EncodePeersRequest(wire.PeersRequest{Network: x.network, MaxPeers: wire.MaxPeerRecords})
	if err != nil {
		return nil, err
	}
	s, err := x.host.NewStream(ctx, p, Protocol)
	if err != nil {
		return nil, fmt.Errorf("ask %s for peers: %w", p, err)
	}
	// Resetting and closing fail only when the stream is over anyway.
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	defer func() { _ = s.Close() }()
	if err := stream.WriteFrame(s, request); err != nil {
		return nil, fmt.Errorf("ask %s for peers: %w", p, err)
	}
	raw, err := stream.ReadFrame(bufio.NewReader(s), wire.MaxPeersResponseBytes)
	if err != nil {
		return nil, fmt.Errorf("ask %s for peers: %w", p, err)
	}
	infos, err := openRecords(raw)
	if err != nil {
		return nil, fmt.Errorf("peers from %s: %w", p, err)
	}
	return reachable(infos, s.Conn().RemoteMultiaddr()), nil
}

// answer reads the request and writes the records of random connected members.
func (x *Exchange) answer(s network.Stream) error {
	if err := s.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return err
	}
	raw, err := stream.ReadFrame(bufio.NewReaderSize(s, wire.MaxPeersRequestBytes), wire.MaxPeersRequestBytes)
	if err != nil {
		return err
	}
	request, err := wire.DecodePeersRequest(raw)
	if err != nil {
		return err
	}
	var response wire.PeersResponse
	if request.Network == x.network {
		response.Records = x.records(s.Conn().RemotePeer(), int(request.MaxPeers))
	}
	encoded, err := wire.EncodePeersResponse(response)
	if err != nil {
		return err
	}
	return stream.WriteFrame(s, encoded)
}

// records returns up to most signed records of connected members other than asker, within the response's size.
func (x *Exchange) records(asker peer.ID, most int) [][]byte {
	peers := x.host.Network().Peers()
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	var records [][]byte
	for room, i := wire.MaxPeersResponseBytes/2, 0; i < len(peers) && len(records) < most; i++ {
		encoded := x.record(peers[i])
		if peers[i] == asker || encoded == nil || len(encoded) > wire.MaxPeerRecordBytes || len(encoded) > room {
			continue
		}
		records = append(records, encoded)
		room -= len(encoded)
	}
	return records
}

// openRecords decodes a response and verifies each record: its signature, and that it speaks of its signer.
func openRecords(raw []byte) ([]peer.AddrInfo, error) {
	response, err := wire.DecodePeersResponse(raw)
	if err != nil {
		return nil, err
	}
	infos := make([]peer.AddrInfo, 0, len(response.Records))
	for _, encoded := range response.Records {
		envelope, rec, err := record.ConsumeEnvelope(encoded, peer.PeerRecordEnvelopeDomain)
		if err != nil {
			return nil, fmt.Errorf("peer record: %w", err)
		}
		peerRecord, ok := rec.(*peer.PeerRecord)
		if !ok || !peerRecord.PeerID.MatchesPublicKey(envelope.PublicKey) {
			return nil, fmt.Errorf("peer record: %w: it was not signed by the peer that it speaks of", wire.ErrSignature)
		}
		infos = append(infos, peer.AddrInfo{ID: peerRecord.PeerID, Addrs: peerRecord.Addrs})
	}
	return infos, nil
}

// reachable leaves out addresses that cannot work from here: private ones, when the peer that told us is itself
// reached over the internet. Otherwise a stranger could make us dial into our own local network.
func reachable(infos []peer.AddrInfo, via ma.Multiaddr) []peer.AddrInfo {
	if !manet.IsPublicAddr(via) {
		return infos
	}
	var kept []peer.AddrInfo
	for _, info := range infos {
		info.Addrs = slices.DeleteFunc(info.Addrs, func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) })
		if len(info.Addrs) > 0 {
			kept = append(kept, info)
		}
	}
	return kept
}
