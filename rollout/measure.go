package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Measurement are rollouts that belong to no network: Samples of each of some tasks.
type Measurement struct {
	Samples int
	// Rollouts are in order of task, then of sample; Rollout.Member is the sample.
	Rollouts []bundle.Rollout
	// max is the environment's largest reward.
	max float32
}

// Measure runs a policy on the tasks from 0 on of a split, a number of samples of each, by the built-in agent and the rules'
// limits and sampling. The rules' other fields do not matter. With an exact engine the result is a pure function of the
// arguments; it shares no random numbers with any network.
func Measure(ctx context.Context, e env.Environment, p *Policy, rules wire.RolloutRules, split string, tasks uint64, samples int, seed uint64) (Measurement, error) {
	n := &Network{Charter: &wire.Charter{Rollout: rules}}
	return n.Measure(ctx, e, p, split, tasks, samples, seed)
}

// Measure is the function Measure with n's rules and agent. Of the charter only Rollout matters, the ID and Environments do
// not.
func (n *Network) Measure(ctx context.Context, e env.Environment, p *Policy, split string, tasks uint64, samples int, seed uint64) (Measurement, error) {
	rules := n.Charter.Rollout
	m := Measurement{Samples: samples, max: e.Manifest().RewardMax}
	var jobs []job
	for task := range tasks {
		for sample := range samples {
			jobs = append(jobs, job{
				environment: e,
				split:       split,
				member:      uint32(sample),
				task:        task,
				sampling:    sampling(rules.Sampling),
				key: func(call uint32) policy.SampleKey {
					b := []byte("lightswarm/measure/1\x00")
					for _, v := range []uint64{seed, task, uint64(sample), uint64(call)} {
						b = binary.BigEndian.AppendUint64(b, v)
					}
					return sha256.Sum256(b)
				},
			})
		}
	}
	var err error
	if m.Rollouts, err = n.runAll(ctx, p, jobs); err != nil {
		return Measurement{}, fmt.Errorf("measure %s: %w", split, err)
	}
	return m, nil
}

// Mean is the average reward of the trainable rollouts, 0 without any.
func (m Measurement) Mean() float64 {
	var r Reward
	for _, o := range m.Rollouts {
		if o.Outcome.Trainable() {
			r.Sum += float64(o.Reward)
			r.Count++
		}
	}
	return r.Mean()
}

// Solved is the share of the rollouts that got the environment's largest reward, 0 without any. As in an evaluation, one
// whose agent failed was not solved, and one that says nothing of the policy (env_error, timeout) is left out.
func (m Measurement) Solved() float64 {
	solved, judged := 0, 0
	for _, o := range m.Rollouts {
		switch {
		case o.Outcome.Trainable():
			judged++
			if o.Reward == m.max {
				solved++
			}
		case o.Outcome == bundle.OutcomeAgentError:
			judged++
		}
	}
	return float64(solved) / float64(max(judged, 1))
}

// Best is the share of tasks of which at least one sample got the environment's largest reward.
func (m Measurement) Best() float64 {
	solved, tasks := 0, len(m.Rollouts)/max(m.Samples, 1)
	for task := range tasks {
		for _, o := range m.Rollouts[task*m.Samples : (task+1)*m.Samples] {
			if o.Outcome.Trainable() && o.Reward == m.max {
				solved++
				break
			}
		}
	}
	return float64(solved) / float64(max(tasks, 1))
}
