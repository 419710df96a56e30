//go:build !unix

package process

import (
	"context"
	"errors"
	"log/slog"
)

// newStarter fails: process groups, which agents are ended by, are Unix's.
func newStarter(context.Context, Command, string, *slog.Logger) (starter, error) {
	return nil, errors.New("agents that are programs need a Unix system")
}
