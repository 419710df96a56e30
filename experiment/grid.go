package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Cell is one run of the grid.
type Cell struct {
	// Varied are the values of the axes, in their order. Cells that differ in the seed alone have the same.
	Varied []Setting
	// Seed is that of the run.
	Seed uint64
	// Settings are all flags of the run, by name, the seed's included.
	Settings []Setting
	// ID follows from Settings: 12 hexadecimal digits.
	ID string
}

// Cells returns the grid: the combinations with the first seed, then those with the next, so that an experiment that is cut
// short has compared all of them. The last axis varies fastest.
func (d *Declaration) Cells() []Cell {
	combinations := d.combinations()
	cells := make([]Cell, 0, len(d.Seeds)*len(combinations))
	for _, seed := range d.Seeds {
		for _, varied := range combinations {
			cells = append(cells, newCell(d.Shared, varied, seed))
		}
	}
	return cells
}

// combinations are those of the axes' values: a single one of none if nothing varies.
func (d *Declaration) combinations() [][]Setting {
	all := [][]Setting{nil}
	for _, axis := range d.Axes {
		var next [][]Setting
		for _, head := range all {
			for _, value := range axis.Values {
				next = append(next, append(slices.Clip(head), Setting{axis.Flag, value}))
			}
		}
		all = next
	}
	return all
}

func newCell(shared, varied []Setting, seed uint64) Cell {
	settings := slices.Concat(shared, varied, []Setting{{seedFlag, strconv.FormatUint(seed, 10)}})
	slices.SortFunc(settings, func(a, b Setting) int { return cmp.Compare(a.Flag, b.Flag) })
	canonical, err := json.Marshal(settings)
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	sum := sha256.Sum256(canonical)
	return Cell{Varied: varied, Seed: seed, Settings: settings, ID: hex.EncodeToString(sum[:6])}
}

// Label names what distinguishes the runs of a combination, for people.
func (c *Cell) Label() string { return label(c.Varied) }

func label(varied []Setting) string {
	if len(varied) == 0 {
		return "all runs"
	}
	values := make([]string, len(varied))
	for i, s := range varied {
		values[i] = cmp.Or(s.Value, "none")
	}
	return strings.Join(values, ", ")
}

// maxSlug bounds the part of a folder's name that is for people.
const maxSlug = 40

// FolderName is the name of the run's folder: what people look for, and the id, which makes it the run's own.
func (c *Cell) FolderName() string {
	var slug []byte
	for _, s := range c.Varied {
		for _, b := range []byte(s.Value + "-") {
			switch {
			case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '.' && len(slug) > 0:
				slug = append(slug, b)
			case len(slug) > 0 && slug[len(slug)-1] != '-':
				slug = append(slug, '-')
			}
		}
	}
	name := strings.Trim(string(slug[:min(len(slug), maxSlug)]), "-.")
	if name != "" {
		name += "-"
	}
	return name + "seed" + strconv.FormatUint(c.Seed, 10) + "-" + c.ID
}

// Flags are the run's as arguments of a command.
func (c *Cell) Flags() []string {
	flags := make([]string, len(c.Settings))
	for i, s := range c.Settings {
		flags[i] = "--" + s.Flag + "=" + s.Value
	}
	return flags
}

// Command is the command line of the run, without its folder, as it is typed in a shell.
func (c *Cell) Command() string {
	return CommandLine(append([]string{"lightswarm", "testnet"}, c.Flags()...))
}

// CommandLine writes arguments as they are typed in a POSIX shell.
func CommandLine(arguments []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%"
	words := make([]string, len(arguments))
	for i, a := range arguments {
		if words[i] = a; a == "" || strings.Trim(a, plain) != "" {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
