package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lightswarm/lightswarm/learner/named"
	"github.com/lightswarm/lightswarm/strictoml"
)

// Bounds of what a declaration may ask for.
const (
	// MaxFileBytes bounds a declaration's text.
	MaxFileBytes = 1 << 20
	maxSeeds     = 1000
	maxCells     = 10_000
)

// Declaration is an experiment as its user wrote it. Parse makes one.
type Declaration struct {
	// Name names the experiment and its folder: letters, digits, dots, hyphens and underscores.
	Name string
	// About says for people what is asked; it may be empty.
	About string
	// Seeds are those of the runs of each combination; they differ.
	Seeds []uint64
	// Threshold is the held-out success, up to 1, whose reaching is timed; 0 for none.
	Threshold float64
	// Shared are the flags that all runs have, by name.
	Shared []Setting
	// Axes vary. The grid has every combination of their values.
	Axes []Axis
}

// Setting is a flag of a run, without hyphens in front, and its value.
type Setting struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
}

// Axis is a flag that varies, and the values that it takes; they differ.
type Axis struct {
	Flag   string   `json:"flag"`
	Values []string `json:"values"`
}

// DeclarationError says what is wrong with a declaration.
type DeclarationError struct {
	// File is its path, Line the line concerned, 0 if it is what is missing.
	File string
	Line int
	Why  string
}

func (e *DeclarationError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Why
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why)
}

// document is the TOML of a declaration.
type document struct {
	Name      string         `toml:"name"`
	About     string         `toml:"about"`
	Seeds     []uint64       `toml:"seeds"`
	Threshold float64        `toml:"threshold"`
	Shared    map[string]any `toml:"testnet"`
	Vary      []struct {
		Flag   string `toml:"flag"`
		Values []any  `toml:"values"`
	} `toml:"vary"`
}

// seedFlag is the flag that the grid sets itself.
const seedFlag = "seed"

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Parse reads the declaration in text, which is the content of file. flags are the names that runs know, without the
// seed's. What values mean is checked by whoever runs them. Its error is a *DeclarationError.
func Parse(file string, text []byte, flags []string) (*Declaration, error) {
	var doc document
	lines, err := strictoml.Decode(text, &doc)
	var wrong *strictoml.Error
	if errors.As(err, &wrong) {
		return nil, &DeclarationError{file, wrong.Line, wrong.Why}
	}
	p := parser{file, lines, flags, map[string]int{}}
	d := &Declaration{Name: doc.Name, About: strings.TrimSpace(doc.About), Seeds: doc.Seeds, Threshold: doc.Threshold}
	switch {
	case !validName.MatchString(d.Name):
		return nil, p.wrong("name", "%q: use 1 to 64 letters, digits, dots, hyphens or underscores", d.Name)
	case len(d.Seeds) == 0 || len(d.Seeds) > maxSeeds:
		return nil, p.wrong("seeds", "there are %d: give 1 to %d, such as [1, 2, 3]", len(d.Seeds), maxSeeds)
	case d.Threshold < 0 || d.Threshold > 1 || math.IsNaN(d.Threshold):
		return nil, p.wrong("threshold", "%g: use a share of held-out tasks up to 1, or 0 for none", d.Threshold)
	}
	for i, seed := range d.Seeds {
		if slices.Contains(d.Seeds[:i], seed) {
			return nil, p.wrong("seeds", "%d is there twice; a seed gives one run", seed)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(doc.Shared)) {
		value, err := p.setting("testnet."+flag, flag, doc.Shared[flag])
		if err != nil {
			return nil, err
		}
		d.Shared = append(d.Shared, Setting{flag, value})
	}
	for i, v := range doc.Vary {
		axis, err := p.axis(fmt.Sprintf("vary[%d]", i), v.Flag, v.Values)
		if err != nil {
			return nil, err
		}
		d.Axes = append(d.Axes, axis)
	}
	runs := len(d.Seeds)
	for _, a := range d.Axes {
		if runs *= len(a.Values); runs > maxCells {
			return nil, p.wrong("seeds", "the grid has more than %d runs", maxCells)
		}
	}
	return d, nil
}

// parser checks parts of one declaration.
type parser struct {
	file  string
	lines map[string]int
	flags []string
	// seen are the lines of the flags so far.
	seen map[string]int
}

// wrong is an error about a field.
func (p *parser) wrong(field, format string, arguments ...any) error {
	return &DeclarationError{p.file, p.lines[field], field + ": " + fmt.Sprintf(format, arguments...)}
}

// setting checks a flag that a field gives, and returns the value's text.
func (p *parser) setting(field, flag string, value any) (string, error) {
	if err := p.flag(field, flag); err != nil {
		return "", err
	}
	text, ok := text(value)
	if !ok {
		return "", p.wrong(field, "want a string, a number, true or false; a list is one string with commas")
	}
	return text, nil
}

// flag checks the name of a flag and that nothing else gives it.
func (p *parser) flag(field, flag string) error {
	line, twice := p.seen[flag]
	switch {
	case flag == seedFlag:
		return p.wrong(field, "the seeds of all runs are listed in seeds")
	case !slices.Contains(p.flags, flag):
		return p.wrong(field, "runs have no flag %q%s", flag, cmp.Or(named.Suggest(flag, p.flags), "; lightswarm testnet --help lists them"))
	case twice:
		return p.wrong(field, "%s is in line %d already; a flag is either shared by all runs or varies, once", flag, line)
	}
	p.seen[flag] = p.lines[field]
	return nil
}

// axis checks a table of vary.
func (p *parser) axis(field, flag string, values []any) (Axis, error) {
	a := Axis{Flag: flag}
	at := field
	if p.lines[field+".flag"] > 0 {
		at = field + ".flag"
	}
	if err := p.flag(at, flag); err != nil {
		return a, err
	}
	if len(values) == 0 {
		return a, p.wrong(field, "%s has no values", flag)
	}
	for _, v := range values {
		value, ok := text(v)
		switch {
		case !ok:
			return a, p.wrong(field+".values", "want strings, numbers, true or false; a list is one string with commas")
		case slices.Contains(a.Values, value):
			return a, p.wrong(field+".values", "%q is there twice", value)
		}
		a.Values = append(a.Values, value)
	}
	return a, nil
}

// text is a TOML value as the text of a flag's value.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
