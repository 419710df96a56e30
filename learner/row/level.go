package row

import (
	"fmt"
	"slices"
	"strings"
)

// Level says what a row holds.
type Level int

// The levels. A rollout's trained tokens, their contexts and advantages are the same at each, so that only the cost
// differs, unless a loss looks at whole rows or a weight counts them.
const (
	// Trajectory merges calls whose prompts continue earlier ones to the token: see Merge.
	Trajectory Level = iota
	// Transition gives each call a row of its own, as the paper does (Luo et al. 2025, arXiv 2508.03680, section 3.3).
	Transition
)

var levels = []string{"trajectory", "transition"}

// ParseLevel reads what String writes; its error says what there is.
func ParseLevel(name string) (Level, error) {
	if i := slices.Index(levels, name); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("unknown level %q; use %s", name, strings.Join(levels, " or "))
}

// String is the level's name in settings.
func (l Level) String() string { return levels[l] }

// Rows lays out the calls of one rollout, in the order in which they were made. Each trained token is in exactly one
// row; a row without trained tokens is left out.
func (l Level) Rows(calls []Call) []Row {
	if l == Trajectory {
		return Merge(calls)
	}
	var rows []Row
	for _, c := range calls {
		rows = append(rows, Merge([]Call{c})...)
	}
	return rows
}
