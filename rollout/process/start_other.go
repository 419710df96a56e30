//go:build !unix

package process

import (
	"context"
	"errors"
)

// errSystem says why agents cannot be programs here: process groups, which they are ended by, are Unix's.
var errSystem = errors.New("agents that are programs need a Unix system")

// newStarter is never called.
func newStarter(context.Context, Command, string, Options) (starter, error) {
	return nil, errSystem
}
