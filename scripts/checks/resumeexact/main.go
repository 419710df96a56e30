// Command resumeexact kills a learner of a folder again and again, and compares what it comes to with a run that was left
// alone. It runs itself as the learner's process.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/learner"
)

// batch is how many groups a step trains on.
const batch = 4

func main() {
	work := flag.String("work", "", "folder for bundles and states, kept afterwards (default a temporary one)")
	state := flag.String("state", "", "used by the check itself: the folder of the learner's state")
	quick := flag.Bool("quick", false, "kill three times instead of ten")
	seed := flag.Uint64("seed", 1, "seed of the moments of the kills")
	flag.Parse()
	ctx := context.Background()
	var err error
	if *state != "" {
		err = runLearner(ctx, *work, *state)
	} else {
		err = run(ctx, *work, *quick, *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "resume-exact:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, work string, quick bool, seed uint64) (err error) {
	if work == "" {
		if work, err = os.MkdirTemp("", "resumeexact"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	kills := 10
	if quick {
		kills = 3
	}
	steps := 4*kills + 4                                     // a life makes 4 at most: it is killed two steps after the second that it tells of
	if err := record(ctx, work, steps*batch-1); err != nil { // the last step is smaller
		return err
	}
	began := time.Now()
	whole, err := life(ctx, work, "whole", -1, 0)
	if err != nil {
		return err
	}
	step := time.Since(began) / time.Duration(steps)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // moments, no secrets
	var killed []released
	for k := range kills {
		// Somewhere in the steps after that version; a delay of 0 is at the commit.
		delay := time.Duration(0)
		if k%3 > 0 {
			delay = time.Duration(random.Int64N(int64(2 * step)))
		}
		versions := 1 + random.IntN(2)
		if k > 0 {
			versions++ // the newest of the life before comes again
		}
		told, err := life(ctx, work, "killed", versions, delay)
		if err != nil {
			return err
		}
		killed = append(killed, told...)
		fmt.Printf("killed  %v after version %d\n", delay.Round(time.Microsecond), told[len(told)-1].Version)
	}
	told, err := life(ctx, work, "killed", -1, 0)
	if err != nil {
		return err
	}
	return compare(ctx, work, whole, append(killed, told...))
}

// life runs a learner to its end, or kills it some time after it has told so many versions; -1 is never.
func life(ctx context.Context, work, state string, versions int, delay time.Duration) (told []released, err error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "--work", work, "--state", filepath.Join(work, state)) //nolint:gosec // itself
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// What it told before it died is read to the end.
	decoder := json.NewDecoder(out)
	for {
		var r released
		if decoder.Decode(&r) != nil {
			break
		}
		told = append(told, r)
		if len(told) == versions {
			time.AfterFunc(delay, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if versions >= 0 && errors.As(err, &exit) && exit.ExitCode() == -1 {
		err = nil
	} else if versions >= 0 && err == nil {
		err = errors.New("the learner ended before it was killed")
	}
	return told, err
}

// compare prints what the runs came to, and says where they differ.
func compare(ctx context.Context, work string, whole, killed []released) error {
	killed = slices.Compact(killed) // a restart tells the newest version again
	a, err := checkpoint(ctx, filepath.Join(work, "whole"))
	if err != nil {
		return err
	}
	b, err := checkpoint(ctx, filepath.Join(work, "killed"))
	if err != nil {
		return err
	}
	last := whole[len(whole)-1]
	fmt.Printf("policy  %s of version %d, %d groups\n", last.Policy, last.Version, last.Groups)
	fmt.Printf("masters and optimiser %x, killed %x\n", sha256.Sum256(a.Trainer), sha256.Sum256(b.Trainer))
	var wrong []error
	if !slices.Equal(whole, killed) {
		wrong = append(wrong, fmt.Errorf("the versions differ:\nwhole  %v\nkilled %v", whole, killed))
	}
	if !bytes.Equal(a.Trainer, b.Trainer) {
		wrong = append(wrong, errors.New("masters or optimiser differ"))
	}
	if !bytes.Equal(a.Progress, b.Progress) {
		wrong = append(wrong, errors.New("the counters or the critic differ"))
	}
	if len(wrong) == 0 {
		fmt.Println("resume-exact: holds")
	}
	return errors.Join(wrong...)
}

func checkpoint(ctx context.Context, dir string) (learner.Checkpoint, error) {
	f, err := learner.OpenFolder(dir)
	if err != nil {
		return learner.Checkpoint{}, err
	}
	r, err := f.Load(ctx)
	if err = errors.Join(err, f.Close()); err != nil {
		return learner.Checkpoint{}, err
	}
	if r.Checkpoint == nil {
		return learner.Checkpoint{}, fmt.Errorf("%s: nothing was committed", dir)
	}
	return *r.Checkpoint, nil
}
