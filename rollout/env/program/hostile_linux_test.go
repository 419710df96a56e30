package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// What never ends is ended.
func TestTimeIsLimited(t *testing.T) {
	m := manifest()
	m.Limits.Steps = 3000
	e := openHostile(t, m)
	var acting sync.WaitGroup
	for _, name := range []string{"loop", "sleep", "ignore", "fork"} {
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		acting.Go(func() {
			_, err := p.Call(t.Context(), name, "")
			var f *protocol.Failure
			if !errors.As(err, &f) || f.Reason != protocol.ReasonTime || !strings.Contains(f.Detail, "call: it took longer than the 3s that the manifest allows") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	acting.Wait()
	if result, err := act(t, e, "echo", "still here"); err != nil || result != "still here" {
		t.Errorf("the next episode: %q, %v", result, err)
	}
}

// Whatever a program does, it is contained: the episode fails for a clear reason, and the next one, which does something
// else, plays.
func TestHostileProgramsAreContained(t *testing.T) {
	e := openHostile(t, manifest())
	for _, c := range []struct {
		act    string
		reason protocol.Reason
		says   string
	}{
		{"memory", protocol.ReasonExit, "MemoryError"},
		{"threads", protocol.ReasonThreads, "threads; at most 64"},
		{"files", protocol.ReasonFiles, "at most 64 MiB"},
		{"many", protocol.ReasonFiles, "in 1025 files"},
		{"removed", protocol.ReasonFiles, "at most 64 MiB"},
		{"unreadable", protocol.ReasonFiles, "at most 64 MiB"},
		{"deep", protocol.ReasonFiles, "at most 64 MiB"},
		{"mapped", protocol.ReasonFiles, "at most 64 MiB"},
		{"restless", protocol.ReasonFiles, "at most 64 MiB"},
		{"leaderless", protocol.ReasonFiles, "at most 64 MiB"},
		{"output", protocol.ReasonOutput, "more than 1048576 bytes"},
		{"endless", protocol.ReasonOutput, "more than 1048576 bytes"},
		{"errors", protocol.ReasonOutput, "more than 4 MiB to its standard error"},
		{"exit", protocol.ReasonExit, "exit status 3 before it had answered"},
		{"exit", protocol.ReasonExit, "that is enough"},
		{"crash", protocol.ReasonExit, "segmentation fault"},
	} {
		t.Run(c.act, func(t *testing.T) {
			p, err := e.Reset(t.Context(), "train", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Call(t.Context(), c.act, "")
			if f := failure(t, err); f.Reason != c.reason || !strings.Contains(f.Detail, c.says) {
				t.Fatalf("the failure is %#v, want %s: …%s…", f, c.reason, c.says)
			}
			if _, again := p.Score(t.Context(), "{}"); !errors.Is(again, err) {
				t.Errorf("afterwards the episode says %v", again)
			}
		})
	}
	if result, err := act(t, e, "echo", "still here"); err != nil || result != "still here" {
		t.Errorf("the last episode: %q, %v", result, err)
	}
}

// A program that is stopped while its room is counted loses nothing of a large answer.
func TestAnswersSurviveStops(t *testing.T) {
	e := openHostile(t, manifest())
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	said, err := p.Call(t.Context(), "pid", "")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(said)
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	folder := t.TempDir()
	var counting sync.WaitGroup
	counting.Go(func() {
		for ctx.Err() == nil {
			room(process, folder) // the stop is all that matters
		}
	})
	defer counting.Wait()
	defer cancel()
	for range 2 {
		const size = 1000 << 10
		if answer, err := p.Call(t.Context(), "repeat", strconv.Itoa(size)); err != nil || len(answer) != size {
			t.Fatalf("an answer of %d bytes, want %d: %v", len(answer), size, err)
		}
	}
}

// No process outlives its episode, as there is none but the program.
func TestNothingIsStarted(t *testing.T) {
	e := openHostile(t, manifest())
	said, err := act(t, e, "survive", "")
	const no = "Operation not permitted"
	if want := strings.Repeat(no+"; ", 5) + "['" + no + "', 'Function not implemented', '" + no + "']"; err != nil || said != want {
		t.Errorf("%q, %v, want %q", said, err, want)
	}
}

// What a program's threads keep is where it is counted, and no room is taken faster than by writing.
func TestRoomIsWhereItIsCounted(t *testing.T) {
	e := openHostile(t, manifest())
	const no = "Operation not permitted"
	if said, err := act(t, e, "separate", ""); err != nil || said != no+"; "+no+"; "+no {
		t.Errorf("descriptors of their own: %q, %v", said, err)
	}
	if said, err := act(t, e, "reserve", ""); err != nil || said != "Operation not supported" {
		t.Errorf("room that is reserved: %q, %v", said, err)
	}
}

// Descriptors that the node was started with, of others' files perhaps, are none of a program's business.
func TestDescriptorsOfOthers(t *testing.T) {
	e := openHostile(t, manifest())
	file, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inherited, err := syscall.Dup(int(file.Fd())) // stays open in what is started
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if said, err := act(t, e, "descriptors", ""); err != nil || said != "0 1 2" {
		t.Errorf("its descriptors are %q, %v", said, err)
	}
}

// A program reaches nothing of the machine but what it needs.
func TestFilesOfOthers(t *testing.T) {
	e := openHostile(t, manifest())
	key := filepath.Join(t.TempDir(), "identity.key")
	if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const no = "Permission denied"
	none := []string{key, "/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/self/maps", "/proc/1/cmdline", "/proc/mounts", "/dev/tty"}
	if said, err := act(t, e, "read", encode(t, none)); err != nil || said != strings.TrimSuffix(strings.Repeat(no+"; ", len(none)), "; ") {
		t.Errorf("%q, %v", said, err)
	}
	folders := []string{filepath.Dir(key), "/", "/etc", "/tmp", "/proc", "/sys", "/dev", e.dir}
	if said, err := act(t, e, "folders", encode(t, folders)); err != nil || said != strings.TrimSuffix(strings.Repeat(no+"; ", len(folders)), "; ") {
		t.Errorf("%q, %v", said, err)
	}

	outside := filepath.Join(filepath.Dir(key), "new")
	said, err := act(t, e, "change", encode(t, []string{key, outside}))
	if err != nil || strings.Contains(said, "did ") || strings.Count(said, "; ") != 25 {
		t.Errorf("%q, %v", said, err)
	}
	for _, file := range []string{key, filepath.Join(e.dir, packageFolder, "hostile.py")} {
		info, err := os.Stat(file)
		if err != nil || info.Size() == 0 || info.Mode().Perm()&0o600 != 0o600 || time.Since(info.ModTime()) > time.Hour {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Errorf("there is %s", outside)
	}
	t.Setenv("SECRET", "of the node")
	want := "HOME LANG MALLOC_ARENA_MAX OMP_NUM_THREADS OPENBLAS_NUM_THREADS PATH PYTHONDONTWRITEBYTECODE PYTHONHASHSEED " +
		"PYTHONNOUSERSITE PYTHONUTF8 TMPDIR TZ"
	if said, err := act(t, e, "variables", ""); err != nil || said != want {
		t.Errorf("its variables are %q, %v, want %q", said, err, want)
	}
}

// What one episode leaves behind, the next one does not find, and the machine neither.
func TestScratchIsRemoved(t *testing.T) {
	e := openHostile(t, manifest())
	if said, err := act(t, e, "work", ""); err != nil || said != "42 4 True True" {
		t.Fatalf("%q, %v", said, err)
	}
	if said, err := act(t, e, "folders", `["."]`); err != nil || said != "did 0" {
		t.Errorf("%q, %v", said, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(e.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestNoNetwork(t *testing.T) {
	e := openHostile(t, manifest())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	said, err := act(t, e, "network", strconv.Itoa(port))
	if want := strings.Repeat("Operation not permitted; ", 6) + "did b'pair'"; err != nil || said != want {
		t.Errorf("%q, %v, want %q", said, err, want)
	}
}

func TestTheNodeIsOutOfReach(t *testing.T) {
	e := openHostile(t, manifest())
	said, err := act(t, e, "parent", strconv.Itoa(os.Getpid()))
	if err != nil || strings.Contains(said, "did ") || strings.Count(said, "; ") != 9 {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := act(t, e, "calls", ""); err != nil || said != "[]" {
		t.Errorf("not refused: %s, %v", said, err)
	}
	if said, err := act(t, e, "raise_limits", ""); err != nil || said != "no no no no" {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := act(t, e, "limits", ""); err != nil || said != fmt.Sprintf("%d 401 %d 64 1 0", 128<<20, MaxScratchBytes) {
		t.Errorf("%q, %v", said, err)
	}

	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pid := must(p.Call(t.Context(), "pid", ""))
	status := string(must(os.ReadFile("/proc/" + pid + "/status")))
	for _, want := range []string{`CapPrm:\s0{16}`, `CapEff:\s0{16}`, `NoNewPrivs:\s1`, `Seccomp:\s2`} {
		if !regexp.MustCompile(want).MatchString(status) {
			t.Errorf("there is no %q in:\n%s", want, status)
		}
	}
	if group := must(syscall.Getpgid(must(strconv.Atoi(pid)))); strconv.Itoa(group) != pid {
		t.Errorf("it is in process group %d, not in its own", group)
	}
}

// A program that goes on when it has answered has bounds all the same.
func TestComputingInTheBackground(t *testing.T) {
	for _, act := range []string{"compute", "compute_deaf"} {
		e := openHostile(t, manifest())
		e.setup.Seconds = 1
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := p.Call(t.Context(), act, ""); err != nil || said != "answered" {
			t.Fatalf("%q, %v", said, err)
		}
		e.processes.Wait()
		_, err = p.Call(t.Context(), "echo", "")
		if f := failure(t, err); f.Reason != protocol.ReasonTime || !strings.Contains(f.Detail, "it computed for longer than 1 s, 20 times") {
			t.Errorf("%s: the failure is %#v", act, f)
		}
		p.Close()
	}
}

// What comes after an answer is the failure of the next request.
func TestMoreThanWasAsked(t *testing.T) {
	e := openHostile(t, manifest())
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if result, err := p.Call(t.Context(), "raw", `{"result":"one"}`+"\n"+`{"result":"two"}`+"\n"); err != nil || result != "one" {
		t.Errorf("%q, %v", result, err)
	}
	e.processes.Wait()
	_, err = p.Call(t.Context(), "echo", "")
	if f := failure(t, err); f.Reason != protocol.ReasonProtocol || !strings.Contains(f.Detail, "when nothing is asked") {
		t.Errorf("the failure is %#v", f)
	}
}

// A rollout that is given up does not wait for its program.
func TestGivingUpDoesNotWait(t *testing.T) {
	m := manifest()
	m.Limits.Steps = uint64(MaxTime / time.Millisecond)
	e := openHostile(t, m)
	for range 6 { // more than there is room for at once
		p, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := p.Call(ctx, "sleep", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call says %v", err)
		}
		cancel()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Close(e); err != nil {
		t.Error(err)
	}
	if _, err := p.Call(t.Context(), "echo", ""); !errors.Is(err, env.ErrClosed) {
		t.Errorf("an episode of a closed environment says %v", err)
	}
	p.Close()
	if _, err := e.Reset(t.Context(), "train", 0); !errors.Is(err, env.ErrClosed) {
		t.Errorf("a closed environment says %v", err)
	}
}

// startNode starts another process that has an environment's program running, and returns both. Its folders are in dir.
func startNode(t *testing.T, dir string) (node *exec.Cmd, program int) {
	t.Helper()
	needSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node = exec.Command(self, nodeArgument)
	node.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err = fmt.Fscan(out, &program); err != nil {
		kill(node)
		t.Fatal(err)
	}
	return node, program
}

// kill kills a process and waits for its end.
func kill(node *exec.Cmd) {
	node.Process.Kill()
	node.Wait()
}

// A node that is killed leaves no program behind.
func TestProgramsEndWithTheNode(t *testing.T) {
	node, program := startNode(t, t.TempDir())
	kill(node)
	if !ends(t, program) {
		t.Errorf("process %d lives on", program)
	}
}

// What a node that was killed has left on the disk the next one removes, and nothing that is in use.
func TestFoldersOfKilledNodesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	node, program := startNode(t, dir)
	folders := func() []string { return must(filepath.Glob(filepath.Join(dir, "*"))) }
	killed := folders()
	first := openHostile(t, manifest()) // while the other node still works
	if now := folders(); len(killed) != 1 || len(now) != 2 {
		t.Errorf("there are %q and then %q", killed, now)
	}
	kill(node)
	if !ends(t, program) {
		t.Fatalf("process %d lives on", program)
	}
	// Others were killed while they removed theirs.
	for _, begun := range []string{"1/remove-2/3", "4"} {
		if err := os.MkdirAll(filepath.Join(dir, folderName+begun), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, folderName+"1", lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := openHostile(t, manifest())
	for _, e := range []*Environment{first, second} {
		if said, err := act(t, e, "echo", "here"); err != nil || said != "here" {
			t.Errorf("%q, %v", said, err)
		}
	}
	if now := folders(); len(now) != 2 || slices.Contains(now, killed[0]) {
		t.Errorf("there are %q", now)
	}
}

// ends waits for a process that is not this one's child.
func ends(t *testing.T, pid int) bool {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case <-ticker.C:
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || strings.Contains(string(stat), ") Z ") {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
