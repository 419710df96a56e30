package journal

import (
	"math"
	"strings"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/tensorboard"
	"github.com/lightswarm/lightswarm/learner/watch"
)

// mostCurves bounds the agents with curves of their own: their names come from peers.
const mostCurves = 128

// board draws the curves of TensorBoard.
type board struct {
	file *tensorboard.File
	// agents have curves, by tag.
	agents map[string]bool
}

// curves collects the points of one event.
type curves []tensorboard.Value

func (c *curves) scalar(tag string, v float64) {
	*c = append(*c, tensorboard.Value{Tag: tag, Scalar: v})
}

// figure adds a point unless there is none.
func (c *curves) figure(tag string, v *float64) {
	if v != nil {
		c.scalar(tag, *v)
	}
}

func (b *board) draw(l *Line) error {
	var c curves
	if l.Step != nil {
		b.step(&c, l.Step)
	} else {
		c.scalar("held_out/"+strings.TrimPrefix(l.Purpose, "evaluate-"), l.Success)
	}
	for _, kind := range watch.Kinds {
		standing := 0.0
		for _, a := range l.Alerts {
			if a.Kind == kind {
				standing = 1
			}
		}
		if l.Step != nil || standing > 0 {
			c.scalar("alerts/"+string(kind), standing)
		}
	}
	return b.file.Write(tensorboard.Event{Time: l.Time, Step: int64(l.Version), Values: c})
}

// step adds the curves of a step. What it did not measure has no point.
func (b *board) step(c *curves, s *Step) {
	c.figure("reward/mean", s.RewardMean)
	c.figure("reward/solved", s.Solved)
	c.figure("reward/advantage_std", s.AdvantageStd)
	c.figure("reward/critic_explained", s.CriticExplained)
	c.figure("policy/entropy", s.Entropy)
	c.figure("policy/kl_behaviour", s.KLBehaviour)
	c.figure("policy/clipped", s.Clipped)
	c.figure("policy/effective_samples", s.EffectiveSamples)
	c.figure("policy/ratio_max", s.RatioMax)
	c.figure("update/gradient_norm", s.GradientNorm)
	c.figure("update/learning_rate", s.LearningRate)
	c.figure("update/loss", s.Loss)
	c.scalar("update/trained_tokens", float64(s.TrainedTokens))
	c.scalar("time/waited_seconds", s.WaitedSeconds)
	c.scalar("time/trained_seconds", s.TrainedSeconds)
	c.scalar("groups/used", float64(s.Groups))
	c.scalar("groups/learned", float64(s.Learned))
	c.scalar("groups/yield", s.Yield)
	c.scalar("groups/waiting", float64(s.Waiting))
	c.scalar("groups/asked", float64(s.Active)*float64(s.Quota))
	c.scalar("groups/peers", float64(s.Peers))
	if s.Groups > 0 {
		c.scalar("groups/most_share", float64(s.MostGroups)/float64(s.Groups))
	}
	for _, reason := range []learner.Reason{learner.StaleAtUse, learner.TooFewScored, learner.ZeroVariance, learner.Untrained} {
		c.scalar("dropped/"+string(reason), float64(s.Drops[string(reason)]))
	}
	c.lags(s.Lags)
	c.lengths("lengths/sampled", s.SampledLengths)
	c.lengths("lengths/trained", s.TrainedLengths)
	for _, e := range s.Environments {
		c.part("environment/"+tagged(e.Name), e.Part)
		for _, a := range e.Agents {
			tag := "agent/" + tagged(e.Name) + "/" + tagged(a.Name)
			if !b.agents[tag] && len(b.agents) >= mostCurves {
				continue
			}
			b.agents[tag] = true
			c.part(tag, a)
		}
	}
}

func (c *curves) part(tag string, p Part) {
	c.figure(tag+"/reward_mean", p.RewardMean)
	c.figure(tag+"/solved", p.Solved)
	c.figure(tag+"/calls", p.Calls)
	c.figure(tag+"/completion_tokens", p.CompletionTokens)
}

// lags draws the histogram of lags, each a bucket.
func (c *curves) lags(counts map[uint64]int) {
	most := uint64(0)
	for lag := range counts {
		most = max(most, lag)
	}
	if len(counts) == 0 || most > 1<<10 {
		return
	}
	h := &tensorboard.Histogram{}
	for lag := range most + 1 {
		h.Limits, h.Counts = append(h.Limits, float64(lag)+0.5), append(h.Counts, 0)
	}
	for lag, n := range counts {
		h.Counts[lag] += float64(n)
		h.Add(float64(lag), float64(n))
	}
	*c = append(*c, tensorboard.Value{Tag: "groups/lag", Histogram: h})
}

// lengths draws a distribution of lengths. Their sums are as if all were in the middle of their buckets.
func (c *curves) lengths(tag string, l []int) {
	if len(l) == 0 {
		return
	}
	h := &tensorboard.Histogram{}
	for i, n := range l {
		low, high := math.Exp2(float64(i)), math.Exp2(float64(i+1))-1
		h.Limits, h.Counts = append(h.Limits, high+0.5), append(h.Counts, float64(n))
		h.Add((low+high)/2, float64(n))
	}
	*c = append(*c, tensorboard.Value{Tag: tag, Histogram: h})
}

// tagged makes a name a part of a tag.
func tagged(name string) string {
	const longest = 64
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.@", r) {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "_"
	}
	return clean[:min(len(clean), longest)]
}
