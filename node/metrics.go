package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightswarm/lightswarm/learner/watch"
	"github.com/lightswarm/lightswarm/p2p/gossip"
)

// metrics collects a node's figures for Prometheus when they are asked for. Labels take few values, all known to the
// program: reasons, kinds, outcomes and purposes; never a peer, a CID or a version.
type metrics struct{ n *Node }

var _ prometheus.Collector = metrics{}

// describe names a metric of the node and says what it counts.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("lightswarm_"+name, help, labels, nil)
}

var (
	headVersion   = describe("head_version", "Newest release that the node follows.")
	policyVersion = describe("policy_version", "Release whose policy the node runs.")
	peersNow      = describe("peers", "Connected peers.")
	membersNow    = describe("members", "Connected peers that are members of the network.")
	blockBytes    = describe("store_block_bytes", "Bytes of blocks in the store.")
	announcedOwn  = describe("announcements_total", "Announcements that the node made, across restarts.")

	gossiped      = describe("gossip_records_total", "Records that came by gossip, by kind and what was decided.", "kind", "reason")
	pulled        = describe("pulled_records_total", "Records that came by pulls, by kind and what was decided.", "kind", "reason")
	gossipTrouble = describe("gossip_troubles_total", "Records that gossip repeated or lost, by kind; what is lost is pulled.", "kind")
	pulls         = describe("pulls_total", "Pulls over the head protocol, by result.", "result")
	pullTrouble   = describe("pull_troubles_total", "Troubles of pulls, by kind; lost announcements are had by nobody any more.", "kind")
	blocksMoved   = describe("blocks_total", "Blocks, by direction.", "direction")
	blocksBytes   = describe("block_bytes_total", "Bytes of blocks, by direction.", "direction")
	blocksTrouble = describe("block_troubles_total", "Troubles of the block exchange, by kind.", "kind")

	rolloutBundles    = describe("rollout_bundles_total", "Bundles that the worker announced, by kind.", "kind")
	rolloutEnds       = describe("rollout_rollouts_total", "Rollouts in announced bundles, by outcome.", "outcome")
	rolloutCalls      = describe("rollout_calls_total", "Calls in announced bundles.")
	rolloutTokens     = describe("rollout_tokens_total", "Tokens in announced bundles, by kind.", "kind")
	rolloutRunning    = describe("rollout_running", "Groups and evaluation blocks in flight.")
	agentProcesses    = describe("agent_processes", "Processes of the program that plays the rollouts.")
	lightningRollouts = describe("lightning_rollouts", "Rollouts for runners of Agent Lightning, by what they do.", "state")
	lightningStarts   = describe("lightning_attempts_total", "Attempts that were handed out to runners of Agent Lightning.")
	agentStarts       = describe("agent_starts_total", "Processes of the program that plays the rollouts that were started.")
	engineTokens      = describe("engine_tokens_total", "Tokens of the policy engine, by what became of them.", "kind")

	learnerBundles = describe("learner_bundles_total", "Bundles by what became of them, since the chain began.", "reason")
	learnerWaiting = describe("learner_waiting_groups", "Groups that wait to be trained on.")
	learnerGroups  = describe("learner_groups_trained_total", "Groups that the chain has learned from.")
	learnerAlerts  = describe("learner_alert", "1 if the alert of this kind stands, else 0.", "kind")
	learnerTokens  = describe("learner_tokens_trained_total", "Tokens that the chain has learned from.")
)

// Describe implements prometheus.Collector. It sends nothing: which metrics there are follows from the node's roles.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	c := collector(out)
	m.network(c)
	if m.n.worker != nil {
		m.rollout(c)
	}
	if m.n.trainer != nil {
		m.learner(c)
	}
}

// collector sends metrics.
type collector chan<- prometheus.Metric

func (c collector) gauge(d *prometheus.Desc, v float64, labels ...string) {
	c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c collector) counter(d *prometheus.Desc, v uint64, labels ...string) {
	c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (c collector) verdicts(d *prometheus.Desc, counts map[string]map[gossip.Reason]uint64) {
	for kind, byReason := range counts {
		for reason, count := range byReason {
			c.counter(d, count, kind, string(reason))
		}
	}
}

func (m metrics) network(c collector) {
	n := m.n
	if head := n.head(); head != nil {
		c.gauge(headVersion, float64(head.Version))
	}
	if current, _ := n.policies.newest(); current != nil {
		c.gauge(policyVersion, float64(current.Version))
	}
	s := n.network.Stats()
	c.gauge(peersNow, float64(s.Peers))
	c.gauge(membersNow, float64(s.Members))
	c.gauge(blockBytes, float64(n.store.BlockBytes()))
	c.counter(announcedOwn, n.store.NextSequence())
	c.verdicts(gossiped, s.Gossip.Verdicts)
	c.verdicts(pulled, s.Pull.Verdicts)
	c.counter(pulls, s.Pull.Pulls, "ok")
	c.counter(pulls, s.Pull.Failed, "failed")
	c.counter(gossipTrouble, s.Gossip.Repeats, "repeated")
	c.counter(gossipTrouble, s.Gossip.Unheard, "unheard")
	c.counter(gossipTrouble, s.Gossip.Undelivered, "undelivered")
	c.counter(gossipTrouble, s.Gossip.Unsent, "unsent")
	c.counter(gossipTrouble, s.Gossip.Throttled, "throttled")
	c.counter(pullTrouble, s.Pull.Skipped, "skipped")
	c.counter(pullTrouble, s.Pull.OtherNetwork, "other_network")
	c.counter(pullTrouble, s.Pull.Lost, "lost")
	c.counter(pullTrouble, s.Pull.RefusedStreams, "refused_streams")
	c.counter(blocksMoved, s.Blocks.Served, "out")
	c.counter(blocksMoved, s.Blocks.Fetched, "in")
	c.counter(blocksBytes, s.Blocks.ServedBytes, "out")
	c.counter(blocksBytes, s.Blocks.FetchedBytes, "in")
	c.counter(blocksTrouble, s.Blocks.Retried, "retried")
	c.counter(blocksTrouble, s.Blocks.Failed, "failed")
	c.counter(blocksTrouble, s.Blocks.Misbehaved, "misbehaved")
	c.counter(blocksTrouble, s.Blocks.StoreFailed, "store_failed")
	c.counter(blocksTrouble, s.Blocks.RefusedStreams, "refused_streams")
}

func (m metrics) rollout(c collector) {
	s := m.n.worker.Stats()
	c.counter(rolloutBundles, s.Total.Groups, "group")
	c.counter(rolloutBundles, s.Total.Blocks, "evaluation_block")
	for outcome, count := range s.Total.Outcomes {
		c.counter(rolloutEnds, count, outcome.String())
	}
	c.counter(rolloutCalls, s.Total.Calls)
	c.counter(rolloutTokens, s.Total.PromptTokens, "prompt")
	c.counter(rolloutTokens, s.Total.CompletionTokens, "completion")
	c.gauge(rolloutRunning, float64(s.Running))
	if m.n.player != nil && m.n.player.runners != nil {
		a := m.n.player.status()
		c.gauge(lightningRollouts, float64(a.Waiting), "waiting")
		c.gauge(lightningRollouts, float64(a.Running), "running")
		c.counter(lightningStarts, a.Started)
	} else if m.n.player != nil {
		a := m.n.player.status()
		c.gauge(agentProcesses, float64(a.Running))
		c.counter(agentStarts, a.Started)
	}
	e := m.n.engine.Stats()
	c.counter(engineTokens, uint64(e.Sampled), "sampled")
	c.counter(engineTokens, uint64(e.Computed), "computed")
	c.counter(engineTokens, uint64(e.Reused), "reused")
}

func (m metrics) learner(c collector) {
	s := m.n.trainer.learner.Status()
	for reason, count := range s.Reasons {
		c.counter(learnerBundles, count, string(reason))
	}
	c.gauge(learnerWaiting, float64(s.Waiting))
	c.counter(learnerGroups, s.GroupsTrained)
	c.counter(learnerTokens, s.TokensTrained)
	standing := make(map[watch.Kind]bool)
	for _, a := range m.n.trainer.training.alerts() {
		standing[a.Kind] = true
	}
	for _, kind := range watch.Kinds {
		value := 0.0
		if standing[kind] {
			value = 1
		}
		c.gauge(learnerAlerts, value, string(kind))
	}
}
