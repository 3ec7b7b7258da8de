package optdb

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/fileio"
)

// idleSettings returns an error for each settings of a query that change nothing, because the entry
// that they name is left out. The query decided the choices; known has all names and tags. It recurses as
// deep as databases are nested.
func (q Query) idleSettings(choices []*choice, known map[string]bool) []error {
	if q.lenient {
		return nil
	}
	var faults []error
	mine, nested := decidedBy(choices)
	for _, s := range q.settings {
		if why := whyIdle(s.entry, mine); why != "" && known[s.entry] {
			faults = append(faults, fmt.Errorf("optdb: query %s: %w: settings of %s change nothing: %s", q.excerpt(), ErrSetting, fileio.Excerpt(s.entry, 0), why))
		}
	}
	for _, c := range nested {
		faults = append(faults, c.sub.idleSettings(c.nested, known)...)
	}
	return faults
}

// decidedBy returns the choices that the query for the outermost ones decided, and those of them
// whose databases have subqueries.
func decidedBy(choices []*choice) (mine, nested []*choice) {
	for _, c := range choices {
		mine = append(mine, c)
		// A subquery decides about all that is in its database, so the settings of this query end here.
		if c.sub != nil {
			nested = append(nested, c)
			continue
		}
		in, under := decidedBy(c.nested)
		mine, nested = append(mine, in...), append(nested, under...)
	}
	return mine, nested
}

// whyIdle says why settings of an entry change none of the choices. It returns "" if they change one.
func whyIdle(entry string, choices []*choice) string {
	why := "no entry has that name here"
	for _, c := range choices {
		switch {
		case c.entry.Name != entry:
		case !c.taken:
			why = c.path + " is not selected: " + c.why
		case c.listed:
			why = "the pipeline gives " + c.path + " settings of its own"
		default:
			return ""
		}
	}
	return why
}
