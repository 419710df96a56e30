package row

import (
	"slices"
)

// Place is where a prompt lies in rows.
type Place struct {
	// Row is the index of a row, Position that of one of its Positions.
	Row, Position int
}

// Prompts lays out prompts, none of them empty, as few sequences, so that a trainer runs what they share once: equal prompts
// are one, and one that begins another lies in its row. A row's Positions are where tokens behind its prompts are, and its last
// token is arbitrary. The rows have neither log-probs nor advantages. They do not depend on the order of the prompts.
func Prompts(prompts [][]int32) (rows []Row, places []Place) {
	order := make([]int, len(prompts))
	for i := range order {
		order[i] = i
	}
	// A prompt that begins others comes right before them.
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(prompts[a], prompts[b]) })
	places = make([]Place, len(prompts))
	for _, i := range order {
		prompt := prompts[i]
		last := len(rows) - 1
		if last < 0 || !begins(rows[last].Tokens, prompt) {
			rows = append(rows, Row{})
			last++
		}
		r := &rows[last]
		r.Tokens = prompt
		if n := len(r.Positions); n == 0 || int(r.Positions[n-1]) < len(prompt) {
			r.Positions = append(r.Positions, int32(len(prompt)))
		}
		places[i] = Place{last, len(r.Positions) - 1}
	}
	for i := range rows {
		rows[i].Tokens = append(slices.Clone(rows[i].Tokens), rows[i].Tokens[0])
	}
	return rows, places
}

// begins says whether a sequence begins with another.
func begins(start, whole []int32) bool {
	return len(start) <= len(whole) && slices.Equal(start, whole[:len(start)])
}
