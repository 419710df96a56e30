package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
)

// record is what the learner said while it was watched.
type record struct {
	head  uint64
	final bool
	// releases are the CIDs by version.
	releases map[uint64]string
	// accepted are the bundles whose acceptance was announced, and whether each is for training.
	accepted map[string]bool
	// contributed counts the accepted training bundles by peer.
	contributed map[string]int
	measured    map[uint64]map[string]float64
}

func newRecord() *record {
	return &record{
		releases: map[uint64]string{}, accepted: map[string]bool{}, contributed: map[string]int{},
		measured: map[uint64]map[string]float64{},
	}
}

func (r *record) add(e api.Event) {
	switch {
	case e.Release != nil:
		r.releases[e.Release.Version] = e.Release.ID
		r.head, r.final = max(r.head, e.Release.Version), r.final || e.Release.Final
	case e.Verdict != nil && e.Verdict.Accepted:
		train := e.Verdict.Purpose == "train"
		r.accepted[e.Verdict.CID] = train
		if train {
			r.contributed[e.Verdict.Peer]++
		}
	case e.Evaluation != nil:
		of := r.measured[e.Evaluation.Version]
		if of == nil {
			of = map[string]float64{}
			r.measured[e.Evaluation.Version] = of
		}
		of[e.Evaluation.Purpose] = e.Evaluation.Success
	}
}

// done says that the chain has ended and its last version is measured.
func (r *record) done() bool { return r.final && len(r.measured[r.head]) == 2 }

// verify checks the ledger against what was seen, and prints the figures.
func (s *swarm) verify() error {
	var wrong []error
	check := func(ok bool, format string, values ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	used := map[string]int{}
	consumed := 0
	for i, e := range s.ledger {
		check(e.Version == uint64(i), "entry %d of the ledger is of version %d", i, e.Version)
		if i == 0 {
			check(e.Parent == "", "version 0 has parent %s", e.Parent)
		} else {
			check(e.Parent == s.ledger[i-1].Release, "version %d names parent %s, and version %d is %s", e.Version, e.Parent, i-1, s.ledger[i-1].Release)
		}
		if published := s.seen.releases[e.Version]; published != "" {
			check(published == e.Release, "version %d was published as %s and is %s now", e.Version, published, e.Release)
		}
		for _, cid := range slices.Concat(e.Trained, e.Evaluated) {
			used[cid]++
			consumed++
		}
	}
	twice, unused, open := 0, 0, 0
	for _, n := range used {
		if n > 1 {
			twice++
		}
	}
	for cid, train := range s.seen.accepted {
		switch {
		case used[cid] > 0:
		case train:
			unused++
		default:
			open++ // a measure of the last version, which no later checkpoint sums up
		}
	}
	l := s.final.Learner
	accepted := int(l.Reasons["accepted"])
	lost := accepted - consumed - l.Waiting - open
	check(len(s.ledger) == int(s.final.Head.Version)+1, "the ledger has %d versions, the newest is %d", len(s.ledger), s.final.Head.Version)
	check(twice == 0, "%d bundles were used up twice", twice)
	check(lost == 0, "%d bundles were accepted, %d used up, %d wait, and %d are measures of the last version: %d are lost", accepted, consumed, l.Waiting, open, lost)
	check(unused <= l.Waiting, "%d accepted groups were neither used up nor wait; %d wait", unused-l.Waiting, l.Waiting)
	check(s.killed.resumedVersion >= s.killed.learnerVersion, "the learner died at version %d and continued at %d", s.killed.learnerVersion, s.killed.resumedVersion)
	again := s.seen.contributed[s.killed.node] - s.killed.contributedThen
	check(again > 0, "the rollout node that was killed contributed nothing afterwards")
	check(s.killed.contributedThen > 0, "the rollout node that was killed had contributed nothing before")
	last := s.seen.measured[s.seen.head]["evaluate-sampled"]
	check(last >= s.success, "held-out success is %.3f at the end, below %.2f", last, s.success)

	fmt.Printf("releases            %d, chain unbroken, %d seen before and after are the same\n", len(s.ledger), len(s.seen.releases))
	fmt.Printf("rollout node killed at version %d; it contributed %d groups before and %d after\n", s.killed.nodeVersion, s.killed.contributedThen, again)
	fmt.Printf("learner killed      at version %d with %d bundles accepted; it continued at version %d\n", s.killed.learnerVersion, s.killed.acceptedBefore, s.killed.resumedVersion)
	fmt.Printf("accepted            %d bundles: %d used up, %d groups wait, %d measure the last version; %d used up twice, %d lost\n", accepted, consumed, l.Waiting, open, twice, lost)
	fmt.Printf("held-out success    %.3f at version %d after %.1f s\n", last, s.seen.head, time.Since(s.started).Seconds())
	return errors.Join(wrong...)
}
