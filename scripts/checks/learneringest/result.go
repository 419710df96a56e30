package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/scripts/checks/peers"
	"github.com/lightswarm/lightswarm/scripts/checks/pinned"
	"github.com/lightswarm/lightswarm/wire"
)

const (
	// entryBytes is what one announcement that waits, or the record of one group, may take in memory, with its places
	// in the tables that tell duplicates.
	entryBytes = 4 << 10
	// restBytes is for what does not depend on the learner's settings: the database's tables and cache in memory, and
	// the bounded buffers of gossip and transport.
	restBytes = 32 << 20
)

// accepted is the reason of what the learner took in.
const accepted = learner.Admitted

// memoryLimit is how much the learner's memory may grow above what it was before anything arrived. Go lets the heap
// grow to twice of what is in use.
func memoryLimit() int64 {
	c := settings().Learner
	return 2*(int64(c.FetchBytes)+int64(c.Queue+c.Waiting)*entryBytes) + restBytes
}

// result collects the figures.
type result struct {
	idle             int64 // the learner's memory before anything arrived, in bytes
	taken, flooded   phase
	learner          api.LearnerStatus // at the end
	announced        int
	durable, missing int // groups in the store of the killed learner, and those of the measured part not among them
}

// phase is what one part cost the learner.
type phase struct {
	announcing, took, cpu time.Duration
	peak                  int64 // of memory, so far
}

// measure has the authors announce their groups, and times the learner until the last is durable.
func (r *result) measure(ctx context.Context, learner, authors *pinned.Process) error {
	var err error
	if r.idle, _, err = learner.Memory(); err != nil {
		return err
	}
	before, err := learner.CPU()
	if err != nil {
		return err
	}
	reply, err := announceThrough(ctx, authors, order{})
	if err != nil {
		return err
	}
	var judged learnerJudged
	if err := learner.Read(ctx, &judged); err != nil {
		return err
	}
	if judged.Reasons[accepted] != groups {
		return fmt.Errorf("of %d groups %d were accepted: %v", groups, judged.Reasons[accepted], judged.Reasons)
	}
	after, err := learner.CPU()
	if err != nil {
		return err
	}
	r.announced = reply.Count
	r.taken = phase{announcing: reply.Last.Sub(reply.First), took: judged.At.Sub(reply.First), cpu: after - before}
	_, r.taken.peak, err = learner.Memory()
	return err
}

// flood has the authors announce more than may wait, and waits until the learner has dealt with every announcement.
func (r *result) flood(ctx context.Context, learner, authors *pinned.Process, client *api.Client) error {
	before, err := learner.CPU()
	if err != nil {
		return err
	}
	reply, err := announceThrough(ctx, authors, order{Flood: true})
	if err != nil {
		return err
	}
	r.announced += reply.Count
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for accounted(r.learner) < uint64(r.announced) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("of %d announcements the learner has dealt with %d: %w", r.announced, accounted(r.learner), context.Cause(ctx))
		}
		status, err := client.Status(ctx)
		if err != nil {
			return err
		}
		r.learner = *status.Learner
	}
	r.flooded = phase{announcing: reply.Last.Sub(reply.First), took: time.Since(reply.First)}
	after, err := learner.CPU()
	if err != nil {
		return err
	}
	r.flooded.cpu = after - before
	_, r.flooded.peak, err = learner.Memory()
	return err
}

// announceThrough orders the authors to announce, and waits until they have.
func announceThrough(ctx context.Context, authors *pinned.Process, o order) (reply announced, err error) {
	if err := authors.Tell(o); err != nil {
		return reply, err
	}
	err = authors.Read(ctx, &reply)
	return reply, err
}

// accounted is how many announcements the learner has decided on or keeps in its queue.
func accounted(l api.LearnerStatus) uint64 {
	n := uint64(l.Queued + l.Fetching)
	for _, count := range l.Reasons {
		n += count
	}
	return n
}

// recover opens the store that the killed learner left and looks for every group.
func (r *result) recover(ctx context.Context, folder string, list []peers.Group) error {
	s, err := store.Open(store.Options{Folder: config.View(folder).Database(), MaxBlockBytes: int64(settings().Store.MaxBlockBytes)})
	if err != nil {
		return err
	}
	held, err := s.Learner().Load(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	r.durable = len(held.Records)
	there := make(map[wire.CID]bool, len(held.Records))
	for _, record := range held.Records {
		raw, err := s.Learner().Bundle(ctx, record.CID)
		there[record.CID] = err == nil && record.CID.Verify(raw) == nil
	}
	for _, g := range list {
		if !there[g.Announcement.Bundle] {
			r.missing++
		}
	}
	return s.Close()
}

// verdict prints the figures and says what does not hold. The rate is judged by the wall clock, or else by processor time.
func (r *result) verdict(byProcessor bool) error {
	var wrong []error
	check := func(ok bool, format string, values ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	rate, byCPU := groups/r.taken.took.Seconds(), groups/r.taken.cpu.Seconds()
	growth, limit := r.flooded.peak-r.idle, memoryLimit()
	total := accounted(r.learner)
	check(rate >= promised || byProcessor, "%.0f bundles a second, promised are %d", rate, promised)
	check(byCPU >= promised, "%.0f bundles a second of processor time, promised are %d", byCPU, promised)
	check(growth <= limit, "memory grew by %s, its limit is %s", mib(growth), mib(limit))
	check(total == uint64(r.announced), "%d announcements were made and %d accounted for", r.announced, total)
	check(r.learner.Waiting <= groups && r.learner.Queued <= queue, "%d groups and %d announcements wait, at most %d and %d may",
		r.learner.Waiting, r.learner.Queued, groups, queue)
	check(r.missing == 0, "%d groups are not in the store of the killed learner", r.missing)
	check(uint64(r.durable) == r.learner.Reasons[string(accepted)], "the killed learner had accepted %d bundles and its store has %d",
		r.learner.Reasons[string(accepted)], r.durable)

	fmt.Printf("taken in     %d bundles of 8 rollouts in %.2f s, announced within %.2f s\n", groups, r.taken.took.Seconds(), r.taken.announcing.Seconds())
	fmt.Printf("rate         %.0f bundles/s by the wall clock (promised %d), %.0f rollouts/s\n", rate, promised, 8*rate)
	fmt.Printf("processor    %.2f s of the learner's one core: %.0f bundles/s by processor time\n", r.taken.cpu.Seconds(), byCPU)
	fmt.Printf("flood        %d more announcements within %.2f s, dealt with in %.2f s and %.2f s of processor time\n",
		r.announced-groups, r.flooded.announcing.Seconds(), r.flooded.took.Seconds(), r.flooded.cpu.Seconds())
	fmt.Printf("memory       %s before, peak %s after the groups and %s after the flood: grown by %s, limit %s\n",
		mib(r.idle), mib(r.taken.peak), mib(r.flooded.peak), mib(growth), mib(limit))
	fmt.Printf("accounted    %d of %d: %s; %d queued, %d being fetched\n",
		total, r.announced, reasons(r.learner.Reasons), r.learner.Queued, r.learner.Fetching)
	fmt.Printf("durable      %d bundles in the store of the killed learner, %d missing\n", r.durable, r.missing)
	return errors.Join(wrong...)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// reasons lists counts by reason.
func reasons(counts map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	return strings.Join(parts, ", ")
}
