// Package base holds the policy that a new network starts from unless its charter names another: a small model,
// pretrained by package pretrain to use tools a little, that reinforcement learning then improves.
//
// The policy is the folder files, in the layout of policy.ReadDir, built into the program.
package base

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
)

//go:embed files
var embedded embed.FS

// Load is the base policy. The snapshot is made once and shared.
func Load() (*policy.Snapshot, error) { return once() }

var once = sync.OnceValues(func() (*policy.Snapshot, error) { return load(embedded) })

// load reads the folder files of a file system.
func load(root fs.FS) (*policy.Snapshot, error) {
	files, err := fs.Sub(root, "files")
	if err != nil {
		return nil, fmt.Errorf("load base policy: %w", err)
	}
	s, err := policy.ReadFS(files)
	if err != nil {
		return nil, fmt.Errorf("load base policy: %w", err)
	}
	return s, nil
}
