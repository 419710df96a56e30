package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/testnet"
	"github.com/lightswarm/lightswarm/testnet/report"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// bundleResult is what `bundle show --json` prints.
type bundleResult struct {
	CID           string  `json:"cid"`
	Bytes         int     `json:"bytes"`
	Network       string  `json:"network"`
	Purpose       string  `json:"purpose"`
	Environment   string  `json:"environment"`
	Split         string  `json:"split"`
	PolicyVersion uint64  `json:"policy_version"`
	PolicyDigest  string  `json:"policy_digest"`
	Peer          string  `json:"peer,omitempty"`
	Counter       uint64  `json:"counter"`
	Temperature   float32 `json:"temperature"`
	Exact         bool    `json:"exact"`
	Tokens        int     `json:"completion_tokens"`
	// Rollouts are readable: package testnet/report defines the fields.
	Rollouts []report.Example `json:"rollouts"`
}

func (p *program) bundle() *cobra.Command {
	c := &cobra.Command{Use: "bundle", Short: "Read bundles of rollouts"}
	c.AddCommand(p.bundleShow())
	return c
}

func (p *program) bundleShow() *cobra.Command {
	from := ""
	c := &cobra.Command{
		Use:   "show FILE|CID",
		Short: "Show the rollouts of a bundle as text",
		Long: `Show a bundle: what was new in each prompt, what the policy answered, and the reward. A CID is looked up on the node
that runs on the data folder.

Token ids become text with the tokenizer of the built-in policy, or of the policy folder that --policy names.`,
		Example: `  lightswarm bundle show bafkrei… --data ./mynet
  lightswarm bundle show group.bundle --json`,
		Args: takes(1, 1),
	}
	data := p.dataFlag(c)
	c.Flags().StringVar(&from, "policy", "", "folder of the policy whose tokenizer is used (default the built-in one)")
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		raw, err := readBundle(cmd.Context(), arguments[0], data)
		if err != nil {
			return err
		}
		b, err := bundle.Decode(raw, bundle.Limits{})
		if err != nil {
			return fmt.Errorf("%s is no bundle that this program reads: %w", arguments[0], err)
		}
		s, err := readPolicy(from)
		if err != nil {
			return fmt.Errorf("--policy: %w", err)
		}
		r := bundleResult{
			CID: wire.SumCID(raw).String(), Bytes: len(raw), Network: b.Network.String(), Purpose: b.Purpose.String(),
			Environment: b.Environment.String(), Split: b.Split,
			PolicyVersion: b.PolicyVersion, PolicyDigest: policy.Digest(b.PolicyDigest).String(),
			Counter: b.Counter, Temperature: b.Sampling.Temperature, Exact: b.Engine == bundle.EngineExact,
			Tokens: b.CompletionTokens(), Rollouts: testnet.Examples(b, s.Tokenizer),
		}
		if b.Peer != "" {
			r.Peer = b.Peer.String()
		}
		return p.print(r, func(w io.Writer) { bundleText(w, &r) })
	}
	return c
}

// readBundle reads a file, or asks the running node for a CID.
func readBundle(ctx context.Context, name string, data func() (string, error)) ([]byte, error) {
	raw, err := readFile(name, wire.MaxBundleBytes)
	if !errors.Is(err, fs.ErrNotExist) {
		return raw, err
	}
	cid, parseErr := wire.ParseCIDString(name)
	if parseErr != nil {
		return nil, usage(fmt.Errorf("there is no file %s, and it is no CID either: name a file, or copy the whole CID from lightswarm ledger --json", name))
	}
	folder, err := data()
	if err != nil {
		return nil, usage(err)
	}
	node, err := client(folder)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	if raw, err = node.Block(ctx, name); err != nil {
		return nil, noNode(folder, err)
	}
	return raw, cid.Verify(raw)
}

// readFile reads a regular file of at most limit bytes: a pipe might never end.
func readFile(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, usage(fmt.Errorf("%s is not a regular file", name))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s is larger than any bundle, %d bytes", name, limit)
	}
	return raw, err
}

// readPolicy reads a policy folder, or the built-in policy if there is no name.
func readPolicy(dir string) (*policy.Snapshot, error) {
	if dir == "" || dir == "base" {
		return base.Load()
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage(fmt.Errorf("there is no folder %s: name one with a policy, or base for the built-in one", dir))
	case err == nil && !info.IsDir():
		return nil, usage(fmt.Errorf("%s is not a folder; a policy is one with config.json, model.safetensors and the tokenizer's files", dir))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read policy from %s: %w", dir, err)
	}
	for _, e := range entries {
		// What is no file might never end.
		name := filepath.Join(dir, e.Name())
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return nil, usage(fmt.Errorf("%s is not a regular file", name))
		}
	}
	return policy.ReadDir(dir)
}

// bundleText is a bundle for people.
func bundleText(w io.Writer, r *bundleResult) {
	fmt.Fprintf(w, "bundle   %s, %d bytes\n", r.CID, r.Bytes)
	fmt.Fprintf(w, "purpose  %s, %s split, %s %d\n", r.Purpose, r.Split, map[bool]string{true: "draw counter", false: "block"}[r.Peer != ""], r.Counter)
	fmt.Fprintf(w, "policy   version %d, %.12s\n", r.PolicyVersion, r.PolicyDigest)
	if r.Peer != "" {
		fmt.Fprintf(w, "peer     %s\n", r.Peer)
	}
	fmt.Fprintf(w, "tokens   %d sampled at temperature %g\n", r.Tokens, r.Temperature)
	for i, e := range r.Rollouts {
		fmt.Fprintf(w, "\nrollout %d of task %d: %s", i, e.Task, e.Outcome)
		if e.Reward != nil {
			fmt.Fprintf(w, ", reward %g", *e.Reward)
		}
		fmt.Fprintln(w)
		for _, call := range e.Calls {
			fmt.Fprintf(w, "  %s\n", indent(call.Prompt, "    "))
			fmt.Fprintf(w, "  > %s  (%s, probability %.3f%s)\n", indent(call.Completion, "    "), call.Agent, call.Probability, asked(call))
		}
	}
}

// asked is what a call's agent asked of sampling.
func asked(c report.Call) string {
	if c.Asked == "" {
		return ""
	}
	return ", asked " + c.Asked
}

// indent keeps the lines of a text together.
func indent(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }
