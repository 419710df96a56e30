package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/wire"
)

// versionResult is what `version --json` prints.
type versionResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// Kernels are the instructions that the engine uses here; they never change a result.
	Kernels string `json:"kernels"`
	// WireMajor is the newest major version of messages that the program reads.
	WireMajor uint32 `json:"wire_major"`
	// BasePolicy is the digest of the policy that is built in.
	BasePolicy string `json:"base_policy"`
}

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version and what is built into it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r := versionResult{
				Version: programVersion(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
				Kernels: kernel.Active(), WireMajor: wire.Major,
			}
			s, err := base.Load()
			if err != nil {
				return err
			}
			r.BasePolicy = s.Digest().String()
			return p.print(r, func(w io.Writer) {
				fmt.Fprintf(w, "lightswarm %s (%s, %s/%s)\n", r.Version, r.Go, r.OS, r.Arch)
				fmt.Fprintf(w, "base policy  %s\n", s.Digest().Short())
				fmt.Fprintf(w, "kernels      %s\n", r.Kernels)
			})
		},
	}
}
