package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/node/api"
)

// ledgerPage is how many entries one request asks for.
const ledgerPage = 500

func (p *program) ledger() *cobra.Command {
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Show what each release of a learner was made from",
		Long: `List the releases of the learner that runs on the data folder: each with its parent and how many bundles it used
up: the groups that its step trained on or dropped, and the evaluation blocks whose results were counted, which are
never trained on. With --json each release is a line, which names the bundles as "trained" and "evaluated".

The command fails if a release does not name the one before as its parent, or if a bundle was used up twice.`,
		Example: "  lightswarm ledger --data ./mynet --json",
		Args:    takes(0, 0),
	}
	data := p.dataFlag(c)
	from := c.Flags().Uint64("from", 0, "first version to list")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		node, err := client(folder)
		if err != nil {
			return err
		}
		defer node.Close()
		status, err := node.Status(cmd.Context())
		if err != nil {
			return noNode(folder, err)
		}
		if status.Learner == nil {
			return fmt.Errorf("the node on %s is no learner and keeps no ledger: ask the learner's, on its own machine", folder)
		}
		check := ledgerCheck{used: map[string]uint64{}}
		for next := *from; ; {
			page, err := node.Ledger(cmd.Context(), next, ledgerPage)
			if err != nil {
				return noNode(folder, err)
			}
			for _, e := range page {
				if err := p.print(e, func(w io.Writer) { ledgerText(w, &e) }); err != nil {
					return err
				}
				check.add(&e)
				next = e.Version + 1
			}
			if len(page) < ledgerPage {
				return check.err
			}
		}
	}
	return c
}

// ledgerText is one release in a line.
func ledgerText(w io.Writer, e *api.LedgerEntry) {
	parent := "none"
	if e.Parent != "" {
		parent = tail(e.Parent)
	}
	fmt.Fprintf(w, "version %-5d release %s  parent %s  policy %.12s  %d groups, %d evaluation blocks\n",
		e.Version, tail(e.Release), parent, e.Policy, len(e.Trained), len(e.Evaluated))
}

// tail is the end of a CID: their beginnings are all alike.
func tail(cid string) string { return "…" + cid[max(0, len(cid)-12):] }

// ledgerCheck looks for what must not be in a ledger.
type ledgerCheck struct {
	last *api.LedgerEntry
	used map[string]uint64
	err  error
}

func (c *ledgerCheck) add(e *api.LedgerEntry) {
	if c.last != nil && (e.Version != c.last.Version+1 || e.Parent != c.last.Release) {
		c.err = errors.Join(c.err, fmt.Errorf("version %d follows %s, and the release before is %s of version %d", e.Version, e.Parent, c.last.Release, c.last.Version))
	}
	for _, cid := range slices.Concat(e.Trained, e.Evaluated) {
		if before, twice := c.used[cid]; twice {
			c.err = errors.Join(c.err, fmt.Errorf("version %d uses up bundle %s, which version %d did before", e.Version, cid, before))
		}
		c.used[cid] = e.Version
	}
	c.last = e
}
