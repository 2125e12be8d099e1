// Package suggest finds the name that was probably meant by one that does not
// exist. It knows nothing of what the names stand for.
package suggest

import "strings"

// Nearest returns the candidate that name is probably a misspelling of, "" if
// none is near. Of two equally near it returns the first. A name of one letter
// is near to itself in the other case only.
func Nearest(name string, candidates []string) string {
	best, found := min(len(name), max(1, len(name)/3)+1), ""
	for _, c := range candidates {
		if d := distance(name, c, best); d < best {
			best, found = d, c
		}
	}
	return found
}

// distance returns how many insertions, deletions, replacements and swaps of
// neighbours turn a into b, upper and lower case being alike; limit or more if
// there are at least limit of them.
func distance(a, b string, limit int) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
