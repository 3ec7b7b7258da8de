package optdb

import (
	"slices"
	"strings"
)

// didYouMean returns ", did you mean ...?" with the word of the list that is most
// like what was written, or "" if none is similar.
func didYouMean(written string, words []string) string {
	best, least := "", max(2, len(written)/3)+1
	for _, w := range slices.Sorted(slices.Values(words)) {
		if w == written {
			continue
		}
		d := distance(written, w)
		if strings.EqualFold(written, w) {
			d = 0
		}
		if d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// distance returns how many bytes must be inserted, deleted, replaced or swapped
// with their neighbor to turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
