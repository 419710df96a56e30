package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
)

// outboxSize is how many announcements wait to be gossiped. One that finds no room is pulled by whoever misses it.
const outboxSize = 256

// announcer takes the worker's bundles: it stores and signs them in one durable step and lets others know.
type announcer struct {
	key    wire.Key
	store  *store.Store
	events *api.Broadcaster
	log    *slog.Logger
	// publish gossips a signed announcement.
	publish func(ctx context.Context, signed []byte) error
	// made is told of every announcement once it is durable; it must not block.
	made func(wire.SignedAnnouncement)

	outbox chan []byte
}

var _ rollout.Announcer = (*announcer)(nil)

// Announce implements rollout.Announcer.
func (n *announcer) Announce(ctx context.Context, a wire.Announcement, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var signed wire.SignedAnnouncement
	own := store.Own{
		Bundle:  a.Bundle,
		Data:    body,
		Version: a.PolicyVersion,
		Sign: func(sequence uint64) (_ []byte, err error) {
			a.Sequence, a.Created = sequence, time.Now()
			if signed, err = wire.SignAnnouncement(n.key, a); err != nil {
				return nil, fmt.Errorf("sign announcement: %w", err)
			}
			return signed.Raw, nil
		},
	}
	if a.Purpose == wire.PurposeTrain {
		own.Draw = &a.Counter
	}
	if _, err := n.store.Announce(own); err != nil {
		return err
	}
	n.made(signed)
	select {
	case n.outbox <- signed.Raw:
	default:
		n.log.Debug("an announcement was not gossiped; others will pull it", "sequence", signed.Sequence)
	}
	n.events.Publish(api.Event{Type: api.EventBundle, Bundle: &api.BundleEvent{
		CID:              a.Bundle.String(),
		Purpose:          a.Purpose.String(),
		Version:          a.PolicyVersion,
		Sequence:         signed.Sequence,
		Counter:          a.Counter,
		Rollouts:         int(a.Rollouts),
		CompletionTokens: int(a.CompletionTokens),
		Bytes:            len(body),
	}})
	return nil
}

// run gossips announcements until ctx ends; then those that wait go out within a moment, or are left to be pulled.
func (n *announcer) run(ctx context.Context) {
	for {
		select {
		case signed := <-n.outbox:
			n.gossip(ctx, signed)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			for {
				select {
				case signed := <-n.outbox:
					n.gossip(last, signed)
				default:
					return
				}
			}
		}
	}
}

func (n *announcer) gossip(ctx context.Context, signed []byte) {
	err := n.publish(ctx, signed)
	if err != nil && ctx.Err() == nil && !errors.Is(err, gossip.ErrNobody) {
		n.log.Warn("an announcement was not gossiped; others will pull it", "error", err)
	}
}
