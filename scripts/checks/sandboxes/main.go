// Command sandboxes has three parts, of which scripts/checks/sandbox makes a whole:
//
//	sandboxes pack FILE     writes the package of the environment that `lightswarm env init` begins with
//	sandboxes play FILE     plays groups in it and prints the CIDs of their bundles
//	sandboxes start FILE    measures how long its episodes take to start, with the compiled module in the cache
//
// The policy is a script: what is compared is the environment.
package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/wire"
)

// patience bounds the whole command, under emulation too.
const patience = 5 * time.Minute

func main() {
	if len(os.Args) == 2 && os.Args[1] == "work" {
		if err := wasm.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %s", patience))
	err := run(ctx)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	interpreter := flag.Bool("interpreter", false, "interpret modules instead of compiling them")
	emulator := flag.String("emulator", "", "what has to start this program's own child, such as qemu-aarch64")
	groups := flag.Int("groups", 6, "how many draws are played")
	judged := flag.Bool("judged", true, "fail when an episode takes too long to start")
	flag.Parse()
	if flag.NArg() != 2 {
		return fmt.Errorf("give pack, play or start, and a file")
	}
	file := flag.Arg(1)
	if flag.Arg(0) == "pack" {
		return write(ctx, file)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	packed, err := pack.Decode(raw)
	if err != nil {
		return err
	}
	driver := wasm.New(wasm.Options{
		Command: append(strings.Fields(*emulator), self, "work"), Cache: cache, Interpreter: *interpreter,
	})
	switch flag.Arg(0) {
	case "play":
		return play(ctx, driver, packed.Package, *groups)
	case "start":
		return start(ctx, driver, packed.Package, *judged)
	}
	return fmt.Errorf("there is no %q", flag.Arg(0))
}

// write makes the package, signed with a key that everybody knows.
func write(ctx context.Context, file string) error {
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := pack.Template(filepath.Join(dir, "letters"), "letters", wasm.Kind); err != nil {
		return err
	}
	p, err := pack.Read(ctx, filepath.Join(dir, "letters"))
	if err != nil {
		return err
	}
	signed, err := pack.Sign(p, wire.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))), time.Unix(1, 0))
	if err != nil {
		return err
	}
	return os.WriteFile(file, signed.Encode(), 0o600)
}

// opened gives f the environment of a package, and closes it.
func opened(ctx context.Context, d *wasm.Driver, p *env.Package, f func(env.Environment) error) error {
	e, err := d.Open(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(f(e), env.Close(e))
}
