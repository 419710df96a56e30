package node

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/wire"
)

// A founder trains with two volunteers until its last version is evaluated; everybody ends at that version, the ledger
// says what was used, and a latecomer jumps to the end.
func TestNetworkTrainsToTheEnd(t *testing.T) {
	t.Parallel()
	c := settings(config.RoleLearner)
	c.Learner.Steps = 3
	o := options(t, c)
	o.Found = parityNetwork(t)
	founder := start(t, o)
	a := start(t, join(t, founder, config.RoleRollout))
	b := start(t, join(t, founder, config.RoleRollout))

	founder.until("the learner is finished", func() bool { return founder.Status().Learner.Finished })
	for _, n := range []*running{a, b} {
		n.until("the final policy is in use", func() bool { s := n.Status(); return s.Policy != nil && s.Policy.Version == 3 && s.Policy.Final })
	}
	status := founder.Status()
	if status.Head.ID != a.Status().Head.ID || status.Head.Version != 3 {
		t.Errorf("heads differ: %+v, %+v", status.Head, a.Status().Head)
	}
	complete := map[uint64]int{}
	for _, e := range status.Learner.Evaluations {
		if e.Complete && e.Tasks == 8 {
			complete[e.Version]++
		}
	}
	if complete[0] != 2 || complete[3] != 2 {
		t.Errorf("evaluations: %+v", status.Learner.Evaluations)
	}
	ledger, err := founder.Ledger(0, 10)
	if err != nil || len(ledger) != 4 {
		t.Fatalf("ledger: %+v, %v", ledger, err)
	}
	for _, e := range ledger[1:] {
		if e.Version < 3 && len(e.Trained) == 0 {
			t.Errorf("version %d trained on nothing", e.Version)
		}
	}
	// A step takes what there is when its patience is over; the last one may take nothing.
	if status.Learner.RolloutsAccepted < 2*4 || status.Learner.Reasons["accepted"] == 0 {
		t.Errorf("learner: %+v", status.Learner)
	}
	if a.Status().Rollout.Total.Groups == 0 || b.Status().Rollout.Total.Groups == 0 {
		t.Error("a volunteer ran nothing")
	}

	late := start(t, join(t, a, config.RoleRelay))
	late.until("the latecomer has the final policy", func() bool { s := late.Status(); return s.Policy != nil && s.Policy.Version == 3 })
	if releases, err := late.store.Releases(0, 10); err != nil || len(releases) == 0 {
		t.Errorf("the latecomer keeps %d releases, %v", len(releases), err)
	}
}

// A network in data folders goes on after every node of it was stopped and started again.
func TestRestartContinues(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	founding := func() Options {
		c := settings(config.RoleLearner, config.RoleRollout)
		o := options(t, c)
		o.Folder, o.Found = filepath.Join(folder, "founder"), parityNetwork(t)
		return o
	}
	founder := start(t, founding())
	founder.until("version 1 is out", func() bool { h := founder.Status().Head; return h != nil && h.Version >= 1 })
	id, peer := founder.Charter().ID, founder.Peer()

	volunteer := join(t, founder, config.RoleRollout)
	volunteer.Folder = filepath.Join(folder, "volunteer")
	v := start(t, volunteer)
	v.until("the volunteer announced something", func() bool { return v.Status().NextSequence > 0 })
	announced := v.Status().NextSequence
	v.end()
	version := founder.Status().Head.Version
	founder.end()

	// A learner asks nobody for the policy that it is about to publish.
	idle, err := New(t.Context(), founding())
	if err != nil {
		t.Fatal(err)
	}
	if wanted := idle.policies.fetching(); wanted != nil {
		t.Errorf("a learner that starts wants version %d", wanted.release.Version)
	}
	if err := idle.Close(); err != nil {
		t.Fatal(err)
	}

	founder = start(t, founding())
	if founder.Charter().ID != id || founder.Peer() != peer {
		t.Errorf("the restarted founder is %s of network %s", founder.Peer(), founder.Charter().ID)
	}
	if head := founder.Status().Head; head == nil || head.Version < version {
		t.Errorf("the restarted founder's head is %+v, before it was %d", head, version)
	}
	founder.until("a new version is out", func() bool { return founder.Status().Head.Version > version })

	// The charter is known now: no bootstrap is needed to start.
	volunteer.Config.Network, volunteer.Config.P2P.Bootstrap = "", founder.Addresses()
	v = start(t, volunteer)
	if next := v.Status().NextSequence; next < announced {
		t.Errorf("the restarted volunteer starts at announcement %d, before it had made %d", next, announced)
	}
	v.until("the volunteer goes on", func() bool { return v.Status().NextSequence > announced })
}

// However its context ends, a node that stops in order has not failed.
func TestRunEndsWithItsContext(t *testing.T) {
	o := options(t, settings(config.RoleLearner))
	o.Found = parityNetwork(t)
	n, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := errors.Join(n.Run(ctx), n.Close()); err != nil {
		t.Error(err)
	}
}

func TestLocalAPI(t *testing.T) {
	t.Parallel()
	o := options(t, settings(config.RoleLearner, config.RoleRollout))
	o.Folder, o.Found = t.TempDir(), parityNetwork(t)
	n := start(t, o)
	view := config.View(o.Folder)
	address, err := view.ReadAddress()
	if err != nil {
		t.Fatal(err)
	}
	token, err := view.ReadToken()
	if err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(address, token)
	defer client.Close()

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	seen := map[api.EventType]bool{}
	enough := errors.New("enough")
	err = client.Events(ctx, func(e api.Event) error {
		seen[e.Type] = true
		if seen[api.EventBundle] && seen[api.EventVerdict] && seen[api.EventStep] {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatalf("events: %v, seen %v", err, seen)
	}
	status, err := client.Status(ctx)
	if err != nil || status.Peer != n.Peer().String() || status.Head == nil || status.Learner == nil || status.Rollout == nil {
		t.Errorf("status: %+v, %v", status, err)
	}
	if !strings.HasPrefix(status.Join, "lightswarm join "+n.Charter().ID.String()+" --bootstrap /ip4/127.0.0.1/tcp/") {
		t.Errorf("join command: %s", status.Join)
	}
	if runs, err := client.Runs(ctx); err != nil || len(runs) == 0 || runs[0].Rollouts == 0 {
		t.Errorf("runs: %+v, %v", runs, err)
	}
	if ledger, err := client.Ledger(ctx, 1, 1); err != nil || len(ledger) != 1 || ledger[0].Version != 1 {
		t.Errorf("ledger: %+v, %v", ledger, err)
	}
	checkMetrics(ctx, t, address, token)

	if err := client.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-n.done:
		n.done <- err
	case <-ctx.Done():
		t.Fatal("the node did not end")
	}
	n.end()
	if _, err := view.ReadAddress(); err == nil {
		t.Error("the API's address is still there")
	}
}

// checkMetrics checks that metrics are there and that no label names a peer or a CID.
func checkMetrics(ctx context.Context, t *testing.T, address, token string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lightswarm_head_version", "lightswarm_rollout_calls_total", `lightswarm_gossip_troubles_total{kind="undelivered"}`, `lightswarm_pull_troubles_total{kind="lost"}`, `lightswarm_learner_bundles_total{reason="accepted"}`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("metrics have no %s", want)
		}
	}
	for _, unbounded := range []string{"12D3Koo", "bafkrei"} {
		if strings.Contains(string(body), unbounded) {
			t.Errorf("a label starts with %s", unbounded)
		}
	}
}

// replaceIdentity copies the identity of one data folder over another's.
func replaceIdentity(t *testing.T, from, to string) {
	t.Helper()
	key, err := os.ReadFile(config.View(from).IdentityFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config.View(to).IdentityFile(), key, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	founded := options(t, settings(config.RoleLearner))
	founded.Folder, founded.Found = t.TempDir(), parityNetwork(t)
	n, err := New(ctx, founded)
	if err != nil {
		t.Fatal(err)
	}
	id := n.Charter().ID
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	other := wire.SumCID([]byte("other")).String()

	for name, c := range map[string]struct {
		change func(*Options)
		is     error
		want   string
	}{
		"no network":      {func(o *Options) { o.Folder = t.TempDir() }, nil, "found one with lightswarm network create"},
		"bad settings":    {func(o *Options) { o.Config.Learner.Groups = 0 }, nil, "learner.groups"},
		"another network": {func(o *Options) { o.Folder, o.Config.Network = founded.Folder, other }, store.ErrOtherNetwork, id.String()},
		"nobody there":    {func(o *Options) { o.Config.Network = other }, context.DeadlineExceeded, "--bootstrap"},
		"not a learner": {func(o *Options) {
			o.Folder, o.Config.Network = founded.Folder, ""
			stranger := t.TempDir()
			f, err := config.OpenFolder(stranger)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Identity()
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			replaceIdentity(t, stranger, founded.Folder)
		}, ErrNotLearner, "no learner"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			o := options(t, settings(config.RoleLearner))
			c.change(&o)
			n, err := New(ctx, o)
			if err == nil {
				n.Close()
				t.Fatal("no error")
			}
			if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
