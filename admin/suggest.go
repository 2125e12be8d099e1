package admin

// nearest returns the candidate that is spelled most like name, or "" if none
// is near: at most a third of the name's characters may differ, but always one.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := editDistance(name, c, bestDistance); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance returns the number of bytes to insert, delete or replace to turn
// a into b, or limit if it is at least that. Names longer than 64 bytes are
// "far": misspelling is for names that people type.
func editDistance(a, b string, limit int) int {
	const nameMax = 64
	if len(a) > nameMax || len(b) > nameMax || max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	var row [nameMax + 1]int
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
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
