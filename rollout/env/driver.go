package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lightswarm/lightswarm/wire"
)

// KindBuiltin is the kind of environments that are part of the program.
const KindBuiltin = "builtin"

// Driver runs the environments of one kind. It is safe for concurrent use. Package drivertest tests what it makes.
type Driver interface {
	// Kind is the manifest's kind that it is for.
	Kind() string
	// Open makes a package ready to run. Its errors say what is wrong with the package and what to do. The environment
	// may hold processes or files: Close frees them. ctx bounds Open alone.
	Open(ctx context.Context, p *Package) (Environment, error)
}

// Drivers are drivers of different kinds.
type Drivers []Driver

// Open makes a package ready to run with the driver of its kind. The caller closes the environment.
func (d Drivers) Open(ctx context.Context, p *Package) (Environment, error) {
	m := p.Manifest()
	var kinds []string
	for _, driver := range d {
		if driver.Kind() == m.Kind {
			e, err := driver.Open(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("environment %s@%s: %w", m.Name, m.Version, err)
			}
			return e, nil
		}
		kinds = append(kinds, driver.Kind())
	}
	if len(kinds) == 0 {
		kinds = []string{"no packages"}
	}
	return nil, fmt.Errorf("environment %s@%s is of kind %q, and this program runs %s: upgrade lightswarm, or use another environment",
		m.Name, m.Version, m.Kind, strings.Join(kinds, ", "))
}

// ErrClosed is the error of what is asked of an environment that was closed, and of its episodes.
var ErrClosed = errors.New("the environment was closed")

// Close frees what an environment holds, after its last episode. Most hold nothing.
func Close(e Environment) error {
	if c, ok := e.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Builtin is the driver of environments that are part of the program.
func Builtin(environments ...Environment) Driver { return builtin(environments) }

type builtin []Environment

func (builtin) Kind() string { return KindBuiltin }

// Open finds the environment whose manifest is the package's, to the byte: tasks and scoring are the program's, so that
// another manifest would promise what nobody keeps.
func (b builtin) Open(_ context.Context, p *Package) (Environment, error) {
	entry := p.Manifest().Entry
	for _, e := range b {
		if e.Manifest().Entry != entry {
			continue
		}
		cid, err := CID(e)
		if err == nil && cid != p.CID() {
			err = fmt.Errorf("this program's %s is %s, not %s: another version of lightswarm has that one", entry, cid, p.CID())
		}
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	return nil, fmt.Errorf("%w: nothing called %q is built into this program", ErrUnknown, entry)
}

// CheckManifest says what in a manifest is not as a package's has to be, with a *wire.ValidationError: package names
// and versions are stricter than those of environments built into the program.
func CheckManifest(m wire.EnvironmentManifest) error {
	const message = "environment manifest"
	switch {
	case !wire.PackageName(m.Name):
		return &wire.ValidationError{Message: message, Field: "name", Why: wire.PackageNameRule}
	case !wire.PackageVersion(m.Version):
		return &wire.ValidationError{Message: message, Field: "version", Why: wire.PackageVersionRule}
	case m.Licence == "":
		return &wire.ValidationError{Message: message, Field: "licence", Why: "must say how others may use it, such as Apache-2.0 or MIT"}
	}
	return m.Validate()
}
