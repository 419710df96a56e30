package openenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/wire"
)

// SpecFile is the artefact that holds the Spec, the manifest's entry.
const SpecFile = "openenv.json"

// Limits on a Spec.
const (
	MaxSpecBytes = 256 << 10
	maxTools     = 64
	maxPaths     = 64
	maxPath      = 256
	// maxDepth is how many fields within one another a path has.
	maxDepth = 8
)

// What becomes of the rewards of an episode's steps.
const (
	RewardSum  = "sum"  // their sum is the episode's
	RewardLast = "last" // the last one is
)

// Spec says how an agent meets an OpenEnv environment. It is the table openenv of environment.toml, and in JSON the artefact
// SpecFile. It is not changed once it was checked.
type Spec struct {
	// Server says what has to run, for whoever is to start it: where its source or its image is.
	Server string `toml:"server" json:"server"`
	// Prompt is the system message before the first observation; empty for none.
	Prompt string `toml:"prompt" json:"prompt,omitempty"`
	// Reset has arguments of every reset, besides the task's own.
	Reset map[string]any `toml:"reset" json:"reset,omitempty"`
	// Observe are the fields of an observation that the agent gets to see, such as "question" or "metadata.status". Empty
	// means all but metadata, as JSON.
	Observe []string `toml:"observe" json:"observe,omitempty"`
	// ServerTools gives the agent the tools that the server lists.
	ServerTools bool `toml:"server_tools" json:"server_tools,omitempty"`
	// Tools are actions that the agent can take besides.
	Tools []Tool `toml:"tool" json:"tools,omitempty"`
	// Answer is what becomes of the final answer; nil if nothing does: then steps alone are rewarded.
	Answer *Answer `toml:"answer" json:"answer,omitempty"`
	// Reward is RewardSum or RewardLast.
	Reward string `toml:"reward" json:"reward"`
	// Components are numbers that explain the reward: fields of the last observation, or of the server's state with
	// "state." before them.
	Components []string `toml:"components" json:"components,omitempty"`
}

// Tool is an action as a tool. Its arguments are fields of the action.
type Tool struct {
	Name        string `toml:"name" json:"name"`
	Description string `toml:"description" json:"description,omitempty"`
	// Parameters is a JSON schema of an object. What is not by it never reaches the server: arguments that are not among its
	// properties, that are missing or of another type, that enum, minimum or maximum exclude. Other keywords are the agent's
	// to heed.
	Parameters map[string]any `toml:"parameters" json:"parameters,omitempty"`
	// Action has the fields that every such action has.
	Action map[string]any `toml:"action" json:"action,omitempty"`
}

// Answer is the final answer as an action.
type Answer struct {
	// Field is the field of the action, or the argument of the tool, that gets the answer's text.
	Field string `toml:"field" json:"field"`
	// Tool is the server's tool that is called with the answer; the agent does not get it. Empty: the answer is an action.
	Tool string `toml:"tool" json:"tool,omitempty"`
	// Action has the action's other fields, or the tool's other arguments.
	Action map[string]any `toml:"action" json:"action,omitempty"`
}

// Check says which field is wrong, as environment.toml calls it below the table openenv, and why; why is empty if none is.
func (s *Spec) Check() (field, why string) {
	switch {
	case strings.TrimSpace(s.Server) == "":
		return "server", "must say what has to run, such as the address of its source: owners of nodes start it themselves"
	case len(s.Server) > wire.MaxDescriptionBytes:
		return "server", fmt.Sprintf("has %d bytes; at most %d are allowed", len(s.Server), wire.MaxDescriptionBytes)
	case s.Reset["seed"] != nil:
		return "reset", "must not have seed, which is another for each task; tasks with seeds of their own are in a file"
	case s.Reward != RewardSum && s.Reward != RewardLast:
		return "reward", fmt.Sprintf("is %q; it must be %q or %q", s.Reward, RewardSum, RewardLast)
	case !s.ServerTools && len(s.Tools) == 0 && s.Answer == nil:
		return "", "needs answer, tool or server_tools: without any of them an agent can do nothing"
	case len(s.Tools) > maxTools:
		return "tool", fmt.Sprintf("is there %d times; at most %d are allowed", len(s.Tools), maxTools)
	case len(s.Components) > wire.MaxComponents:
		return "components", fmt.Sprintf("has %d names; at most %d are allowed", len(s.Components), wire.MaxComponents)
	}
	for field, paths := range map[string][]string{"observe": s.Observe, "components": s.Components} {
		if why := checkPaths(paths); why != "" {
			return field, why
		}
	}
	// Otherwise an observation could become as many times its size as there are paths.
	for _, path := range s.Observe {
		if i := slices.IndexFunc(s.Observe, func(outer string) bool { return strings.HasPrefix(path, outer+".") }); i >= 0 {
			return "observe", fmt.Sprintf("has %q, which %q has in it already", path, s.Observe[i])
		}
	}
	for _, path := range s.Components {
		if len(path) > wire.MaxComponentName {
			return "components", fmt.Sprintf("has %q; a name has at most %d bytes", path, wire.MaxComponentName)
		}
	}
	seen := map[string]bool{}
	for i := range s.Tools {
		t := &s.Tools[i]
		if field, why := t.check(); why != "" {
			return fmt.Sprintf("tool[%d].%s", i, field), why
		}
		if seen[t.Name] {
			return fmt.Sprintf("tool[%d].name", i), "must differ from the other tools'"
		}
		seen[t.Name] = true
	}
	if a := s.Answer; a != nil {
		switch _, twice := a.Action[a.Field]; {
		case a.Field == "" || len(a.Field) > maxPath:
			return "answer.field", `must name the field of the action that gets the answer, such as "answer"`
		case twice:
			return "answer.action", fmt.Sprintf("must not have %q, which gets the answer", a.Field)
		case len(a.Tool) > wire.MaxNameBytes:
			return "answer.tool", fmt.Sprintf("has %d bytes; at most %d are allowed", len(a.Tool), wire.MaxNameBytes)
		}
	}
	if raw, err := json.Marshal(s); err != nil {
		return "", "has a number that JSON does not: " + err.Error()
	} else if len(raw) > MaxSpecBytes {
		return "", fmt.Sprintf("has %d bytes as JSON; at most %d are allowed", len(raw), MaxSpecBytes)
	}
	return "", ""
}

func checkPaths(paths []string) (why string) {
	if len(paths) > maxPaths {
		return fmt.Sprintf("has %d names; at most %d are allowed", len(paths), maxPaths)
	}
	for i, path := range paths {
		fields := strings.Split(path, ".")
		switch {
		case len(path) > maxPath || len(fields) > maxDepth || slices.Contains(fields, ""):
			return fmt.Sprintf(`has %q; a name is a field, or up to %d fields within one another with dots between them, such as "metadata.status"`, path, maxDepth)
		case slices.Contains(paths[:i], path):
			return fmt.Sprintf("has %q twice", path)
		}
	}
	return ""
}

func (t *Tool) check() (field, why string) {
	if !chat.ValidToolName(t.Name) {
		return "name", fmt.Sprintf("is %q: use letters, digits, _ and -", t.Name)
	}
	if len(t.Parameters) == 0 {
		return "", ""
	}
	schema, err := json.Marshal(t.Parameters)
	switch {
	case err != nil:
		return "parameters", "must be what JSON can hold: " + err.Error()
	case len(schema) > chat.MaxParameters:
		return "parameters", fmt.Sprintf("have %d bytes as JSON; at most %d are allowed", len(schema), chat.MaxParameters)
	case t.Parameters["type"] != "object":
		return "parameters", `must have type = "object"`
	}
	f, err := t.form()
	if err != nil {
		return "parameters", "cannot be understood: " + err.Error()
	}
	for name := range t.Action {
		if f.takes(name) {
			return "action", fmt.Sprintf("must not have %q, which is a parameter", name)
		}
	}
	return "", ""
}

// schema is the parameters as the agent gets them.
func (t *Tool) schema() (string, error) {
	if len(t.Parameters) == 0 {
		return `{"type":"object","properties":{}}`, nil
	}
	return marshal(t.Parameters)
}

// Encode is the content of SpecFile.
func (s *Spec) Encode() ([]byte, error) {
	if field, why := s.Check(); why != "" {
		return nil, errors.New(strings.TrimPrefix(field+" "+why, " "))
	}
	text, err := marshal(s)
	return []byte(text), err
}

// DecodeSpec reads SpecFile and checks it.
func DecodeSpec(raw []byte) (*Spec, error) {
	if len(raw) > MaxSpecBytes {
		return nil, fmt.Errorf("it has %d bytes; at most %d are allowed", len(raw), MaxSpecBytes)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	d.UseNumber()
	s := &Spec{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("it is not what this program knows; upgrade lightswarm if the environment is newer: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind its end")
	}
	if field, why := s.Check(); why != "" {
		return nil, errors.New(strings.TrimPrefix(field+" "+why, " "))
	}
	return s, nil
}

// marshal is JSON in which nothing is escaped for HTML.
func marshal(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
