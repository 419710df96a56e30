package learner

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// BundleSuffix ends the names of the files that RunFolder reads.
const BundleSuffix = ".bundle"

// RunFolder trains on the bundles of a folder, with no network: on every file whose name ends in BundleSuffix, in the
// order of names, and returns the trained policy and the learner's last status. It makes the same checks and the same
// steps as a learner on a network, one after the other, so that the same files give the same weights; what remains at
// the end makes a last, smaller step. What a network's learner does for fairness or after a time does not apply: the
// bounds on one peer (BatchRule.PeerShare, Intake.PeerPending) and BatchRule.Patience. A file that is refused is
// counted, and told to the Observer, under its reason.
//
// With a durable Store, a run that was killed at any moment ends as if it had not been: the same run on the same folder
// and Store continues at the last version that was committed, reads on behind the file whose group completed it, and
// comes to the same weights, optimiser and counters, bit for bit. Once it has ended, files whose names sort behind the last
// one go on from there.
//
// The configuration is the one of a network's learner, except that the key need not be one of its learners', and that
// Key, Store (memory), Publisher (none) and Fetcher may be nil. Bundles of later versions than the steps make need
// Config.Behaviours, and old ones Config.MaxLag.
func RunFolder(ctx context.Context, dir string, c Config) (*policy.Snapshot, Status, error) {
	c.offline = true
	if c.Key == nil {
		c.Key = wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))) // of nobody: its releases go nowhere
	}
	if c.Store == nil {
		c.Store = NewMemory()
	}
	if c.Publisher == nil {
		c.Publisher = nowhere{}
	}
	c.Fetcher = nowhere{} // files are read directly
	l, err := Open(ctx, c)
	if err != nil {
		return nil, Status{}, err
	}
	if err := l.runFolder(ctx, dir); err != nil {
		return nil, l.Status(), fmt.Errorf("learner: training on %s: %w", dir, err)
	}
	return l.snapshot, l.Status(), nil
}

func (l *Learner) runFolder(ctx context.Context, dir string) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	files, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f os.DirEntry) bool { return !strings.HasSuffix(f.Name(), BundleSuffix) })
	for _, f := range files {
		if f.Name() <= l.file {
			continue
		}
		if err := l.addFile(ctx, filepath.Join(dir, f.Name())); err != nil {
			return err
		}
		l.file = f.Name()
		if len(l.ahead) > 0 {
			continue // What is accepted already is not trained on before as many files are read as were then.
		}
		if err := l.stepOldest(ctx, false); err != nil {
			return err
		}
	}
	return l.stepOldest(ctx, true)
}

// stepOldest makes steps of the oldest groups as long as enough wait, or, of the rest, any, until the chain is final.
func (l *Learner) stepOldest(ctx context.Context, rest bool) error {
	for !l.final() {
		l.mu.Lock()
		l.expire(l.config.Now())
		var batch []Record
		if rest || l.buffer.Enough() {
			batch = l.buffer.Rest()
		}
		l.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if err := l.step(ctx, batch, false); err != nil {
			return err
		}
	}
	return nil
}

// addFile takes one file through announcement, checks and store.
func (l *Learner) addFile(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := readBounded(name, wire.MaxBundleBytes)
	if errors.Is(err, wire.ErrTooLarge) {
		l.count(Malformed)
		return nil
	}
	if err != nil {
		return err
	}
	if cid := wire.SumCID(raw); l.ahead[cid] {
		delete(l.ahead, cid)
		return nil
	}
	b, err := bundle.Decode(raw, l.decode)
	if err != nil {
		l.count(Malformed)
		return nil //nolint:nilerr // counted, as what is wrong with others' files is
	}
	if v := l.Offer(announce(raw, b)); !v.Accepted() {
		return nil
	}
	j, ok, _ := l.next()
	if !ok {
		return fmt.Errorf("no room for %s: %d groups wait", name, l.config.Intake.Waiting)
	}
	examined, v := l.examine(j.announcement, raw)
	if !v.Accepted() {
		l.refuse(j.announcement, v)
		return nil
	}
	return l.accept(ctx, []arrival{l.arrived(j.announcement, raw, examined)})
}

func (l *Learner) count(r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons[r]++
}

// announce is the announcement that the peer of a bundle would have made, without a signature.
func announce(raw []byte, b *bundle.Bundle) wire.SignedAnnouncement {
	return wire.SignedAnnouncement{
		Announcement: b.Announcement(raw),
		Signer:       b.Peer,
	}
}

// readBounded reads a file of at most limit bytes; a larger one is wire.ErrTooLarge.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w", name, wire.ErrTooLarge)
	}
	return b, nil
}

// nowhere publishes to nobody and fetches from nobody.
type nowhere struct{}

func (nowhere) Publish(context.Context, wire.SignedRelease, *policy.Snapshot) error { return nil }

func (nowhere) Fetch(context.Context, wire.CID, wire.PeerID, int) ([]byte, error) {
	return nil, errors.New("a learner of a folder fetches nothing")
}
