package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/transformer"
	"github.com/lightswarm/lightswarm/wire"
)

// policyResult is what `policy show --json` prints.
type policyResult struct {
	Digest      string `json:"digest"`
	StateDigest string `json:"state_digest"`
	// Manifest is the CID of the manifest's block, by which nodes fetch the policy.
	Manifest   string `json:"manifest"`
	Parameters int    `json:"parameters"`
	Bytes      int64  `json:"bytes"`
	Vocabulary int    `json:"vocabulary"`
	Context    int    `json:"context"`
	Hidden     int    `json:"hidden_size"`
	Layers     int    `json:"layers"`
	Heads      int    `json:"heads"`
	Template   string `json:"template"`
	Tensors    int    `json:"tensors"`
	Blocks     int    `json:"blocks"`
}

func (p *program) policy() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Look at policies and make them"}
	c.AddCommand(p.policyShow(), p.policySave(), p.pretrain(), p.train())
	return c
}

func (p *program) policyShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show [base|FOLDER|VERSION]",
		Short: "Show what a policy is: digests, sizes and shape",
		Long: `Show the built-in policy, the one of a folder that lightswarm policy pretrain made, or the one of a version of a network:
the node that runs on the data folder is asked for it. A learner has all of its versions, as far as their blocks did not
have to make room; any other node has the newest.`,
		Example: `  lightswarm policy show
  lightswarm policy show ./policy2 --json
  lightswarm policy show 5 --data ./mynet`,
		Args: takes(0, 1),
	}
	data := p.dataFlag(c)
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		name := ""
		if len(arguments) > 0 {
			name = arguments[0]
		}
		version, err := strconv.ParseUint(name, 10, 64)
		if err != nil || exists(name) {
			return p.printPolicy(readPolicy(name))
		}
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		_, s, err := releasedPolicy(cmd.Context(), folder, &version)
		return p.printPolicy(s, err)
	}
	return c
}

// printPolicy prints what a policy is that was read without an error.
func (p *program) printPolicy(s *policy.Snapshot, err error) error {
	if err != nil {
		return err
	}
	shape, err := transformer.ParseConfig(s.ConfigJSON)
	if err != nil {
		return err
	}
	manifest, blocks, err := s.Encode()
	if err != nil {
		return err
	}
	r := policyResult{
		Digest: s.Digest().String(), StateDigest: s.State.String(), Manifest: manifest.String(),
		Parameters: shape.Parameters(), Bytes: s.Bytes(), Vocabulary: s.Tokenizer.VocabSize(), Context: shape.Context,
		Hidden: shape.Hidden, Layers: shape.Layers, Heads: shape.Heads,
		Template: string(s.Template), Tensors: len(s.Tensors), Blocks: len(blocks),
	}
	return p.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "digest      %s\n", r.Digest)
		fmt.Fprintf(w, "weights     %s\n", r.StateDigest)
		fmt.Fprintf(w, "manifest    %s, %d blocks of at most %d KiB\n", r.Manifest, r.Blocks, wire.MaxBlockBytes>>10)
		fmt.Fprintf(w, "model       %d parameters, %d bytes: %d layers, width %d, %d heads, context %d\n",
			r.Parameters, r.Bytes, r.Layers, r.Hidden, r.Heads, r.Context)
		fmt.Fprintf(w, "vocabulary  %d tokens\n", r.Vocabulary)
		fmt.Fprintf(w, "template    %s\n", r.Template)
	})
}
