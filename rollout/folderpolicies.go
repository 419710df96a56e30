package rollout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// FolderPolicies is a PolicySource over a folder of policies, with no network: sub-folders named 0, 1, 2, … by version,
// each in the layout of policy.ReadDir. A sub-folder has to appear whole, as those of Snapshot.WriteDir do; others are
// ignored. No release asks for an evaluation or for a pace.
type FolderPolicies struct {
	dir    string
	engine policy.Engine
	class  bundle.EngineClass

	mu      sync.Mutex // held while a policy loads, so that the engine's newest is the one that is opened
	version uint64     // guarded by mu
	loaded  *policy.Snapshot
}

// pollInterval is how often a folder is looked at for newer policies.
const pollInterval = time.Second

// NewFolderPolicies reads policies from dir and runs them on an engine of the given class, which nobody else loads.
func NewFolderPolicies(dir string, engine policy.Engine, class bundle.EngineClass) *FolderPolicies {
	return &FolderPolicies{dir: dir, engine: engine, class: class}
}

// Acquire implements PolicySource. It waits for the folder to hold a policy.
func (f *FolderPolicies) Acquire(ctx context.Context) (Release, error) {
	if err := f.poll(ctx, func(_ uint64, found bool) bool { return found }); err != nil {
		return Release{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	version, _, err := f.newest()
	if err != nil {
		return Release{}, err
	}
	if f.loaded == nil || version != f.version {
		s, err := policy.ReadDir(filepath.Join(f.dir, strconv.FormatUint(version, 10)))
		if err != nil {
			return Release{}, err
		}
		if err := f.engine.Load(ctx, s); err != nil {
			return Release{}, fmt.Errorf("load version %d: %w", version, err)
		}
		f.version, f.loaded = version, s
	}
	session, err := f.engine.Open()
	if err != nil {
		return Release{}, err
	}
	p, err := NewPolicy(version, f.loaded, session, f.class)
	if err != nil {
		session.Close()
		return Release{}, err
	}
	return Release{Policy: p, Close: session.Close}, nil
}

// Wait implements PolicySource.
func (f *FolderPolicies) Wait(ctx context.Context, version uint64) error {
	return f.poll(ctx, func(newest uint64, found bool) bool { return found && newest > version })
}

// poll looks at the folder until enough is true of its newest version.
func (f *FolderPolicies) poll(ctx context.Context, enough func(newest uint64, found bool) bool) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		newest, found, err := f.newest()
		if err != nil {
			return err
		}
		if enough(newest, found) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newest is the highest version in the folder.
func (f *FolderPolicies) newest() (version uint64, found bool, err error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return 0, false, fmt.Errorf("folder of policies: %w", err)
	}
	for _, e := range entries {
		v, err := strconv.ParseUint(e.Name(), 10, 64)
		if err == nil && e.IsDir() && (!found || v > version) {
			version, found = v, true
		}
	}
	return version, found, nil
}
