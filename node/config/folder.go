package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/durable"
)

// Folder is a node's data folder. OpenFolder makes one; the lock that it holds ends with Close or with the process.
type Folder struct {
	path string
	lock *os.File
}

// ErrLocked says that another process uses the data folder.
var ErrLocked = errors.New("data folder is in use")

// DefaultFolder is the folder that a node uses when the user names none: LIGHTSWARM_DATA, else a folder for
// Lightswarm in the user's data directory.
func DefaultFolder() (string, error) {
	if path := os.Getenv(environmentPrefix + "DATA"); path != "" {
		return path, nil
	}
	if path := os.Getenv("XDG_DATA_HOME"); path != "" {
		return filepath.Join(path, "lightswarm"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the data folder; name one with --data or LIGHTSWARM_DATA: %w", err)
	}
	return filepath.Join(home, ".local", "share", "lightswarm"), nil
}

// View names the files of a data folder without making, locking or checking it: for commands that talk to the node
// that holds it.
func View(path string) *Folder { return &Folder{path: path} }

// OpenFolder creates the folder if it is missing and locks it for this process. If another process has it, the error
// wraps ErrLocked and names that process.
func OpenFolder(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	f := &Folder{path: path}
	if f.lock, err = lockFile(f.file("lock")); err != nil {
		if errors.Is(err, ErrLocked) {
			return nil, fmt.Errorf("%w by %s: %s; stop that node or use another folder with --data", ErrLocked, f.holder(), path)
		}
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := errors.Join(f.lock.Truncate(0), writePID(f.lock)); err != nil {
		return nil, errors.Join(fmt.Errorf("write data folder's lock: %w", err), f.Close())
	}
	return f, nil
}

// Close gives the folder up.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	lock := f.lock
	f.lock = nil
	return lock.Close()
}

// holder describes the process that holds the lock.
func (f *Folder) holder() string {
	data, err := os.ReadFile(f.file("lock"))
	if pid := strings.TrimSpace(string(data)); err == nil && pid != "" {
		return "process " + pid
	}
	return "another process"
}

func writePID(lock *os.File) error {
	_, err := fmt.Fprintln(lock, os.Getpid())
	return err
}

func (f *Folder) file(name string) string { return filepath.Join(f.path, name) }

// Path is the folder itself.
func (f *Folder) Path() string { return f.path }

// ConfigFile is the settings file, which need not exist.
func (f *Folder) ConfigFile() string { return f.file("config.toml") }

// ListenFile names the addresses that the node listened on last, one a line, so that it takes the same ports again.
func (f *Folder) ListenFile() string { return f.file("listen") }

// Database is the folder of package store's database.
func (f *Folder) Database() string { return f.file("db") }

// Agents is where the programs that play rollouts work; nothing in it outlives the node.
func (f *Folder) Agents() string { return f.file("agents") }

// LightningFile says what the processes of Agent Lightning's runners need in their environment, one variable a line.
func (f *Folder) LightningFile() string { return f.file("lightning.env") }

// lightningKeyFile has the key that those runners have to know.
func (f *Folder) lightningKeyFile() string { return f.file("lightning.key") }

// WriteLightning writes LightningFile.
func (f *Folder) WriteLightning(environ string) error {
	return durable.WriteFile(f.LightningFile(), []byte(environ), 0o600)
}

// IdentityFile is the private key's file.
func (f *Folder) IdentityFile() string { return f.file("identity.key") }

// tokenFile is the file of the local API's bearer token.
func (f *Folder) tokenFile() string { return f.file("api.token") }

// addressFile is the file that says where the local API listens.
func (f *Folder) addressFile() string { return f.file("api.address") }

// WriteAddress publishes where the local API listens, as host:port.
func (f *Folder) WriteAddress(address string) error {
	return durable.WriteFile(f.addressFile(), []byte(address+"\n"), 0o600)
}

// RemoveAddress undoes WriteAddress.
func (f *Folder) RemoveAddress() error {
	if err := os.Remove(f.addressFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadAddress is what WriteAddress wrote. The error of a missing file says that no node runs there.
func (f *Folder) ReadAddress() (string, error) {
	data, err := os.ReadFile(f.addressFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no node runs on %s; start one, or name its folder with --data: %w", f.path, err)
	}
	if err != nil {
		return "", fmt.Errorf("find the node's API: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
