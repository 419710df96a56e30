package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/wire"
)

// presenceInterval is the time between two signs of life.
const presenceInterval = 20 * time.Second

// presence says now and then that the node is there, what it runs, and how many announcements it made, from which
// others see what they missed.
type presence struct {
	key wire.Key
	log *slog.Logger
	// now describes the node; Created is filled in.
	now func() wire.Presence
	// publish gossips a signed sign of life.
	publish func(ctx context.Context, signed []byte) error
	// soon has an element when something changed that others should know before the interval is over.
	soon chan struct{}
}

// hurry asks for a sign of life now.
func (p *presence) hurry() {
	select {
	case p.soon <- struct{}{}:
	default:
	}
}

// run publishes until ctx ends.
func (p *presence) run(ctx context.Context) {
	interval := time.NewTicker(presenceInterval)
	defer interval.Stop()
	for {
		if err := p.say(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("a sign of life was not sent", "error", err)
		}
		select {
		case <-interval.C:
		case <-p.soon:
		case <-ctx.Done():
			return
		}
	}
}

func (p *presence) say(ctx context.Context) error {
	now := p.now()
	now.Created = time.Now()
	signed, err := wire.SignPresence(p.key, now)
	if err != nil {
		return err
	}
	if err := p.publish(ctx, signed.Raw); err != nil && !errors.Is(err, gossip.ErrNobody) {
		return err
	}
	return nil
}
