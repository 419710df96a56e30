//go:build unix

package process

import (
	"context"
	"log/slog"
)

// errSystem says why agents cannot be programs here.
var errSystem error

// newStarter is what starts a command's programs. It ends with ctx, and is closed after that.
func newStarter(ctx context.Context, c Command, scratch string, log *slog.Logger) (starter, error) {
	if len(c.Preload) == 0 {
		return &cold{c}, nil
	}
	return newWarm(ctx, c, scratch, log)
}
