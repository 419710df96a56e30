package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/gateway"
	"github.com/lightswarm/lightswarm/rollout/lightning"
)

// newRunners makes a player that runners of Agent Lightning connect to, whose calls may name these roles. What their
// processes need in their environment is in a file of the data folder; without one, in the log.
func newRunners(address string, roles []string, folder *config.Folder, log *slog.Logger) (_ *player, err error) {
	p := &player{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("runners of Agent Lightning at %s: %w", address, err), p.close())
		}
	}()
	key, err := lightningKey(folder)
	if err != nil {
		return nil, err
	}
	if p.gateway, err = gateway.Serve(gateway.Options{Log: log}); err != nil {
		return nil, err
	}
	runners, err := lightning.Serve(lightning.Options{Gateway: p.gateway, Address: address, Key: key, Roles: roles, Log: log})
	if err != nil {
		return nil, err
	}
	p.agent, p.runners = runners, runners
	environ := strings.Join(runners.Environ(), "\n") + "\n"
	if folder == nil {
		log.Info("rollouts are played by runners of Agent Lightning that connect", "address", runners.Address(), "environment", environ)
		return p, nil
	}
	if err := folder.WriteLightning(environ); err != nil {
		return nil, fmt.Errorf("write what runners need: %w", err)
	}
	log.Info("rollouts are played by runners of Agent Lightning that connect", "address", runners.Address(), "environment", folder.LightningFile())
	return p, nil
}

// lightningKey is the key that runners have to know: the data folder's, so that they find a node that starts again.
func lightningKey(folder *config.Folder) (string, error) {
	if folder == nil {
		return config.NewToken(), nil
	}
	return folder.LightningKey()
}
