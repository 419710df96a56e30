package kernel

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Environment is the environment variable that names the path to use at start.
const Environment = "LIGHTSWARM_KERNEL"

// path numbers one implementation of the kernels. All implementations give the same bits.
type path int32

const (
	portable path = iota
	avx2
	avx512
	neon
)

var pathNames = [...]string{portable: "portable", avx2: "avx2", avx512: "avx512", neon: "neon"}

// active is the path in use. Kernels load it once a call, so a change never tears a call.
var active atomic.Int32

func init() {
	p, err := choose(os.Getenv(Environment))
	if err != nil {
		// There is no caller to return to, and to go on would hide that the wish was not met.
		fmt.Fprintf(os.Stderr, "%s: %v\n", Environment, err)
		os.Exit(2)
	}
	active.Store(int32(p))
}

// choose returns the named path, or the fastest one if the name is empty.
func choose(name string) (path, error) {
	if name == "" {
		return supported[len(supported)-1], nil
	}
	return lookup(name)
}

func current() path { return path(active.Load()) }

// Available lists the names of the paths that this processor and build support, slowest first. It always starts with
// "portable".
func Available() []string {
	names := make([]string, len(supported))
	for i, p := range supported {
		names[i] = pathNames[p]
	}
	return names
}

// Active names the path in use.
func Active() string { return pathNames[current()] }

// Use selects a path by name. It returns an error, and changes nothing, if the path is unknown or not available here.
// A Packed keeps the path on which it was packed. Use may be called at any time from any goroutine.
func Use(name string) error {
	p, err := lookup(name)
	if err != nil {
		return err
	}
	active.Store(int32(p))
	return nil
}

func lookup(name string) (path, error) {
	i := slices.Index(pathNames[:], name)
	if i < 0 || !slices.Contains(supported, path(i)) {
		return portable, fmt.Errorf("no kernel path %q here: choose one of %s", name, strings.Join(Available(), ", "))
	}
	return path(i), nil
}
