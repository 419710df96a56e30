package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/openenv"
	"github.com/lightswarm/lightswarm/rollout/env/program"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
	"github.com/lightswarm/lightswarm/strictoml"
	"github.com/lightswarm/lightswarm/wire"
)

// SourceFile is the file that describes a package's folder.
const SourceFile = "environment.toml"

// maxSourceBytes bounds it.
const maxSourceBytes = 128 << 10

// What a module has if environment.toml does not say.
const (
	DefaultMemoryMiB = 64
	DefaultSteps     = 1_000_000_000
)

// What a program has if environment.toml does not say.
const (
	DefaultProgramMemoryMiB = 512
	DefaultProgramSeconds   = 10
)

// DefaultReplySeconds is how long a server's reply may take if environment.toml does not say.
const DefaultReplySeconds = 60

// source is environment.toml.
type source struct {
	Name          string   `toml:"name"`
	Version       string   `toml:"version"`
	Description   string   `toml:"description"`
	Licence       string   `toml:"licence"`
	Kind          string   `toml:"kind"`
	Determinism   string   `toml:"determinism"`
	Agents        []string `toml:"agents"`
	TrainedAgents []string `toml:"trained_agents"`
	Reward        struct {
		Min float64 `toml:"min"`
		Max float64 `toml:"max"`
	} `toml:"reward"`
	Split []struct {
		Name  string `toml:"name"`
		Tasks int64  `toml:"tasks"`
		File  string `toml:"file"`
	} `toml:"split"`
	Wasm struct {
		Module    string `toml:"module"`
		Go        string `toml:"go"`
		MemoryMiB int64  `toml:"memory_mib"`
		Steps     int64  `toml:"steps"`
	} `toml:"wasm"`
	Exec struct {
		Program   string   `toml:"program"`
		Files     []string `toml:"files"`
		MemoryMiB int64    `toml:"memory_mib"`
		Seconds   float64  `toml:"seconds"`
	} `toml:"exec"`
	OpenEnv struct {
		openenv.Spec
		Seconds float64 `toml:"seconds"`
	} `toml:"openenv"`
}

// SourceError says what is wrong with environment.toml.
type SourceError struct {
	// File is its path, Line the line concerned, 0 if it is what is missing.
	File string
	Line int
	Why  string
}

func (e *SourceError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Why
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why)
}

// Read makes a package of a folder. What environment.toml says is to be built is built first: ctx ends that. Whatever it
// reads is bounded.
func Read(ctx context.Context, dir string) (*env.Package, error) {
	name := filepath.Join(dir, SourceFile)
	s, m, lines, err := readSource(dir, name)
	if err != nil {
		return nil, err
	}
	artefacts := map[string][]byte{}
	from := map[string]string{} // where each artefact comes from, for people
	// add reads a file of the folder.
	add := func(file, field string) error {
		artefact := filepath.Base(file)
		content, err := readArtefact(dir, file)
		if other, ok := from[artefact]; err == nil && ok && other != file {
			err = fmt.Errorf("%s is called %s, as is %s: rename one of them", file, artefact, other)
		}
		if err != nil {
			return &SourceError{name, lines[field], err.Error()}
		}
		artefacts[artefact], from[artefact] = content, file
		return nil
	}
	switch {
	case s.Kind == program.Kind:
		if err := add(s.Exec.Program, "exec.program"); err != nil {
			return nil, err
		}
		for _, file := range s.Exec.Files {
			if err := add(file, "exec.files"); err != nil {
				return nil, err
			}
		}
	case s.Kind == openenv.Kind:
		if artefacts[openenv.SpecFile], err = s.OpenEnv.Encode(); err != nil {
			return nil, &SourceError{name, lines["openenv"], err.Error()}
		}
		from[openenv.SpecFile] = "the table openenv"
	case s.Wasm.Go != "":
		artefacts[goModule], err = buildGo(ctx, dir, s.Wasm.Go)
		if err != nil {
			return nil, &SourceError{name, lines["wasm.go"], err.Error()}
		}
		from[goModule] = "the module"
	default:
		if err := add(s.Wasm.Module, "wasm.module"); err != nil {
			return nil, err
		}
	}
	for i, split := range s.Split {
		if split.File == "" {
			continue
		}
		if err := add(split.File, fmt.Sprintf("split[%d].file", i)); err != nil {
			return nil, err
		}
		if split.Tasks == 0 {
			m.Splits[i].Tasks = countLines(artefacts[m.Splits[i].Data])
		}
	}
	p, err := env.NewPackage(m, artefacts)
	if err != nil {
		return nil, locate(name, lines, err)
	}
	return p, nil
}

// Peek is the manifest of a folder as far as environment.toml alone says it: without the artefacts, and with no number of
// tasks for a split that is in a file. If the folder has no environment.toml the error is a fs.ErrNotExist.
func Peek(dir string) (wire.EnvironmentManifest, error) {
	_, m, _, err := readSource(dir, filepath.Join(dir, SourceFile))
	return m, err
}

func readSource(dir, name string) (s source, m wire.EnvironmentManifest, lines map[string]int, err error) {
	text, err := readFile(dir, SourceFile, maxSourceBytes)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s has no %s (%w): `lightswarm env init` makes a folder with one", dir, SourceFile, fs.ErrNotExist)
	}
	if err == nil {
		s, lines, err = parse(name, text)
	}
	if err == nil {
		m, err = s.manifest(name, lines)
	}
	return s, m, lines, err
}

// countLines is how many tasks a file has.
func countLines(content []byte) (n uint64) {
	for i, c := range content {
		if c == '\n' || i == len(content)-1 {
			n++
		}
	}
	return n
}

// parse reads the text, and on which line each field is.
func parse(name string, text []byte) (s source, lines map[string]int, err error) {
	lines, err = strictoml.Decode(text, &s)
	var wrong *strictoml.Error
	if errors.As(err, &wrong) {
		err = &SourceError{name, wrong.Line, wrong.Why}
	}
	return s, lines, err
}

// manifest is what the source says, with the artefacts' names and without their contents.
func (s *source) manifest(name string, lines map[string]int) (wire.EnvironmentManifest, error) {
	m := wire.EnvironmentManifest{
		Name: s.Name, Version: s.Version, Description: s.Description, Licence: s.Licence, Kind: s.Kind,
		RewardMin: float32(s.Reward.Min), RewardMax: float32(s.Reward.Max),
		Agents: s.Agents, TrainedAgents: s.TrainedAgents,
		Determinism: map[string]wire.Determinism{"exact": wire.DeterminismExact, "stochastic": wire.DeterminismStochastic}[s.Determinism],
	}
	fail := func(field, format string, arguments ...any) (wire.EnvironmentManifest, error) {
		return m, &SourceError{name, lines[field], field + " " + fmt.Sprintf(format, arguments...)}
	}
	limits, ok := map[string]func(*wire.EnvironmentManifest) (field, why string){
		wasm.Kind: s.wasmLimits, program.Kind: s.execLimits, openenv.Kind: s.openEnvLimits,
	}[s.Kind]
	if !ok {
		return fail("kind", "is %q; packages can be of kind %q, %q or %q", s.Kind, wasm.Kind, program.Kind, openenv.Kind)
	}
	if m.Determinism == 0 {
		return fail("determinism", `is %q; it must be "exact" or "stochastic"`, s.Determinism)
	}
	for i, split := range s.Split {
		field := fmt.Sprintf("split[%d]", i)
		data := ""
		switch {
		case split.Tasks < 0:
			return fail(field+".tasks", "must not be negative")
		case split.File == "" && split.Tasks == 0:
			return fail(field, "needs file, a file with one task a line, or tasks, how many the environment makes itself")
		case split.File != "":
			data = filepath.Base(split.File)
		}
		m.Splits = append(m.Splits, wire.Split{Name: split.Name, Tasks: uint64(split.Tasks), Data: data})
	}
	if field, why := limits(&m); why != "" {
		return fail(field, "%s", why)
	}
	// What is only known of the files is filled in to check the rest.
	known := m
	known.Splits, known.Artefacts = nil, nil
	for _, split := range m.Splits {
		known.Splits = append(known.Splits, wire.Split{Name: split.Name, Tasks: max(split.Tasks, 1)})
	}
	if err := env.CheckManifest(known); err != nil {
		return m, locate(name, lines, err)
	}
	if math.Abs(s.Reward.Min) > math.MaxFloat32 || math.Abs(s.Reward.Max) > math.MaxFloat32 {
		return fail("reward", "must be numbers that fit 32 bits")
	}
	return m, nil
}

// wasmLimits fills in what a module has, or says what is wrong with a field.
func (s *source) wasmLimits(m *wire.EnvironmentManifest) (field, why string) {
	w := s.Wasm
	switch {
	case (w.Module == "") == (w.Go == ""):
		return "wasm", `needs either module, the compiled module's file, or go, the Go package that it is built from, such as "."`
	case w.MemoryMiB < 0 || w.MemoryMiB > wasm.MaxMemoryBytes>>20:
		return "wasm.memory_mib", fmt.Sprintf("is %d; it must be between 1 and %d", w.MemoryMiB, wasm.MaxMemoryBytes>>20)
	case w.Steps < 0 || w.Steps > 0 && w.Steps < wasm.MinSteps || w.Steps > wasm.MaxSteps:
		return "wasm.steps", fmt.Sprintf("is %d; it must be between %d and %d", w.Steps, wasm.MinSteps, int64(wasm.MaxSteps))
	}
	if m.Entry = filepath.Base(w.Module); w.Go != "" {
		m.Entry = goModule
	}
	m.Limits = wire.EpisodeLimits{MemoryBytes: DefaultMemoryMiB << 20, Steps: DefaultSteps}
	if w.MemoryMiB > 0 {
		m.Limits.MemoryBytes = uint64(w.MemoryMiB) << 20
	}
	if w.Steps > 0 {
		m.Limits.Steps = uint64(w.Steps)
	}
	return "", ""
}

// execLimits fills in what a program has, or says what is wrong with a field. A program's steps are milliseconds.
func (s *source) execLimits(m *wire.EnvironmentManifest) (field, why string) {
	x := s.Exec
	memory, seconds := x.MemoryMiB, x.Seconds
	if memory == 0 {
		memory = DefaultProgramMemoryMiB
	}
	if seconds == 0 {
		seconds = DefaultProgramSeconds
	}
	switch {
	case x.Program == "":
		return "exec", `needs program, a file such as "environment.py" whose first line says what runs it`
	case memory < program.MinMemoryBytes>>20 || memory > program.MaxMemoryBytes>>20:
		return "exec.memory_mib", fmt.Sprintf("is %d; it must be between %d and %d", memory, program.MinMemoryBytes>>20, program.MaxMemoryBytes>>20)
	case !(seconds >= program.MinTime.Seconds() && seconds <= program.MaxTime.Seconds()):
		return "exec.seconds", fmt.Sprintf("is %v; it must be between %v and %v", seconds, program.MinTime.Seconds(), program.MaxTime.Seconds())
	case m.Determinism != wire.DeterminismStochastic:
		return "determinism", `must be "stochastic": what a program does also depends on the machine's interpreter`
	}
	m.Entry = filepath.Base(x.Program)
	m.Limits = wire.EpisodeLimits{MemoryBytes: uint64(memory) << 20, Steps: uint64(math.Round(seconds * 1000))}
	return "", ""
}

// openEnvLimits fills in what a server has, or says what is wrong with a field. Its steps are milliseconds.
func (s *source) openEnvLimits(m *wire.EnvironmentManifest) (field, why string) {
	o := &s.OpenEnv
	seconds := o.Seconds
	if seconds == 0 {
		seconds = DefaultReplySeconds
	}
	if o.Reward == "" {
		o.Reward = openenv.RewardSum
	}
	switch field, why := o.Check(); {
	case why != "":
		return strings.TrimSuffix("openenv."+field, "."), why
	case !(seconds >= openenv.MinTime.Seconds() && seconds <= openenv.MaxTime.Seconds()):
		return "openenv.seconds", fmt.Sprintf("is %v; it must be between %v and %v", seconds, openenv.MinTime.Seconds(), openenv.MaxTime.Seconds())
	case m.Determinism != wire.DeterminismStochastic:
		return "determinism", `must be "stochastic": nothing makes two servers agree`
	}
	m.Entry = openenv.SpecFile
	m.Limits = wire.EpisodeLimits{Steps: uint64(math.Round(seconds * 1000))}
	return "", ""
}

// fieldNames are fields of the manifest that have another name in environment.toml.
var fieldNames = strings.NewReplacer("reward_min", "reward.min", "reward_max", "reward.max", "splits", "split",
	"limits.memory_bytes", "wasm.memory_mib", "limits.steps", "wasm.steps", "entry", "wasm.module")

// locate finds the line that an error about the manifest is about.
func locate(name string, lines map[string]int, err error) error {
	var invalid *wire.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%s: %w", filepath.Dir(name), err)
	}
	field := fieldNames.Replace(invalid.Field)
	return &SourceError{name, lines[field], field + " " + invalid.Why}
}

// readArtefact reads a file of the folder.
func readArtefact(dir, name string) ([]byte, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is outside the folder: name a file in it", name)
	}
	content, err := readFile(dir, name, wire.MaxArtefactBlocks*wire.MaxBlockBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s: make it, or name another one", filepath.Join(dir, name))
	}
	return content, err
}

// readFile reads a regular file below a folder, of at most limit bytes. Links out of the folder are not followed: whoever
// packs a folder that others have made would give away, unseen, what they lead to.
func readFile(dir, name string, limit int64) ([]byte, error) {
	path := filepath.Join(dir, name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case err != nil:
		if _, there := os.Stat(path); there == nil {
			err = fmt.Errorf("%s is a link to what is not in the folder: put the file itself there", path)
		}
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes, the most that is allowed", path, limit)
	}
	return content, err
}
