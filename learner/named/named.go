// Package named lets settings, experiments and the command line choose the parts of an algorithm by name.
//
// A Table lists the kinds of one part, such as its losses, with the parameters of each. A specification names a kind and
// gives some of its parameters, the others keep their defaults:
//
//	ppo high=0.3
//
// Everything here is pure.
package named

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table lists the kinds of a part.
type Table[T any] struct {
	// Part is what is chosen, for messages: "loss".
	Part string
	// Kinds are in the order in which they are shown; their names differ.
	Kinds []Kind[T]
}

// Kind is one of the things that a part can be.
type Kind[T any] struct {
	// Name is lower-case letters, digits and hyphens.
	Name string
	// About says in one line what it is.
	About string
	// Parameters are in the order in which they are shown; their names differ.
	Parameters []Parameter
	// Make makes it. value returns a parameter's value, which is in range, and panics for a name that is not in
	// Parameters.
	Make func(value func(parameter string) float64) T
}

// Parameter is a number that a kind takes.
type Parameter struct {
	// Name is lower-case letters, digits and hyphens.
	Name string
	// Default is its value unless one is given.
	Default float64
	// Min and Max are the least and the largest value allowed; Whole allows only integers.
	Min, Max float64
	Whole    bool
	// About says in one line what it does.
	About string
}

// Choice is a kind with values for its parameters.
type Choice[T any] struct {
	// Part is what was made of it.
	Part T
	// Spec is its canonical specification: the name and all parameters in order. Choices of one table with equal ones
	// are the same.
	Spec string
}

// Names returns the names of the kinds, in order.
func (t Table[T]) Names() []string {
	names := make([]string, len(t.Kinds))
	for i, k := range t.Kinds {
		names[i] = k.Name
	}
	return names
}

// New chooses a kind, with values for some of its parameters. Its error says what is wrong, suggests the nearest name for
// an unknown one, and names those there are.
func (t Table[T]) New(name string, values map[string]float64) (Choice[T], error) {
	k, err := t.kind(name)
	if err != nil {
		return Choice[T]{}, err
	}
	c, err := k.New(values)
	if err != nil {
		return Choice[T]{}, fmt.Errorf("%s %w", t.Part, err)
	}
	return c, nil
}

// kind finds a kind by its name.
func (t Table[T]) kind(name string) (Kind[T], error) {
	for _, k := range t.Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind[T]{}, fmt.Errorf("unknown %s %q%s; use %s", t.Part, name, hint(name, t.Names()), list(t.Names(), "or"))
}

// New makes the kind with values for some of its parameters; its error starts with the kind's name.
func (k Kind[T]) New(values map[string]float64) (Choice[T], error) {
	known := make([]string, len(k.Parameters))
	all := make(map[string]float64, len(k.Parameters))
	spec := k.Name
	for i, p := range k.Parameters {
		v, given := values[p.Name]
		if !given {
			v = p.Default
		}
		if !p.allows(v) {
			return Choice[T]{}, fmt.Errorf("%s: %s = %s: use %s", k.Name, p.Name, number(v), p.Range())
		}
		known[i], all[p.Name] = p.Name, v
		spec += " " + p.Name + "=" + number(v)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := all[name]; ok {
			continue
		}
		if len(known) == 0 {
			return Choice[T]{}, fmt.Errorf("%s: there is no parameter %q; it has none", k.Name, name)
		}
		return Choice[T]{}, fmt.Errorf("%s: there is no parameter %q%s; it has %s", k.Name, name, hint(name, known), list(known, "and"))
	}
	return Choice[T]{k.Make(func(parameter string) float64 {
		v, ok := all[parameter]
		if !ok {
			panic(fmt.Sprintf("named: %s has no parameter %q", k.Name, parameter))
		}
		return v
	}), spec}, nil
}

// allows says whether v is in range.
func (p Parameter) allows(v float64) bool {
	return v >= p.Min && v <= p.Max && (!p.Whole || v == math.Trunc(v))
}

// Range says in words which values are allowed.
func (p Parameter) Range() string {
	words := number(p.Min) + " to " + number(p.Max)
	if p.Whole {
		words = "a whole number, " + words
	}
	return words
}

// number writes v so that it reads back as it, with an exponent only if it is very small or large.
func number(v float64) string {
	if a := math.Abs(v); a >= 1e-5 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// hint is Suggest's, in the middle of a message.
func hint(name string, candidates []string) string {
	return strings.TrimSuffix(Suggest(name, candidates), "?")
}

// list joins names, the last one after a word.
func list(names []string, word string) string {
	last := len(names) - 1
	if last <= 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
