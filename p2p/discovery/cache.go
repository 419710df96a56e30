package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Cache keeps members' addresses across restarts. Its methods are called by one goroutine.
type Cache interface {
	// Load returns what the last Save was given.
	Load() ([]peer.AddrInfo, error)
	// Save replaces what the cache holds.
	Save([]peer.AddrInfo) error
}

// MaxCached is how many peers a cache is given at most.
const MaxCached = 256

// Cached is the Source of addresses that worked before a restart. It also keeps its cache up to date.
type Cached struct {
	// Host knows who is connected.
	Host host.Host
	// Cache is read once and then written.
	Cache Cache
	// Member reports whether a connected peer has shown that it belongs to the network.
	Member func(peer.ID) bool
}

// Name implements Source.
func (*Cached) Name() string { return "peer cache" }

// Run implements Source. It saves the connected members soon after the first one, less and less often up to every few
// minutes, and when ctx ends. Until it is that seldom, members that it has not met again since the start stay in the
// cache: a node that is killed early must not forget them.
func (c *Cached) Run(ctx context.Context, found func(peer.AddrInfo)) error {
	const first, last = 2 * time.Second, 2 * time.Minute
	before, err := c.Cache.Load()
	if err != nil {
		return fmt.Errorf("read the peer cache: %w", err)
	}
	for _, info := range before {
		found(info)
	}
	for interval := first; ; {
		ended := !wait(ctx, interval)
		if members := c.members(); len(members) > 0 { // An empty list would only forget peers that may come back.
			if interval < last {
				members = c.join(members, before)
			}
			if err := c.Cache.Save(members); err != nil {
				return fmt.Errorf("write the peer cache: %w", err)
			}
			interval = min(2*interval, last)
		}
		if ended {
			return nil
		}
	}
}

// join appends others that are not connected, up to MaxCached in all.
func (c *Cached) join(list, others []peer.AddrInfo) []peer.AddrInfo {
	for _, info := range others {
		if len(list) < MaxCached && c.Host.Network().Connectedness(info.ID) != network.Connected {
			list = append(list, info)
		}
	}
	return list
}

// members returns the connected members with the addresses that they listen on.
func (c *Cached) members() []peer.AddrInfo {
	var infos []peer.AddrInfo
	for _, p := range c.Host.Network().Peers() {
		if len(infos) == MaxCached {
			break
		}
		if c.Host.Network().Connectedness(p) != network.Connected || !c.Member(p) {
			continue
		}
		if info := c.Host.Peerstore().PeerInfo(p); len(info.Addrs) > 0 {
			infos = append(infos, info)
		}
	}
	return infos
}
