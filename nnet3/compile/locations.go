package compile

import (
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// several is the number of more than one step.
const several = -2

// sourceRows says where a leaf takes the rows of a step from.
type sourceRows struct {
	step    int32   // the step that all rows come from; none or several
	rows    []int32 // for each row of the step, the row there; none if the leaf is not used
	steps   []int32 // for each row of the step, the step it comes from; only if there are several
	present int     // the number of rows that are not none
}

// gather finds where a leaf takes the rows of a step from. With deriv it ignores sources without a
// derivative.
func (e *emitter) gather(st *step, leaf int32, deriv bool, dst *sourceRows) {
	g, lanes := e.graph, len(e.lanes)
	dst.step, dst.present = none, 0
	dst.rows = slices.Grow(dst.rows[:0], st.rows.count)[:st.rows.count]
	plain := st.rows.order == nil
	if !plain {
		fill(dst.rows, none)
	}
	for i, v := range st.rows.vertices {
		d := g.deps[g.vertices[v].first+leaf]
		from := int32(none)
		if d >= 0 {
			from = e.stepOf[d]
			if deriv && e.steps[from].deriv == 0 {
				from = none
			}
		}
		if from < 0 {
			if plain {
				fill(dst.rows[i*lanes:(i+1)*lanes], none)
			}
			continue
		}
		if from != dst.step {
			dst.noteStep(from)
		}
		dst.present += lanes
		src, j := &e.steps[from].rows, int(e.rowOf[d])
		if plain && src.order == nil {
			row := int32(j * lanes)
			for l := i * lanes; l < (i+1)*lanes; l++ {
				dst.rows[l] = row
				row++
			}
			continue
		}
		for l := range lanes {
			dst.rows[st.rows.row(i, l, lanes)] = int32(src.row(j, l, lanes))
		}
	}
	if dst.step == several {
		e.gatherSteps(st, leaf, deriv, dst)
	}
}

// noteStep records that rows come from a step.
func (r *sourceRows) noteStep(from int32) {
	if r.step == none {
		r.step = from
	} else {
		r.step = several
	}
}

// gatherSteps finds the step of each row.
func (e *emitter) gatherSteps(st *step, leaf int32, deriv bool, dst *sourceRows) {
	g, lanes := e.graph, len(e.lanes)
	dst.steps = slices.Grow(dst.steps[:0], st.rows.count)[:st.rows.count]
	fill(dst.steps, none)
	for i, v := range st.rows.vertices {
		d := g.deps[g.vertices[v].first+leaf]
		if d < 0 || deriv && e.steps[e.stepOf[d]].deriv == 0 {
			continue
		}
		for l := range lanes {
			dst.steps[st.rows.row(i, l, lanes)] = e.stepOf[d]
		}
	}
}

func fill(s []int32, v int32) {
	for i := range s {
		s[i] = v
	}
}

// isIdentity reports whether rows are all n rows of the source in order.
func isIdentity(rows []int32, n int32) bool {
	if len(rows) != int(n) {
		return false
	}
	for i, r := range rows {
		if int(r) != i {
			return false
		}
	}
	return true
}

// location is a row of a sub-matrix, or (none, none).
type location = computation.Pair

var noLocation = location{none, none}

// splitLocations takes lists of locations to add up, one list for each row, and turns them into as
// few lists as possible of one location for each row. A sub-matrix that occurs in more than half of
// the rows gets its own list, because a command with one source is cheaper than one with several.
func splitLocations(lists [][]location) [][]location {
	longest := longestOf(lists)
	var split [][]location
	// Where a row has several locations, several commands are needed anyway. Then it pays to give a
	// sub-matrix that most rows use a command of its own.
	for longest > 1 {
		frequent := frequentSubmatrices(lists)
		if len(frequent) == 0 {
			break
		}
		for _, sub := range frequent {
			split = append(split, takeOut(lists, sub))
		}
		longest = longestOf(lists)
	}
	for _, l := range lists {
		// Sorted by sub-matrix, the k-th locations of neighboring rows tend to be in the same one,
		// so that lists turn out to have a single source.
		slices.SortStableFunc(l, func(a, b location) int { return int(a[0]) - int(b[0]) })
	}
	for k := range longest {
		list := make([]location, len(lists))
		for row, l := range lists {
			list[row] = noLocation
			if k < len(l) {
				list[row] = l[k]
			}
		}
		split = append(split, list)
	}
	return split
}

// longestOf returns the length of the longest list.
func longestOf(lists [][]location) int {
	longest := 0
	for _, l := range lists {
		longest = max(longest, len(l))
	}
	return longest
}

// frequentSubmatrices returns the sub-matrices in more than half of the lists, in ascending order.
func frequentSubmatrices(lists [][]location) []int32 {
	type tally struct{ count, last int }
	counts := make(map[int32]tally)
	var frequent []int32
	for row, l := range lists {
		for _, at := range l {
			t := counts[at[0]]
			// Rows count, and not occurrences: a list that is taken out has one location a row.
			if t.count > 0 && t.last == row {
				continue
			}
			t.count, t.last = t.count+1, row
			if 2*t.count > len(lists) && 2*(t.count-1) <= len(lists) {
				frequent = append(frequent, at[0])
			}
			counts[at[0]] = t
		}
	}
	slices.Sort(frequent)
	return frequent
}

// takeOut removes from each list the first location in a sub-matrix, and returns these locations.
func takeOut(lists [][]location, sub int32) []location {
	list := make([]location, len(lists))
	for row, l := range lists {
		list[row] = noLocation
		for i, at := range l {
			if at[0] == sub {
				list[row] = at
				lists[row] = slices.Delete(l, i, i+1)
				break
			}
		}
	}
	return list
}

// singleSource returns the only sub-matrix of the locations, and their rows in it. It fails if
// there is none or more than one.
func singleSource(list []location) (sub int32, rows []int32, ok bool) {
	sub = none
	for _, at := range list {
		if at[0] < 0 {
			continue
		}
		if sub >= 0 && sub != at[0] {
			return none, nil, false
		}
		sub = at[0]
	}
	if sub < 0 {
		return none, nil, false
	}
	rows = lists.Map(list, func(at location) int32 { return at[1] })
	return sub, rows, true
}
