//go:build unix

package process

import "context"

// errSystem says why agents cannot be programs here.
var errSystem error

// newStarter is what starts a command's programs below a folder. It ends with ctx, and is closed after that.
func newStarter(ctx context.Context, c Command, scratch string, o Options) (starter, error) {
	switch {
	case isModule(c.Args[0]):
		return newModules(ctx, c, scratch, o)
	case len(c.Preload) == 0:
		return &cold{c, scratch, o.MaxOutput}, nil
	case isNode(c.Args[0]):
		return newSpares(ctx, c, scratch, o)
	}
	return newWarm(ctx, c, scratch, o)
}
