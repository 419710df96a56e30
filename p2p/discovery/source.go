package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Source finds addresses of peers that may be members.
type Source interface {
	// Name says in a word or two what the source is, for log lines.
	Name() string
	// Run reports what it finds, repeatedly, until ctx ends, and then returns nil after its goroutines have ended. An
	// error means that this source cannot work here. found does not block.
	Run(ctx context.Context, found func(peer.AddrInfo)) error
}

// Run runs every source until ctx ends. A source that fails is logged and left out; the others go on.
func Run(ctx context.Context, sources []Source, found func(peer.AddrInfo), log *slog.Logger) {
	var wg sync.WaitGroup
	for _, s := range sources {
		wg.Go(func() {
			if err := s.Run(ctx, found); err != nil && ctx.Err() == nil {
				log.Warn("a way to find peers is not available", "source", s.Name(), "error", err)
			}
		})
	}
	wg.Wait()
}

// ParseAddrs parses multiaddrs that end in /p2p/<peer id> and gathers those of one peer.
func ParseAddrs(addrs []string) ([]peer.AddrInfo, error) {
	parsed := make([]ma.Multiaddr, 0, len(addrs))
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", s, err)
		}
		if _, err := a.ValueForProtocol(ma.P_P2P); err != nil {
			return nil, fmt.Errorf("address %q: %w", s, errNoPeerID)
		}
		parsed = append(parsed, a)
	}
	return peer.AddrInfosFromP2pAddrs(parsed...)
}

var errNoPeerID = errors.New("it must end in /p2p/<peer id>, so that nobody can answer in that peer's place")

// Bootstrap is the Source of addresses that the operator gave.
type Bootstrap []peer.AddrInfo

// Name implements Source.
func (Bootstrap) Name() string { return "bootstrap" }

// Run implements Source. The addresses are reported again every few minutes, in case that others displaced them.
func (b Bootstrap) Run(ctx context.Context, found func(peer.AddrInfo)) error {
	const interval = 5 * time.Minute
	for {
		for _, info := range b {
			found(info)
		}
		if !wait(ctx, interval) {
			return nil
		}
	}
}

// wait returns true after d, or false as soon as ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
