package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lightswarm/lightswarm/node/config"
)

// remember stores a list of section p2p in the data folder's settings, so that the node starts the same way without
// flags. Settings that exist are the user's and stay as they are.
func remember(folder, comment, name string, list []string) error {
	if len(list) == 0 {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n[p2p]\n%s = [\n", comment, name)
	for _, value := range list {
		fmt.Fprintf(&b, "  %q,\n", value)
	}
	b.WriteString("]\n")
	f, err := os.OpenFile(config.View(folder).ConfigFile(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return nil
}
