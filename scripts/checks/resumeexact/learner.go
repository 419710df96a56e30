package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/wire"
)

// released is a line of a learner's standard output: a version that is durable. The newest comes again after a restart.
type released struct {
	Version uint64
	Policy  string
	Groups  uint64
}

// runLearner is the process that is killed: a learner of a folder whose state is on the disk. Its critic gives it more to
// remember than the default algorithm has.
func runLearner(ctx context.Context, work, state string) (err error) {
	raw, err := os.ReadFile(filepath.Join(work, charterName))
	if err != nil {
		return err
	}
	snapshot, err := base.Load()
	if err != nil {
		return err
	}
	store, err := learner.OpenFolder(state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	c := learner.DefaultConfig()
	if c.Charter, err = wire.OpenCharter(raw); err != nil {
		return err
	}
	if c.Trainer, err = learner.NewEmbedded(snapshot, 1); err != nil {
		return err
	}
	critic, err := credit.Kinds.Parse("critic")
	if err != nil {
		return err
	}
	c.Algorithm.Credit = critic.Part
	c.Base, c.Store, c.Publisher, c.Batch.Groups = snapshot, store, publisher{}, batch
	_, _, err = learner.RunFolder(ctx, filepath.Join(work, bundlesName), c)
	return err
}

type publisher struct{}

// Publish implements learner.Publisher: it tells the check.
func (publisher) Publish(_ context.Context, r wire.SignedRelease, _ *policy.Snapshot) error {
	return json.NewEncoder(os.Stdout).Encode(released{r.Version, policy.Digest(r.Policy.Digest).String(), r.GroupsTrained})
}
