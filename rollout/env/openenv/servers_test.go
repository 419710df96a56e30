//go:build sdks && unix

package openenv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/wire"
)

// The driver is held to servers of the Python package openenv, unmodified and at a fixed version, each a process of its own:
// the template's, and that of testdata/tools.py, whose tools take the answer too. The tests have the build tag sdks, because
// they need what scripts/checks/openenv installs.

// patience bounds how long a server may take to start: its imports alone take many seconds on a busy machine.
const patience = 3 * time.Minute

// freePort is a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts a server and waits until it listens. The function kills it, which the test's end does too.
func start(t *testing.T, script, port string, variables ...string) (kill func()) {
	t.Helper()
	cache := os.Getenv("OPENENV_CACHE")
	if cache == "" {
		t.Fatal("OPENENV_CACHE is not set: run scripts/checks/openenv")
	}
	var said bytes.Buffer
	server := exec.Command(filepath.Join(cache, "bin", "python"), "-B", script)
	server.Env = append(append(os.Environ(), "PORT="+port), variables...)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		server.Wait() //nolint:errcheck // it is killed
		close(ended)
	}()
	var once sync.Once
	kill = func() {
		once.Do(func() {
			server.Process.Kill() //nolint:errcheck // it fails if it has ended
			<-ended
		})
	}
	t.Cleanup(kill)
	late := time.After(patience)
	for again := time.NewTicker(50 * time.Millisecond); ; {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			again.Stop()
			return kill
		}
		select {
		case <-again.C:
		case <-ended:
			t.Fatalf("the server ended: %s", said.String())
		case <-late:
			kill()
			t.Fatalf("the server does not listen after %v: %s", patience, said.String())
		}
	}
}

// open opens a package on a server, and closes it with the test.
func open(t *testing.T, p *env.Package, port string) env.Environment {
	t.Helper()
	e, err := openenv.New(openenv.Options{Server: "http://127.0.0.1:" + port}).Open(context.WithoutCancel(t.Context()), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(e); err != nil {
			t.Error(err)
		}
	})
	return e
}

// words is how the environment of tools.py is met. A reply may take 3 s.
func words(t *testing.T) *env.Package {
	t.Helper()
	spec := openenv.Spec{
		Server: "tools.py", Observe: []string{"metadata.question"}, ServerTools: true, Reward: openenv.RewardSum,
		Answer: &openenv.Answer{Tool: "submit", Field: "answer"}, Components: []string{"state.step_count"},
	}
	raw, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p, err := env.NewPackage(wire.EnvironmentManifest{
		Name: "words", Version: "1.0.0", Licence: "Apache-2.0", Kind: openenv.Kind, Entry: openenv.SpecFile,
		Splits:    []wire.Split{{Name: "train", Tasks: 1000}},
		RewardMax: 1, Determinism: wire.DeterminismStochastic, Agents: []string{"solver"}, Limits: wire.EpisodeLimits{Steps: 3000},
	}, map[string][]byte{openenv.SpecFile: raw})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// solve counts letters, with the tool spell.
func solve(ctx context.Context, e env.Episode, letter, word, argument string) (string, error) {
	spelt, err := e.Call(ctx, "spell", fmt.Sprintf(`{%q:%q}`, argument, word))
	if err == nil && strings.ReplaceAll(spelt, " ", "") != word {
		err = fmt.Errorf("%q is spelt %q", word, spelt)
	}
	return fmt.Sprint(strings.Count(word, letter)), err
}

var solveWords = env.PlayerFunc(func(ctx context.Context, _ string, _ uint64, e env.Episode) (string, error) {
	word := strings.TrimSuffix(strings.TrimPrefix(e.Messages()[0].Content, "How often is a in "), "?")
	return solve(ctx, e, "a", word, "word")
})

// The template works as it is.
func TestTemplateServer(t *testing.T) {
	dir := t.TempDir()
	if _, err := pack.Template(dir, "letters", openenv.Kind); err != nil {
		t.Fatal(err)
	}
	p, err := pack.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	start(t, filepath.Join(dir, "server.py"), port)
	e := open(t, p, port)
	drivertest.Test(t, drivertest.Subject{Environment: e, Null: env.Null(), Tasks: 3, Oracle: env.PlayerFunc(func(ctx context.Context, _ string, _ uint64, e env.Episode) (string, error) {
		parts := strings.Split(e.Messages()[1].Content, `"`)
		if len(parts) != 5 {
			return "", fmt.Errorf("the task is %q", e.Messages()[1].Content)
		}
		return solve(ctx, e, parts[1], parts[3], "text")
	})})
	// What is wrong with an action is told to whoever took it, also if only the server knows.
	spec, err := openenv.DecodeSpec(p.Artefact(openenv.SpecFile))
	if err != nil {
		t.Fatal(err)
	}
	spec.Tools[0].Parameters = map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{}}}
	raw, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	careless, err := env.NewPackage(p.Manifest(), map[string][]byte{openenv.SpecFile: raw})
	if err != nil {
		t.Fatal(err)
	}
	for e, wants := range map[env.Environment]map[string]string{
		e:                       {`{"text":3}`: "error: text must be of type string", `{}`: "error: text is missing", `{"kind":"answer"}`: `error: there is no parameter "kind"`},
		open(t, careless, port): {`{"text":3}`: "error: text: Input should be a valid string", `{}`: "error: text: Field required"},
	} {
		episode, err := e.Reset(t.Context(), "train", 0)
		if err != nil {
			t.Fatal(err)
		}
		for arguments, want := range wants {
			if got, err := episode.Call(t.Context(), "spell", arguments); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", arguments, got, err, want)
			}
		}
		episode.Close()
	}
}

// Tools are the server's, and so is the one that takes the answer.
func TestToolsServer(t *testing.T) {
	port := freePort(t)
	start(t, "testdata/tools.py", port)
	e := open(t, words(t), port)
	drivertest.Test(t, drivertest.Subject{Environment: e, Oracle: solveWords, Null: env.Null(), Tasks: 3})
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if tools := p.Tools(); len(tools) != 1 || tools[0].Name != "spell" || tools[0].Description != "Spells a word." {
		t.Errorf("%+v", tools)
	}
	for arguments, want := range map[string]string{
		`{"word":"unspeakable"}`: "nobody can spell that",
		`{"word":["a"]}`:         "valid string",
		`{}`:                     "word",
	} {
		if got, err := p.Call(t.Context(), "spell", arguments); err != nil || !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v, want error: …%s…", arguments, got, err, want)
		}
	}
	score, err := p.Score(t.Context(), "none")
	if err != nil || score.Reward != 0 || score.Components["state.step_count"] != 4 {
		t.Errorf("%+v, %v", score, err)
	}
}

// fails has an episode call a tool with a word that the server fails at.
func fails(t *testing.T, e env.Environment, word string) protocol.Failure {
	t.Helper()
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, err = p.Call(t.Context(), "spell", fmt.Sprintf(`{"word":%q}`, word))
	var f *protocol.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%s: %v is no failure of the environment", word, err)
	}
	if score, err := p.Score(t.Context(), "3"); err == nil {
		t.Errorf("%s: scored %+v", word, score)
	}
	return *f
}

// play plays one task well.
func play(ctx context.Context, e env.Environment, index uint64) error {
	p, err := e.Reset(ctx, "train", index)
	if err != nil {
		return err
	}
	defer p.Close()
	answer, err := solveWords.Play(ctx, "train", index, p)
	if err != nil {
		return err
	}
	score, err := p.Score(ctx, answer)
	if err == nil && score.Reward != 1 {
		err = fmt.Errorf("the reward is %v", score.Reward)
	}
	return err
}

// A server that fails, is late or is killed costs the episode alone, and is met again once it is back.
func TestFailingServers(t *testing.T) {
	port := freePort(t)
	kill := start(t, "testdata/tools.py", port)
	e := open(t, words(t), port)
	for word, want := range map[string]protocol.Failure{
		"broken": {Reason: protocol.ReasonReported, Detail: "the dictionary is lost"},
		"slow":   {Reason: protocol.ReasonTime, Detail: "the server took longer than the 3s"},
	} {
		if f := fails(t, e, word); f.Reason != want.Reason || !strings.Contains(f.Detail, want.Detail) {
			t.Errorf("%s: %+v", word, f)
		}
		if err := play(t.Context(), e, 1); err != nil {
			t.Errorf("after %s: %v", word, err)
		}
	}
	p, err := e.Reset(t.Context(), "train", 0)
	if err != nil {
		t.Fatal(err)
	}
	kill()
	var f *protocol.Failure
	if _, err := p.Score(t.Context(), "3"); !errors.As(err, &f) || f.Reason != protocol.ReasonServer {
		t.Errorf("%v", err)
	}
	p.Close()
	start(t, "testdata/tools.py", port)
	if err := play(t.Context(), e, 2); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}

// A server with one place plays all that want it, one after the other.
func TestOneServerPlace(t *testing.T) {
	port := freePort(t)
	start(t, "testdata/tools.py", port, "PLACES=1")
	e := open(t, words(t), port)
	errs := make([]error, 6)
	var playing sync.WaitGroup
	for i := range errs {
		playing.Go(func() { errs[i] = play(t.Context(), e, uint64(i)) })
	}
	playing.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
