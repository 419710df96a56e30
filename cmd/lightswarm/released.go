package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// savedPolicy is what `policy save --json` prints.
type savedPolicy struct {
	Version uint64 `json:"version"`
	Digest  string `json:"digest"`
	Folder  string `json:"folder"`
}

func (p *program) policySave() *cobra.Command {
	out := ""
	c := &cobra.Command{
		Use:   "save [VERSION] --out FOLDER",
		Short: "Save the policy of a version in a folder",
		Long: `Save the policy of a version of a network, the newest if none is given, in a folder: the node that runs on the data folder
is asked for it. A learner has all of its versions, as far as their blocks did not have to make room; any other node has
the newest. What is saved can be the first policy of another network: lightswarm network create --policy FOLDER.`,
		Example: `  lightswarm policy save --data ./mynet --out ./trained
  lightswarm policy save 5 --data ./mynet --out ./policy5`,
		Args: takes(0, 1),
	}
	data := p.dataFlag(c)
	c.Flags().StringVar(&out, "out", "", "folder for the policy; it must not exist, or be empty")
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		var wanted *uint64
		if len(arguments) > 0 {
			version, err := strconv.ParseUint(arguments[0], 10, 64)
			if err != nil {
				return usage(fmt.Errorf("%q is not the number of a version", arguments[0]))
			}
			wanted = &version
		}
		if err := checkOut(out); err != nil {
			return err
		}
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		version, s, err := releasedPolicy(cmd.Context(), folder, wanted)
		if err != nil {
			return err
		}
		if err := s.WriteDir(out); err != nil {
			return err
		}
		r := savedPolicy{Version: version, Digest: s.Digest().String(), Folder: out}
		return p.print(r, func(w io.Writer) {
			fmt.Fprintf(w, "policy  %s of version %d in %s\n", r.Digest, r.Version, r.Folder)
		})
	}
	return c
}

// checkOut checks the folder that a policy is to be written to.
func checkOut(out string) error {
	if out == "" {
		return usage(errors.New("name the folder for the policy with --out"))
	}
	err := policy.CheckDir(out)
	if errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("--out %s: the folder is not empty: name another one", out))
	}
	return err
}

// releasedPolicy gets a version's policy, or the newest one, from the node that runs on a data folder.
func releasedPolicy(ctx context.Context, folder string, wanted *uint64) (version uint64, s *policy.Snapshot, err error) {
	node, err := client(folder)
	if err != nil {
		return 0, nil, err
	}
	defer node.Close()
	status, err := node.Status(ctx)
	switch {
	case err != nil:
		return 0, nil, noNode(folder, err)
	case status.Head == nil:
		return 0, nil, fmt.Errorf("the node on %s knows of no release yet", folder)
	case wanted != nil && *wanted > status.Head.Version:
		return 0, nil, usage(fmt.Errorf("there is no version %d yet, the newest is %d", *wanted, status.Head.Version))
	}
	version, digest, manifest := status.Head.Version, status.Head.Policy, status.Head.Manifest
	if wanted != nil && *wanted != version {
		entries, err := node.Ledger(ctx, *wanted, 1)
		if err != nil {
			return 0, nil, noNode(folder, err)
		}
		if len(entries) == 0 || entries[0].Version != *wanted {
			return 0, nil, fmt.Errorf("the node on %s knows only the newest version, %d: ask the learner's, on its own machine", folder, version)
		}
		version, digest, manifest = *wanted, entries[0].Policy, entries[0].Manifest
	}
	cid, err := wire.ParseCIDString(manifest)
	if err != nil {
		return 0, nil, fmt.Errorf("the node's answer about version %d: %w", version, err)
	}
	s, err = policy.Assemble(ctx, cid, func(ctx context.Context, cid wire.CID) ([]byte, error) { return node.Block(ctx, cid.String()) })
	if err == nil && s.Digest().String() != digest {
		err = fmt.Errorf("version %d is policy %.12s, its blocks are %s", version, digest, s.Digest().Short())
	}
	return version, s, err
}
