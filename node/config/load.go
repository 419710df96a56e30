package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"github.com/lightswarm/lightswarm/learner/named"
)

// Sources are the places, apart from the defaults, that settings come from.
type Sources struct {
	// File is the TOML file's path. A file that does not exist sets nothing, unless FileRequired.
	File string
	// FileRequired makes a missing file an error: the user named it.
	FileRequired bool
	// Environ are variables as os.Environ returns them. Those that do not start with LIGHTSWARM_ are ignored.
	Environ []string
	// Flags is the parsed flag set that AddFlags filled; only flags that the user set count. It may be nil.
	Flags *pflag.FlagSet
}

// Loaded is a valid Config that knows where its values came from.
type Loaded struct {
	Config
	origins map[string]string
}

// Setting is one setting, for a listing.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Origin is "default", "file PATH", "environment NAME" or "flag --NAME".
	Origin string `json:"origin"`
	Usage  string `json:"usage"`
}

// otherVariables are LIGHTSWARM_ variables that other parts of the program read.
var otherVariables = []string{environmentPrefix + "DATA", environmentPrefix + "KERNEL"}

// Load merges the sources over the defaults and validates the result.
func Load(s Sources) (*Loaded, error) {
	l, err := Merge(Default(), s)
	if err != nil {
		return nil, err
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l, nil
}

// Merge lays the sources over base without validating the result.
func Merge(base Config, s Sources) (*Loaded, error) {
	l := &Loaded{Config: base, origins: map[string]string{}}
	table := map[string]value{}
	for _, f := range l.fields() {
		table[f.key] = f.value
		l.origins[f.key] = "default"
	}
	set := func(key, text, origin string) error {
		if err := table[key].Set(text); err != nil {
			return fmt.Errorf("%s = %q (%s): %w", key, text, origin, err)
		}
		l.origins[key] = origin
		return nil
	}

	fromFile, err := readFile(s.File, s.FileRequired)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(fromFile)) {
		if table[key] == nil {
			return nil, fmt.Errorf("%s: unknown key %q%s", s.File, key, named.Suggest(key, slices.Collect(maps.Keys(table))))
		}
		text, err := fromFile[key].text(table[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.File, key, err)
		}
		if err := set(key, text, "file "+s.File); err != nil {
			return nil, err
		}
	}

	variables := map[string]string{}
	for key := range table {
		variables[environmentName(key)] = key
	}
	for _, variable := range s.Environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, environmentPrefix) || slices.Contains(otherVariables, name) {
			continue
		}
		key, ok := variables[name]
		if !ok {
			return nil, fmt.Errorf("unknown environment variable %q%s", name, named.Suggest(name, slices.Collect(maps.Keys(variables))))
		}
		if err := set(key, text, "environment "+name); err != nil {
			return nil, err
		}
	}

	if s.Flags != nil {
		for _, f := range l.fields() {
			flag := s.Flags.Lookup(flagName(f.key))
			if commandSets(f.key) || flag == nil || !flag.Changed {
				continue
			}
			if err := set(f.key, flag.Value.String(), "flag --"+flag.Name); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// AddFlags adds a flag to set for each key; with no keys, for every key that a flag can set. Load reads
// them back.
func AddFlags(set *pflag.FlagSet, keys ...string) {
	defaults := Default()
	for _, f := range defaults.fields() {
		if commandSets(f.key) || len(keys) > 0 && !slices.Contains(keys, f.key) {
			continue
		}
		v := f.value
		if v.Type() == "list" {
			v = &repeatable{value: v}
		}
		flag := set.VarPF(v, flagName(f.key), "", f.usage)
		if v.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// Settings lists every key with its value and origin, in the order of the table.
func (l *Loaded) Settings() []Setting {
	fields := l.fields()
	rows := make([]Setting, len(fields))
	for i, f := range fields {
		rows[i] = Setting{Key: f.key, Value: f.value.String(), Origin: l.origins[f.key], Usage: f.usage}
	}
	return rows
}

// entry is a file's value of one key.
type entry struct {
	scalar string
	// elements are those of an array, which is then not nil.
	elements []string
}

// text is the entry as a text that v can be set to.
func (e entry) text(v value) (string, error) {
	if e.elements == nil {
		return e.scalar, nil
	}
	j, ok := v.(interface {
		join(elements []string) (string, error)
	})
	if !ok {
		return "", errors.New("want one value, not an array")
	}
	return j.join(e.elements)
}

// readFile returns the file's keys, sections joined with dots.
func readFile(path string, required bool) (map[string]entry, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, column := syntax.Position()
			return nil, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	flat := map[string]entry{}
	if err := flatten(flat, "", tree); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return flat, nil
}

func flatten(flat map[string]entry, prefix string, tree map[string]any) error {
	for name, node := range tree {
		key := prefix + name
		switch node := node.(type) {
		case map[string]any:
			if err := flatten(flat, key+".", node); err != nil {
				return err
			}
		case []any:
			texts := make([]string, len(node))
			for i, element := range node {
				text, ok := element.(string)
				if !ok {
					return fmt.Errorf("%s: element %d is not a string", key, i)
				}
				texts[i] = text
			}
			flat[key] = entry{elements: texts}
		default:
			flat[key] = entry{scalar: fmt.Sprint(node)}
		}
	}
	return nil
}
