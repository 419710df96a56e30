package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/policy/base"
	"github.com/lightswarm/lightswarm/policy/kernel"
	"github.com/lightswarm/lightswarm/testnet/report"
	"github.com/lightswarm/lightswarm/wire"
)

// versionResult is what `version --json` prints.
type versionResult struct {
	build
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	// Kernels are the instructions that the engine uses here; they never change a result.
	Kernels string `json:"kernels"`
	// WireMajor is the newest major version of messages that the program reads.
	WireMajor uint32 `json:"wire_major"`
	// Engine is the class of the built-in engine: "exact" gives the same bits on every machine.
	Engine string `json:"engine"`
	// ReportSchema is that of a testnet's report.json.
	ReportSchema int `json:"report_schema"`
	// BasePolicy is the digest of the policy that is built in.
	BasePolicy string `json:"base_policy"`
}

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version and what is built into it",
		Args:  takes(0, 0),
		RunE:  func(*cobra.Command, []string) error { return p.printVersion(versionText) },
	}
}

// printVersion prints what `version --json` does, or else the text.
func (p *program) printVersion(text func(io.Writer, *versionResult)) error {
	r := versionResult{
		build: thisBuild(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Kernels: kernel.Active(), WireMajor: wire.Major, Engine: "exact", ReportSchema: report.Schema,
	}
	s, err := base.Load()
	if err != nil {
		return err
	}
	r.BasePolicy = s.Digest().String()
	return p.print(r, func(w io.Writer) { text(w, &r) })
}

// versionText is all of a version for people.
func versionText(w io.Writer, r *versionResult) {
	fmt.Fprintln(w, versionLine())
	if r.Revision != "" {
		fmt.Fprintf(w, "revision     %s\n", r.revision())
	}
	fmt.Fprintf(w, "base policy  %.12s\n", r.BasePolicy)
	fmt.Fprintf(w, "engine       %s, with %s kernels\n", r.Engine, r.Kernels)
	fmt.Fprintf(w, "formats      messages %d, report %d\n", r.WireMajor, r.ReportSchema)
}

// build says which source the program was built from.
type build struct {
	Version string `json:"version"`
	// Revision is the commit, Time when it was made, and Modified says that files had changed since; absent if the build
	// does not know.
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
}

// thisBuild is this program's.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{Version: "devel"}
	}
	return buildOf(info)
}

// buildOf reads a build's own description. A build of a working tree that the Go command does not number is "devel".
func buildOf(info *debug.BuildInfo) build {
	b := build{Version: strings.Trim(info.Main.Version, "()")}
	if b.Version == "" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// revision is the commit in words.
func (b build) revision() string {
	text := fmt.Sprintf("%.12s of %s", b.Revision, b.Time)
	if b.Modified {
		text += ", with changes that are not committed"
	}
	return text
}

// programVersion is the version that the program was built as: a release's, or the commit's.
func programVersion() string { return thisBuild().Version }

// versionLine is what --version prints.
func versionLine() string {
	return fmt.Sprintf("lightswarm %s (%s, %s/%s)", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
