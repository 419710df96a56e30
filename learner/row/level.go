package row

import (
	"fmt"
	"slices"
	"strings"
)

// Level says what a row holds.
type Level int

// The levels. A rollout's trained tokens, their contexts and advantages are the same at the first two, so that only the
// cost differs, unless a loss looks at whole rows or a weight counts them.
const (
	// Trajectory merges calls whose prompts continue earlier ones to the token: see Merge.
	Trajectory Level = iota
	// Transition gives each call a row of its own, as the paper does (Luo et al. 2025, arXiv 2508.03680, section 3.3).
	Transition
	// Concatenated makes a rollout one row, in which everything but the trained completions is masked. It is what the paper
	// argues against (the same section), to compare with: where an agent rewrites its history or has several roles, tokens
	// are trained in contexts that the policy never sees when it is used.
	Concatenated
)

var levels = []string{"trajectory", "transition", "concatenated"}

// ParseLevel reads what String writes; its error says what there is.
func ParseLevel(name string) (Level, error) {
	if i := slices.Index(levels, name); i >= 0 {
		return Level(i), nil
	}
	last := len(levels) - 1
	return 0, fmt.Errorf("unknown level %q; use %s or %s", name, strings.Join(levels[:last], ", "), levels[last])
}

// String is the level's name in settings.
func (l Level) String() string { return levels[l] }

// Rows lays out the calls of one rollout, in the order in which they were made. Each trained token is in exactly one
// row; a row without trained tokens is left out. No row has more than limit tokens, if no call has: of a rollout that would,
// level Concatenated leaves out the last calls.
func (l Level) Rows(calls []Call, limit int) []Row {
	switch l {
	case Trajectory:
		return Merge(calls)
	case Concatenated:
		return concatenate(calls, limit)
	}
	var rows []Row
	for _, c := range calls {
		rows = append(rows, Merge([]Call{c})...)
	}
	return rows
}
