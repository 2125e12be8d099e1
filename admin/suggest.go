package admin

// nearest returns the candidate that is spelled most like name, or "" if none
// is near: a third of the name's characters may differ, and one of a short name.
func nearest(name string, candidates []string) string {
	if len(name) < 2 {
		return "" // anything is one letter away
	}
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := editDistance(name, c, bestDistance); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance returns the number of bytes to insert, delete, replace or swap
// with their neighbour to turn a into b, or limit if it is at least that. Names
// longer than 64 bytes are "far": misspelling is for names that people type.
func editDistance(a, b string, limit int) int {
	const nameMax = 64
	if len(a) > nameMax || len(b) > nameMax || max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	var rows [3][nameMax + 1]int // of prefixes of a: two back, one back, the present one
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d = 1 + min(last[j], last[j+1], row[j])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
	}
	return min(row[len(b)], limit)
}

// didYouMean returns `did you mean "x"?`, or fallback if no candidate is near.
func didYouMean(name string, candidates []string, fallback string) string {
	if n := nearest(name, candidates); n != "" {
		return `did you mean "` + n + `"?`
	}
	return fallback
}
