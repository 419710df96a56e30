package pack

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// sound is a folder's environment.toml; its module is any file.
const sound = `name = "maze"
version = "1.2.3"
description = "Finding the way out."
licence = "MIT"
kind = "wasm"
determinism = "exact"
agents = ["walker", "mapper"]
trained_agents = ["walker"]

[reward]
min = -1
max = 1

[[split]]
name = "train"
tasks = 1000

[[split]]
name = "validation"
file = "tasks/validation.jsonl"

[wasm]
module = "maze.wasm"
memory_mib = 8
steps = 5_000_000
`

// folder writes a package's folder.
func folder(t testing.TB, text, tasks string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		SourceFile: text, "maze.wasm": strings.Repeat("module", 300_000), "tasks/validation.jsonl": tasks,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const twoTasks = "{\"size\":3}\n\"any value\"\n"

func read(t testing.TB) *env.Package {
	t.Helper()
	p, err := Read(t.Context(), folder(t, sound, twoTasks))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadMakesAPackage(t *testing.T) {
	p := read(t)
	m := p.Manifest()
	if got := fmt.Sprint(m.Name, m.Version, m.Entry, m.Splits, m.RewardMin, m.RewardMax, m.Agents, m.TrainedAgents, m.Limits); got !=
		"maze1.2.3maze.wasm[{train 1000 } {validation 2 validation.jsonl}] -1 1 [walker mapper] [walker] {8388608 5000000}" {
		t.Errorf("the manifest has %s", got)
	}
	if len(m.Artefacts) != 2 || len(m.Artefacts[0].Blocks) != 2 || m.Artefacts[0].Bytes() != 1_800_000 {
		t.Errorf("the artefacts are %v", m.Artefacts)
	}
	for index, want := range []string{`{"size":3}`, `"any value"`} {
		if got := string(p.Task("validation", uint64(index))); got != want {
			t.Errorf("task %d is %s, want %s", index, got, want)
		}
	}
	if p.Task("validation", 2) != nil || p.Task("train", 0) != nil {
		t.Error("there are more listed tasks than lines")
	}
	if again := read(t); again.CID() != p.CID() {
		t.Error("the same folder gives two packages")
	}
}

// Blocks are what a package is fetched by.
func TestAssemble(t *testing.T) {
	p := read(t)
	blocks := p.Blocks()
	get := func(_ context.Context, cid wire.CID) ([]byte, error) {
		if b, ok := blocks[cid]; ok {
			return b, nil
		}
		return nil, errors.New("no such block")
	}
	for _, b := range blocks {
		if len(b) > wire.MaxBlockBytes {
			t.Errorf("a block of %d bytes", len(b))
		}
	}
	again, err := env.AssemblePackage(t.Context(), p.CID(), get)
	if err != nil || again.CID() != p.CID() || !bytes.Equal(again.Artefact("maze.wasm"), p.Artefact("maze.wasm")) {
		t.Errorf("%v", err)
	}
	for cid, b := range blocks {
		changed := bytes.Clone(b)
		changed[0] ^= 1
		for _, bad := range [][]byte{nil, b[1:], changed} {
			blocks[cid] = bad
			if _, err := env.AssemblePackage(t.Context(), p.CID(), get); err == nil {
				t.Errorf("block %s may be %d other bytes", cid, len(bad))
			}
		}
		blocks[cid] = b
	}
}

// What is wrong is named with its line, and with what to do.
func TestReadSaysWhatIsWrong(t *testing.T) {
	replace := func(old, instead string) string {
		if !strings.Contains(sound, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(sound, old, instead, 1)
	}
	long := strings.Repeat("x", wire.MaxDescriptionBytes+1)
	for _, c := range []struct{ text, tasks, says string }{
		{replace(`name = "maze"`, `name = "The Maze"`), twoTasks, "toml:1: name must be lower-case letters"},
		{replace(`"1.2.3"`, `"1"`), twoTasks, "toml:2: version must be a semantic version"},
		{replace("Finding the way out.", long), twoTasks, "toml:3: description has 4097 bytes; at most 4096"},
		{replace(`"MIT"`, `""`), twoTasks, "toml:4: licence must say how others may use it"},
		{replace(`"wasm"`, `"docker"`), twoTasks, `toml:5: kind is "docker"; packages can be of kind "wasm", "exec" or "openenv"`},
		{replace(`"exact"`, `"yes"`), twoTasks, `toml:6: determinism is "yes"; it must be "exact" or "stochastic"`},
		{replace(`["walker", "mapper"]`, `[]`), twoTasks, "toml:7: agents must name at least one agent"},
		{replace(`["walker"]`, `["runner"]`), twoTasks, "toml:8: trained_agents must all be among agents"},
		{replace("max = 1", "max = -1"), twoTasks, "toml:12: reward.max must be above reward_min"},
		{replace("tasks = 1000", "tasks = -1"), twoTasks, "toml:16: split[0].tasks must not be negative"},
		{replace("tasks = 1000", ""), twoTasks, "toml:14: split[0] needs file"},
		{replace(`name = "validation"`, `name = "train"`), twoTasks, "toml:19: split[1].name must differ"},
		{replace("tasks/validation.jsonl", "../x"), twoTasks, "toml:20: \"../x\" is outside the folder"},
		{replace("tasks/validation.jsonl", "tasks/none.jsonl"), twoTasks, "toml:20: there is no file"},
		{replace("memory_mib = 8", "memory_mib = 9000"), twoTasks, "toml:24: wasm.memory_mib is 9000; it must be between 1 and 1024"},
		{replace("steps = 5_000_000", "steps = 5"), twoTasks, "toml:25: wasm.steps is 5; it must be between"},
		{replace(`module = "maze.wasm"`, ""), twoTasks, "toml:22: wasm needs either module"},
		{replace(`module = "maze.wasm"`, `module = "maze.wasm"`+"\ngo = \".\""), twoTasks, "toml:22: wasm needs either module"},
		{replace("[reward]", "[rewards]"), twoTasks, "toml:10: there is no field rewards"},
		{replace("memory_mib", "memory"), twoTasks, "there is no field wasm.memory"},
		{replace("tasks = 1000", "tasks = true"), twoTasks, "toml:16: "},
		{replace("min = -1", "min ="), twoTasks, "toml:11: "},
		{strings.Repeat("#", maxSourceBytes+1), twoTasks, "is larger than"},
		{sound, "", "the file is empty"},
		{sound, "{}\n\n{}\n", "validation.jsonl: line 2: it is empty; put one JSON value on each line"},
		{sound, "{}\n{\n", "validation.jsonl: line 2: it is not JSON"},
		{sound, "{}\n{} {}\n", "validation.jsonl: line 2: it is not JSON"},
		{sound, "\"\xff\"", "validation.jsonl: line 1: it is not UTF-8"},
		{sound, `"` + strings.Repeat("x", env.MaxTaskBytes) + `"`, "validation.jsonl: line 1: a task of 65538 bytes"},
		{replace("file =", "tasks = 3\nfile ="), twoTasks, "has 3 tasks in the manifest and 2 lines"},
	} {
		_, err := Read(t.Context(), folder(t, c.text, c.tasks))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want …%s…", err, c.says)
		}
	}
	if _, err := Read(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "env init") {
		t.Errorf("an empty folder: %v", err)
	}
}

// A folder that somebody else made must not get at files outside of it.
func TestLinksOutOfTheFolderAreNotFollowed(t *testing.T) {
	dir := folder(t, sound, twoTasks)
	tasks := filepath.Join(dir, "tasks", "validation.jsonl")
	inside := filepath.Join(dir, "tasks", "all")
	if err := os.Rename(tasks, inside); err != nil {
		t.Fatal(err)
	}
	link := func(to string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(tasks), os.Symlink(to, tasks)); err != nil {
			t.Fatal(err)
		}
	}
	link("all")
	if _, err := Read(t.Context(), dir); err != nil {
		t.Errorf("a link within the folder: %v", err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(twoTasks), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(filepath.Dir(tasks), secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{secret, relative} {
		link(to)
		if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "a link to what is not in the folder") {
			t.Errorf("a link to %s: %v", to, err)
		}
	}
}

func TestTemplateOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Template(dir, "No Name", "wasm"); err == nil {
		t.Error("a bad name is accepted")
	}
	if _, err := Template(dir, "my-letters", "builtin"); err == nil || !strings.Contains(err.Error(), "use wasm, exec or openenv") {
		t.Errorf("another kind: %v", err)
	}
	for kind, n := range map[string]int{"wasm": 5, "exec": 4, "openenv": 2} {
		files, err := Template(filepath.Join(dir, kind), "my-letters", kind)
		if err != nil || len(files) != n {
			t.Fatalf("%v, %v", files, err)
		}
		if m, err := Peek(filepath.Join(dir, kind)); err != nil || m.Name != "my-letters" || m.Kind != kind {
			t.Errorf("%+v, %v", m, err)
		}
		if _, err := Template(filepath.Join(dir, kind), "my-letters", kind); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("a second time: %v", err)
		}
	}
}

// A program's package has its files too, and a time in milliseconds.
func TestReadProgram(t *testing.T) {
	a, _, _ := strings.Cut(sound, "[wasm]")
	text := strings.NewReplacer(`"wasm"`, `"exec"`, `"exact"`, `"stochastic"`).Replace(a) + `[exec]
program = "maze.wasm"
files = ["tasks/validation.jsonl", "environment.toml"]
memory_mib = 100
seconds = 0.25
`
	p, err := Read(t.Context(), folder(t, text, twoTasks))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest()
	if got := fmt.Sprint(m.Kind, m.Entry, m.Determinism, m.Limits, len(m.Artefacts)); got != "execmaze.wasm2 {104857600 250} 3" {
		t.Errorf("the manifest has %s", got)
	}
	for _, c := range []struct{ old, instead, says string }{
		{`program = "maze.wasm"`, "", "toml:22: exec needs program"},
		{`program = "maze.wasm"`, `program = "none"`, "toml:23: there is no file"},
		{`"tasks/validation.jsonl", `, `"../x", `, `toml:24: "../x" is outside the folder`},
		{"memory_mib = 100", "memory_mib = 63", "toml:25: exec.memory_mib is 63; it must be between 64 and 4096"},
		{"seconds = 0.25", "seconds = nan", "toml:26: exec.seconds is NaN; it must be between 0.1 and 600"},
		{`"stochastic"`, `"exact"`, `toml:6: determinism must be "stochastic"`},
	} {
		_, err := Read(t.Context(), folder(t, strings.Replace(text, c.old, c.instead, 1), twoTasks))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want …%s…", err, c.says)
		}
	}
}

// A server's package has how it is met, and nothing of the server.
func TestReadOpenEnv(t *testing.T) {
	a, _, _ := strings.Cut(sound, "[wasm]")
	text := strings.NewReplacer(`"wasm"`, `"openenv"`, `"exact"`, `"stochastic"`).Replace(a) + `[openenv]
server = "example.org/maze"
observe = ["legal_moves", "metadata.status"]
reward = "last"
seconds = 2.5

[openenv.reset]
size = 3
shape = { walls = [1, 2.5] }

[[openenv.tool]]
name = "move"
action = { kind = "move" }

[openenv.tool.parameters]
type = "object"
required = ["to"]
properties.to = { type = "integer", minimum = 0 }

[openenv.answer]
field = "answer"
`
	dir := folder(t, text, "{}\n{}\n")
	p, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest()
	if got := fmt.Sprint(m.Kind, m.Entry, m.Determinism, m.Limits, len(m.Artefacts)); got != "openenvopenenv.json2 {0 2500} 2" {
		t.Errorf("the manifest has %s", got)
	}
	const want = `{"server":"example.org/maze","reset":{"shape":{"walls":[1,2.5]},"size":3},"observe":["legal_moves","metadata.status"],` +
		`"tools":[{"name":"move","parameters":{"properties":{"to":{"minimum":0,"type":"integer"}},"required":["to"],"type":"object"},` +
		`"action":{"kind":"move"}}],"answer":{"field":"answer"},"reward":"last"}`
	if got := string(p.Artefact("openenv.json")); got != want {
		t.Errorf("it is met by %s, want %s", got, want)
	}
	for _, c := range []struct{ old, instead, says string }{
		{`server = "example.org/maze"`, ``, "toml: openenv.server must say what has to run"},
		{`"legal_moves"`, `"legal_moves."`, `toml:24: openenv.observe has "legal_moves."`},
		{`reward = "last"`, `reward = "mean"`, `toml:25: openenv.reward is "mean"`},
		{"seconds = 2.5", "seconds = 0.01", "toml:26: openenv.seconds is 0.01; it must be between 0.1 and 600"},
		{"size = 3", "seed = 3", "toml:28: openenv.reset must not have seed"},
		{"size = 3", "size = nan", "toml:22: openenv has a number that JSON does not"},
		{`name = "move"`, `name = "go there"`, "toml:33: openenv.tool[0].name is"},
		{`field = "answer"`, ``, "toml: openenv.answer.field must name"},
		{`"stochastic"`, `"exact"`, `toml:6: determinism must be "stochastic"`},
		{"seconds = 2.5", "second = 2.5", "there is no field openenv.second"},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("no %q", c.old)
		}
		_, err := Read(t.Context(), folder(t, strings.Replace(text, c.old, c.instead, 1), "{}\n{}\n"))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want …%s…", err, c.says)
		}
	}
}

func testKey() wire.Key {
	return wire.NewKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte("a"), ed25519.SeedSize)))
}

func TestFile(t *testing.T) {
	p := read(t)
	unsigned := File{Package: p}
	signed, err := Sign(p, testKey(), time.UnixMilli(1e12))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []File{unsigned, signed} {
		got, err := Decode(f.Encode())
		if err != nil || got.CID() != p.CID() || (got.Statement == nil) != (f.Statement == nil) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if want := testKey().Peer().String() + "/maze@1.2.3"; signed.Statement.Reference() != want {
		t.Errorf("the reference is %s, want %s", signed.Statement.Reference(), want)
	}

	m := p.Manifest()
	m.Splits = m.Splits[:1]
	small, err := env.NewPackage(m, map[string][]byte{m.Entry: []byte("module")})
	if err != nil {
		t.Fatal(err)
	}
	if signed, err = Sign(small, testKey(), time.UnixMilli(1e12)); err != nil {
		t.Fatal(err)
	}
	b := signed.Encode()
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 0x40
		if _, err := Decode(damaged); err == nil {
			t.Errorf("byte %d may be another", i)
		}
	}
	for n := range b {
		if _, err := Decode(b[:n]); err == nil {
			t.Errorf("%d bytes are enough", n)
		}
	}
	if _, err := Decode(append(b, 0)); !errors.Is(err, ErrFile) {
		t.Errorf("more bytes: %v", err)
	}
	newer := bytes.Clone(b)
	newer[4] = fileMajor + 1
	if _, err := Decode(newer); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a newer file: %v", err)
	}
}

// A statement about one package does not vouch for another.
func TestStatementIsAboutThePackage(t *testing.T) {
	signed, err := Sign(read(t), testKey(), time.UnixMilli(1e12))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Read(t.Context(), folder(t, sound, "1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(File{other, signed.Statement}.Encode()); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "signed another package") {
		t.Errorf("%v", err)
	}
}

// FuzzDecode: whatever the bytes, Decode returns; what it accepts encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	m := read(f).Manifest()
	m.Splits = m.Splits[:1]
	small, err := env.NewPackage(m, map[string][]byte{"maze.wasm": []byte("module")})
	if err != nil {
		f.Fatal(err)
	}
	signed, err := Sign(small, testKey(), time.UnixMilli(1e12))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed.Encode())
	f.Add(File{Package: small}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Decode(b)
		if err == nil && !bytes.Equal(file.Encode(), b) {
			t.Error("it encodes to other bytes")
		}
	})
}

// FuzzSource: whatever environment.toml has, reading it returns, and its fields have lines.
func FuzzSource(f *testing.F) {
	f.Add([]byte(sound))
	f.Add([]byte("[a]\nb.c = 1\n[[d]]\n[[d]]\ne = [\n1]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, lines, err := parse("environment.toml", text)
		if err != nil {
			return
		}
		for field, line := range lines {
			if line < 1 || line > bytes.Count(text, []byte("\n"))+1 {
				t.Errorf("%s is on line %d", field, line)
			}
		}
		s.manifest("environment.toml", lines)
	})
}

// The examples' part of the protocol is the template's: what is mended in one is mended in all.
func TestTheExamplesSpeakTheTemplatesProtocol(t *testing.T) {
	template, err := os.ReadFile("template/exec/protocol.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"text-to-sql", "retrieval-qa"} {
		example, err := os.ReadFile("../../../examples/" + name + "/protocol.py")
		if err != nil {
			t.Fatal(err)
		}
		if string(template) != string(example) {
			t.Errorf("examples/%s/protocol.py differs from template/exec/protocol.py", name)
		}
	}
}
