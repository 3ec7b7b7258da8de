// Package spell suggests what a misspelt name means.
package spell

// Nearest returns the candidate that name probably misspells: the one with the fewest letters
// inserted, omitted, replaced or swapped with a neighbour, if they are at most a third of the name.
// Case does not count. Of several it takes the first of those that begin most like the name, rather
// in the same case. It returns "" if there is none. If names are long and many it stops before the
// last candidate.
func Nearest(name string, candidates []string) string {
	best, most := "", (len(name)+2)/3
	room := 1 << 24 // for comparisons of letters
	for _, c := range candidates {
		if len(c)-len(name) > most || len(name)-len(c) > most {
			continue
		}
		if room -= len(name) * len(c); room < 0 {
			break
		}
		d := distance(name, c, most+1)
		if d < most || d == most && (best == "" || alike(name, c) > alike(name, best)) {
			best, most = c, d
		}
	}
	return best
}

// alike is larger for names that begin with more of the same letters, and with as many if their case
// is the same, too.
func alike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && lower(a[n]) == lower(b[n]) {
		n++
	}
	if a[:n] == b[:n] {
		return 2*n + 1
	}
	return 2 * n
}

// Hint returns "; did you mean …?" with the nearest candidate, or "" if there is none.
func Hint(name string, candidates []string) string {
	near := Nearest(name, candidates)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// distance returns the number of edits between a and b, ignoring case, or any number from most on.
func distance(a, b string, most int) int {
	older := make([]int, len(b)+1)
	old := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		low := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			d := min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, older[j-2]+1)
			}
			row[j] = d
			low = min(low, d)
		}
		if low >= most {
			return most
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
