package learner

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// BenchmarkIntake takes groups from announcement to the synced log of a Folder, and trains on them with a trainer that
// does nothing: what is left is screening, fetching from memory, decoding, checking, storing and reading back. One
// operation is one group of 8 rollouts with 2 calls of 24 random tokens.
func BenchmarkIntake(b *testing.B) {
	n := newNetwork(b, plainNetwork(b).base, func(c *wire.Charter) {
		c.Rollout.GroupSize, c.Rollout.MaxCompletionTokens = 8, 24
	})
	random := rand.New(rand.NewPCG(1, 2))
	s := newSwarm()
	offers := make([]wire.SignedAnnouncement, b.N)
	size := 0
	for i := range offers {
		peer := key(byte(1 + i%10)).Peer()
		g := n.group(0, n.base.Digest(), peer, uint64(i))
		for _, r := range g.Rollouts {
			for _, c := range r.Calls {
				for j := range c.LogProbs {
					c.Completion[j], c.LogProbs[j] = 50+random.Int32N(150), -float32(random.IntN(1<<16))/(1<<16)
				}
			}
		}
		a, raw := encode(b, g, peer)
		s.add(raw)
		offers[i] = a
		size += len(raw)
	}
	store, err := OpenFolder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	c := n.config(s)
	lag := uint64(1 << 40)
	c.MaxLag, c.Store, c.Batch.Groups, c.Intake.Queue, c.Intake.PeerPending = &lag, store, 32, b.N+1, b.N+1
	c.Batch.Patience = time.Millisecond
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	began := make(chan struct{})
	done := make(chan struct{})
	c.Publisher = publisherFunc(func(_ context.Context, r wire.SignedRelease, _ *policy.Snapshot) error {
		if r.Version == 0 {
			close(began)
		}
		if int(r.GroupsTrained) == b.N {
			close(done)
		}
		return nil
	})
	l, err := Open(ctx, c)
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	<-began
	b.ResetTimer()
	for _, a := range offers {
		if v := l.Offer(a); !v.Accepted() {
			b.Fatal(v)
		}
	}
	select {
	case <-done:
	case err := <-ended:
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(size)/float64(b.N), "bytes/bundle")
	cancel()
	<-ended
}
