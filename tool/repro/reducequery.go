package repro

import (
	"slices"

	"github.com/nnopt/nnopt/optdb"
)

// query leaves out entries of the query that the failure does not need. The new query names what is
// left.
func (r *reducer) query() {
	opt, err := r.best.Build(r.best.Query)
	if err != nil {
		return
	}
	checked := r.best.Checked || opt.Debugging()
	with := func(names []string) bool {
		c := r.best
		c.Query, c.Checked = optdb.Include(names...), checked
		return r.fails(c)
	}
	f := r.best.Failure
	// Often the rule that fails needs no other. One guess that holds saves the search by halves
	// among hundreds of entries. A query with debug also checks the graph after every pass; what
	// was found by that has to be checked under the shorter query as well.
	for _, guess := range [][]string{{f.Rule}, {f.Pass}, {f.Pass, f.Rule}} {
		if !slices.Contains(guess, "") && with(guess) {
			break
		}
	}
	if opt, err = r.best.Build(r.best.Query); err != nil {
		return
	}
	var names []string
	for _, e := range opt.Entries() {
		if !e.Database && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	r.names(names, checked)
}

// names tries the query that lists entries by name, and leaves out as many as it can.
func (r *reducer) names(names []string, checked bool) {
	c := r.best
	c.Query, c.Checked = optdb.Include(names...), checked
	if c.Query.Equal(r.best.Query) || !r.fails(c) {
		return
	}
	minimize(len(names), func(drop []int) bool {
		c := r.best
		fewer := slices.Delete(slices.Clone(names), drop[0], drop[len(drop)-1]+1)
		c.Query = optdb.Include(fewer...)
		if !r.fails(c) {
			return false
		}
		names = fewer
		return true
	})
}
