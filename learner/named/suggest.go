package named

import "slices"

// Suggest returns "; did you mean …?" for the candidate nearest to name, by Levenshtein distance in bytes, or nothing if
// none is near.
func Suggest(name string, candidates []string) string {
	best, bestDistance := "", len(name)/2+1
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		if d := distance(name, candidate); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the Levenshtein distance between a and b in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
