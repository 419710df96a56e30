package gossip

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pubsubpb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/wire"
)

// ErrNobody says that a record was published while no other member was listening. Peers pull it later.
var ErrNobody = errors.New("nobody is listening")

// ErrRefused says that a node tried to publish a record that other nodes would reject.
var ErrRefused = errors.New("other nodes would reject it")

const (
	maxMessageBytes  = 4 << 10 // One GossipSub message: a record, and around it the topic and control messages.
	validateQueue    = 1024
	outboundQueue    = 256
	subscriberBuffer = 1024
	maxSubscriptions = 16 // Topics in one message of a peer.
)

// Config says how a node gossips. Every field without "optional" is required.
type Config struct {
	// Host is what gossip runs on. Gossip should start before it dials.
	Host host.Host
	// Rules decide, with View and Memory, what is accepted.
	Rules *Rules
	// View is the state of the node.
	View View
	// Memory is told what was announced but not accepted, and limits rates.
	Memory *Memory
	// Score is the application's part of a peer's score. Called often and concurrently. Optional.
	Score func(peer.ID) float64
	// PublishWait is how long a publish waits for somebody to listen.
	PublishWait time.Duration
	// OnRelease, OnAnnouncement and OnPresence receive accepted records of other peers, each on a goroutine of its
	// kind. They must not block for long: beyond subscriberBuffer waiting records of a kind are lost.
	OnRelease      func(wire.SignedRelease)
	OnAnnouncement func(wire.SignedAnnouncement)
	OnPresence     func(wire.SignedPresence)
	// OnRefused receives learners' releases that are Forked or in a NewerFormat, as Rules.Release returns them, from the
	// goroutines that check records. Optional.
	OnRefused func(wire.SignedRelease, Reason)
}

// Gossip is a node's part in the topics of one network. It is safe for concurrent use.
type Gossip struct {
	cfg    Config
	topics [kinds]*pubsub.Topic
	cancel context.CancelFunc
	ended  sync.WaitGroup // One delivery goroutine for each kind.

	verdicts           Verdicts
	tracer             tracer
	published, unheard atomic.Uint64
	scores             atomic.Pointer[map[peer.ID]float64]
}

// Topic returns the topic of a kind of record in a network.
func Topic(network wire.CID, kind Kind) string {
	return "/lightswarm/" + network.String() + "/" + kind.String() + "/1"
}

// Join subscribes to the network's topics until Close.
func Join(cfg Config) (*Gossip, error) {
	if cfg.Score == nil {
		cfg.Score = func(peer.ID) float64 { return 0 }
	}
	if cfg.OnRefused == nil {
		cfg.OnRefused = func(wire.SignedRelease, Reason) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &Gossip{cfg: cfg, cancel: cancel}
	if err := g.join(ctx); err != nil {
		g.Close()
		return nil, fmt.Errorf("join the network's gossip: %w", err)
	}
	return g, nil
}

func (g *Gossip) join(ctx context.Context) error {
	names := make([]string, kinds)
	for kind := range Kind(kinds) {
		names[kind] = Topic(g.cfg.Rules.Network, kind)
	}
	ps, err := pubsub.NewGossipSub(ctx, g.cfg.Host,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithMaxMessageSize(maxMessageBytes),
		pubsub.WithValidateQueueSize(validateQueue),
		pubsub.WithPeerOutboundQueueSize(outboundQueue),
		pubsub.WithFloodPublish(true), // A node's own records go to every peer at once: one hop less to the learner.
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(
			pubsub.NewAllowlistSubscriptionFilter(names...), maxSubscriptions)),
		pubsub.WithPeerScore(scoreParams(names, g.cfg.Score)),
		pubsub.WithPeerScoreInspect(func(scores map[peer.ID]float64) { g.scores.Store(&scores) }, 10*time.Second),
		pubsub.WithRawTracer(&g.tracer),
	)
	if err != nil {
		return err
	}
	for kind := range Kind(kinds) {
		if err := ps.RegisterTopicValidator(names[kind], g.validator(kind), pubsub.WithValidatorInline(true)); err != nil {
			return err
		}
		if g.topics[kind], err = ps.Join(names[kind]); err != nil {
			return err
		}
		sub, err := g.topics[kind].Subscribe(pubsub.WithBufferSize(subscriberBuffer))
		if err != nil {
			return err
		}
		g.ended.Go(func() { g.deliver(ctx, sub) })
	}
	return nil
}

// messageID is sha256(topic || data).
func messageID(m *pubsubpb.Message) string {
	h := sha256.New()
	h.Write([]byte(m.GetTopic()))
	h.Write(m.GetData())
	return string(h.Sum(nil))
}

// validator returns the check of a topic's messages. The work is all computing, so it is done inline, by as many
// workers as there are processors.
func (g *Gossip) validator(kind Kind) pubsub.ValidatorEx {
	return func(_ context.Context, from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
		if from == g.cfg.Host.ID() {
			return pubsub.ValidationAccept // Publish has checked it.
		}
		record, reason := g.judge(kind, time.Now(), m.Data)
		g.verdicts.Count(kind, reason)
		m.ValidatorData = record
		return reason.result()
	}
}

// judge applies the rules and the rate limit. What exists but is not accepted now is left to be pulled.
func (g *Gossip) judge(kind Kind, now time.Time, raw []byte) (record any, reason Reason) {
	switch kind {
	case Release:
		r, reason := g.cfg.Rules.Release(g.cfg.View, raw)
		if reason == Forked || reason == NewerFormat && r.Signer != "" {
			g.cfg.OnRefused(r, reason)
		}
		return r, reason
	case Announcement:
		a, reason := g.cfg.Rules.Announcement(g.cfg.View, raw)
		if reason == Accepted && !g.cfg.Memory.Allow(kind, a.Signer, now) {
			reason = RateLimited
		}
		switch reason {
		case RateLimited, UnknownVersion, TooFarAhead:
			g.cfg.Memory.Exists(a.Signer, a.Sequence)
		}
		return a, reason
	default:
		p, reason := g.cfg.Rules.Presence(g.cfg.View, now, raw)
		if reason == Accepted && !g.cfg.Memory.Allow(kind, p.Signer, now) {
			reason = RateLimited
		}
		return p, reason
	}
}

// deliver hands accepted records of one kind over.
func (g *Gossip) deliver(ctx context.Context, sub *pubsub.Subscription) {
	defer sub.Cancel()
	for {
		m, err := sub.Next(ctx)
		if err != nil {
			return // Close, the only thing that ends a subscription.
		}
		switch record := m.ValidatorData.(type) { // The node's own messages have none.
		case wire.SignedRelease:
			g.cfg.OnRelease(record)
		case wire.SignedAnnouncement:
			g.cfg.OnAnnouncement(record)
		case wire.SignedPresence:
			g.cfg.OnPresence(record)
		}
	}
}

// Publish sends one of the node's own records. It waits up to PublishWait for a listener; when there is none it still
// sends, in case that one comes within seconds, and returns an error that wraps ErrNobody. It fails with
// wire.ErrTooLarge or ErrRefused when others would not accept the record.
func (g *Gossip) Publish(ctx context.Context, kind Kind, signed []byte) error {
	if len(signed) > wire.MaxGossipBytes {
		return fmt.Errorf("publish %s: %w: %d bytes, the limit is %d", kind, wire.ErrTooLarge, len(signed), wire.MaxGossipBytes)
	}
	if reason := g.cfg.Rules.open(kind, signed); reason != Accepted {
		return fmt.Errorf("publish %s: %w: %s", kind, ErrRefused, reason)
	}
	waiting, cancel := context.WithTimeout(ctx, g.cfg.PublishWait)
	defer cancel()
	err := g.topics[kind].Publish(waiting, signed, pubsub.WithReadiness(pubsub.MinTopicSize(1)))
	if err == nil {
		g.published.Add(1)
		return nil
	}
	if waiting.Err() == nil || ctx.Err() != nil {
		return fmt.Errorf("publish %s: %w", kind, err)
	}
	g.unheard.Add(1)
	if err := g.topics[kind].Publish(ctx, signed); err != nil {
		return fmt.Errorf("publish %s: %w", kind, err)
	}
	return fmt.Errorf("publish %s: %w after %s; peers will pull it", kind, ErrNobody, g.cfg.PublishWait)
}

// Score is a peer's gossip score as of some seconds ago; unknown peers have 0.
func (g *Gossip) Score(p peer.ID) float64 {
	if scores := g.scores.Load(); scores != nil {
		return (*scores)[p]
	}
	return 0
}

// Stats returns the counters.
func (g *Gossip) Stats() Stats {
	return Stats{
		Verdicts:    g.verdicts.Map(),
		Repeats:     g.tracer.repeats.Load(),
		Published:   g.published.Load(),
		Unheard:     g.unheard.Load(),
		Undelivered: g.tracer.undelivered.Load(),
		Unsent:      g.tracer.unsent.Load(),
		Throttled:   g.tracer.throttled.Load(),
	}
}

// Close leaves the topics and waits for the handlers.
func (g *Gossip) Close() {
	g.cancel()
	g.ended.Wait()
}
