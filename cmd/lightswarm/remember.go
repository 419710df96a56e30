package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/node/config"
)

// remembered is a list of section p2p that a first start leaves to later ones.
type remembered struct {
	name    string
	comment string
	list    []string
}

// remember stores a list, which may be empty, in the data folder's settings, so that the node starts the same way without
// flags. Settings that exist are the user's and stay as they are.
func remember(folder string, r remembered) error {
	name := config.View(folder).ConfigFile()
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n[p2p]\n%s = [\n", r.comment, r.name)
	for _, value := range r.list {
		fmt.Fprintf(&b, "  %q,\n", value)
	}
	b.WriteString("]\n")
	// The node holds the folder's lock, or has just given it up: nobody else writes.
	if err := durable.WriteFile(name, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return nil
}
