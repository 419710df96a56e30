package node

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
)

var _ api.Node = (*Node)(nil)

// Status implements api.Node.
func (n *Node) Status() api.Status {
	current, _ := n.policies.newest()
	s := api.Status{
		Version:      n.options.Version,
		Peer:         n.key.Peer().String(),
		Roles:        rolesJSON(n.roles),
		Started:      n.started,
		Phase:        n.phase(),
		Network:      networkJSON(n.charter),
		Head:         releaseJSON(n.head()),
		Policy:       releaseJSON(current),
		Addresses:    n.Addresses(),
		Connected:    n.network.Stats().Members,
		Join:         n.JoinCommand(),
		NextSequence: n.store.NextSequence(),
		Store: api.StoreStatus{
			BlockBytes: n.store.BlockBytes(), MaxBlockBytes: int64(n.options.Config.Store.MaxBlockBytes),
		},
	}
	if w := n.policies.fetching(); w != nil {
		s.Fetching = releaseJSON(&w.release)
	}
	if n.worker != nil {
		stats := n.worker.Stats()
		s.Rollout = &api.RolloutStatus{
			Activity: string(stats.Activity), Since: stats.Since, Running: stats.Running, Total: runJSON(stats.Version, stats.Total),
		}
		if n.player != nil {
			s.Rollout.Agent = n.player.status()
		}
	}
	if n.trainer != nil {
		s.Learner = n.trainer.status()
	}
	return s
}

// Runs implements api.Node.
func (n *Node) Runs() []api.Run {
	if n.worker == nil {
		return nil
	}
	stats := n.worker.Stats()
	var runs []api.Run
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(stats.Versions))) {
		runs = append(runs, runJSON(version, stats.Versions[version]))
	}
	return runs
}

// Peers implements api.Node.
func (n *Node) Peers() []api.Peer {
	var peers []api.Peer
	for _, p := range n.network.Peers() {
		peers = append(peers, api.Peer{
			ID:           p.Peer.String(),
			Address:      p.Addr,
			Inbound:      p.Inbound,
			Limited:      p.Limited,
			Since:        p.Since,
			Member:       p.Member,
			Learner:      p.Learner,
			HeadVersion:  p.HeadVersion,
			Roles:        rolesJSON(p.Presence.Roles),
			NextSequence: p.Presence.NextSequence,
			AgentVersion: p.Presence.AgentVersion,
			LastPresence: p.Presence.Created,
			RoundTripMS:  float64(p.Latency.Microseconds()) / 1000,
			Score:        p.Score,
		})
	}
	slices.SortFunc(peers, func(a, b api.Peer) int { return cmp.Compare(a.ID, b.ID) })
	return peers
}

// Ledger implements api.Node.
func (n *Node) Ledger(from uint64, limit int) ([]api.LedgerEntry, error) {
	entries, err := n.store.Ledger(from, limit)
	if err != nil {
		return nil, err
	}
	shown := make([]api.LedgerEntry, len(entries))
	for i, e := range entries {
		raw, _, err := n.store.Release(e.Version)
		if err != nil {
			return nil, err
		}
		release, err := wire.OpenRelease(raw)
		if err != nil {
			return nil, fmt.Errorf("read the release of version %d: %w", e.Version, err)
		}
		shown[i] = api.LedgerEntry{
			Version: e.Version, Release: e.Release.String(), Policy: policy.Digest(release.Policy.Digest).String(),
			Manifest: release.Policy.Anchor.String(),
			Trained:  cidsJSON(e.Trained), Evaluated: cidsJSON(e.Evaluated),
		}
		if release.Parent.Defined() {
			shown[i].Parent = release.Parent.String()
		}
	}
	return shown, nil
}

// JoinCommand is what a volunteer types to run rollouts for the node's network.
func (n *Node) JoinCommand() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lightswarm join %s", n.charter.ID)
	for _, address := range bootstrapAddresses(n.Addresses()) {
		fmt.Fprintf(&b, " --bootstrap %s", address)
	}
	return b.String()
}

// maxBootstrap is how many addresses a join command names.
const maxBootstrap = 4

// bootstrapAddresses picks the addresses that others can best use: public ones, else those of the local network, else
// those of the machine itself.
func bootstrapAddresses(all []string) []string {
	reach := func(text string) int {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return 0
		}
		ip, err := manet.ToIP(m)
		if err != nil {
			return 3 // a name
		}
		address, _ := netip.AddrFromSlice(ip)
		switch {
		case address.IsLoopback():
			return 1
		case address.Unmap().IsPrivate() || address.IsLinkLocalUnicast():
			return 2
		}
		return 3
	}
	best := 0
	for _, address := range all {
		best = max(best, reach(address))
	}
	var picked []string
	for _, address := range all {
		if reach(address) == best && len(picked) < maxBootstrap {
			picked = append(picked, address)
		}
	}
	return picked
}

// status is the learner's part of Status.
func (t *trainer) status() *api.LearnerStatus {
	s := t.learner.Status()
	shown := &api.LearnerStatus{
		Version:       s.Head.Version,
		Queued:        s.Queued,
		Fetching:      s.Fetching,
		Waiting:       s.Waiting,
		Teaching:      s.Teaching,
		Batch:         t.batch.Groups,
		Most:          t.batch.Most(),
		Training:      s.Training,
		StepDue:       s.Due,
		GroupsTrained: s.GroupsTrained,
		TokensTrained: s.TokensTrained,
		Reasons:       countsJSON(s.Reasons),
		Evaluations:   []api.Evaluation{},
		Alerts:        []api.Alert{},
		Finished:      t.finished.Load(),
	}
	for _, e := range s.Evaluations {
		shown.Evaluations = append(shown.Evaluations, evaluationJSON(e))
	}
	for _, a := range t.training.alerts() {
		shown.Alerts = append(shown.Alerts, alertJSON(a))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	shown.RolloutsAccepted, shown.RolloutsRefused = t.accepted, countsJSON(t.refused)
	return shown
}

func networkJSON(c wire.SignedCharter) api.Network {
	s := api.Network{ID: c.ID.String(), Name: c.Name, GroupSize: int(c.Rollout.GroupSize), MaxLag: int(c.Rollout.MaxLag)}
	for _, p := range c.Learners {
		s.Learners = append(s.Learners, p.String())
	}
	for _, e := range c.Environments {
		s.Environments = append(s.Environments, e.Name)
	}
	return s
}

func releaseJSON(r *wire.SignedRelease) *api.Release {
	if r == nil {
		return nil
	}
	return &api.Release{
		Version:       r.Version,
		ID:            r.ID.String(),
		Policy:        policy.Digest(r.Policy.Digest).String(),
		Manifest:      r.Policy.Anchor.String(),
		Created:       r.Created,
		GroupsTrained: r.GroupsTrained,
		Evaluate:      r.Evaluate,
		Final:         r.Final,
	}
}

func evaluationJSON(e learner.Evaluation) api.Evaluation {
	low, high := e.Interval()
	return api.Evaluation{
		Version: e.Version, Purpose: e.Purpose.String(), Tasks: e.Tasks, Expected: e.Expected, Complete: e.Complete(),
		Success: e.Success(), Low: low, High: high, RewardMean: e.RewardMean,
	}
}

func stepJSON(s *learner.Step) *api.StepEvent {
	trained := s.TrainedTokens > 0
	shown := &api.StepEvent{
		Version: s.Version, Final: s.Final,
		WaitedSeconds: s.Waited.Seconds(), TrainedSeconds: s.Trained.Seconds(),
		Groups: s.Groups, Learned: s.Learned, Peers: s.Peers, MostGroups: s.MostGroups,
		Rollouts: s.Rollouts, RewardMean: learner.Figure(s.RewardMean, s.Rollouts > 0), Solved: learner.Figure(s.Solved, s.Rollouts > 0),
		AdvantageStd: learner.Figure(s.AdvantageStd, len(s.TrainedLengths) > 0),
		Lags:         s.Lags, Drops: make(map[string]int, len(s.Drops)),
		Tokens: s.Tokens, TrainedTokens: s.TrainedTokens,
		Loss: learner.Figure(s.Loss, trained), Clipped: learner.Figure(s.Clipped, trained),
		EffectiveSamples: learner.Figure(s.EffectiveSamples, trained), KL: learner.Figure(s.KL, trained),
		Entropy: learner.Figure(s.Entropy, trained), GradientNorm: learner.Figure(s.GradientNorm, trained),
		LearningRate: learner.Figure(s.LearningRate, trained), Skipped: s.Skipped,
		Waiting: s.Waiting, Active: s.Active, Quota: s.Quota, Yield: s.Yield, GroupsTrained: s.GroupsTrained,
	}
	for reason, count := range s.Drops {
		shown.Drops[string(reason)] = count
	}
	return shown
}

func runJSON(version uint64, t rollout.Tally) api.Run {
	r := api.Run{
		Version: version, Groups: t.Groups, Blocks: t.Blocks, Rollouts: t.Rollouts, Calls: t.Calls,
		PromptTokens: t.PromptTokens, CompletionTokens: t.CompletionTokens,
		Outcomes: map[string]uint64{}, Rewards: map[string]float64{},
	}
	for kind, count := range t.Outcomes {
		r.Outcomes[kind.String()] = count
	}
	for purpose, reward := range t.Rewards {
		if reward.Count > 0 {
			r.Rewards[purpose.String()] = reward.Mean()
		}
	}
	return r
}

func rolesJSON(r wire.Roles) []string {
	if r == 0 {
		return nil
	}
	return strings.Split(r.String(), ",")
}

func cidsJSON(cids []wire.CID) []string {
	shown := make([]string, len(cids))
	for i, cid := range cids {
		shown[i] = cid.String()
	}
	return shown
}

func countsJSON(counts map[learner.Reason]uint64) map[string]uint64 {
	shown := make(map[string]uint64, len(counts))
	for reason, count := range counts {
		shown[string(reason)] = count
	}
	return shown
}
