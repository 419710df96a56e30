package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// place is the folders of one process: the working folder, HOME and TMPDIR, each its own and empty at the start.
type place struct{ root, work, home, temp string }

func newPlace(scratch string) (place, error) {
	root, err := os.MkdirTemp(scratch, "run-")
	if err != nil {
		return place{}, err
	}
	p := place{root, filepath.Join(root, "work"), filepath.Join(root, "home"), filepath.Join(root, "tmp")}
	for _, folder := range []string{p.work, p.home, p.temp} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return place{}, err
		}
	}
	return p, nil
}

// room is what one program has to itself: its folders and its standard streams.
type room struct {
	place
	*stdio
	access gateway.Access       // of the rollout's session; zero if none is reserved
	tenant interface{ leave() } // the process that waits in it; nil when none does, or when its rollout has begun
}

// newRoom makes a room below a folder, for an answer of at most limit bytes.
func newRoom(scratch string, limit int) (*room, error) {
	p, err := newPlace(scratch)
	if err != nil {
		return nil, err
	}
	s, err := newStdio(limit)
	if err != nil {
		return nil, errors.Join(err, RemoveAll(p.root))
	}
	return &room{place: p, stdio: s}, nil
}

// vacate ends whoever waits in the room and removes its folders. A program that has begun there has ended before.
func (r *room) vacate() error {
	if r.tenant != nil {
		r.tenant.leave()
	}
	r.finish()
	r.close()
	return RemoveAll(r.root)
}

// RemoveAll removes a folder that programs ran in, also what they made read-only.
func RemoveAll(folder string) error {
	if os.RemoveAll(folder) == nil {
		return nil
	}
	// What cannot be walked or changed, the second attempt complains of.
	_ = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(folder)
}

// base is the environment of every process of the package. More entries come behind it: of two with the same name the
// later one counts.
func base(p place) []string {
	environ := []string{"HOME=" + p.home, "TMPDIR=" + p.temp}
	for _, name := range []string{"PATH", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// maxVariable bounds TASK, in bytes: operating systems bound what an environment can hold.
const maxVariable = 64 << 10

// environ is the environment of one rollout's program, but for its task.
func environ(p place, more []string, a gateway.Access) []string {
	return latest(append(slices.Concat(base(p), more, a.Environ()), mark(a.ID())))
}

// withTask adds the task to an environment, if one can hold it.
func withTask(environ []string, task string) []string {
	if len(task) > maxVariable || strings.ContainsRune(task, 0) {
		return environ
	}
	return latest(append(environ, "TASK="+task))
}

// latest keeps the last of the entries with one name.
func latest(environ []string) (out []string) {
	at := map[string]int{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, "")
		}
		out[i] = entry
	}
	return out
}

// mark is a variable that all processes of a rollout inherit, and no others have.
func mark(rollout string) string { return "LIGHTSWARM_ROLLOUT=" + rollout }

// marksOf are the marks in an environment.
func marksOf(environ []string) (marks []string) {
	for _, entry := range environ {
		if strings.HasPrefix(entry, mark("")) {
			marks = append(marks, entry)
		}
	}
	return marks
}
