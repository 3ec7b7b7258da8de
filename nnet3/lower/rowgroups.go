package lower

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// rowGroup is the rows of a multi-row command that concern one sub-matrix: Dst is a row of the
// command's own view, Src a row of the sub-matrix.
type rowGroup struct {
	sub  int32
	size int
	rows []RowPair
}

// groupPairs returns the groups in the order of their first rows.
func (l *lowering) groupPairs(pairs []computation.Pair) []rowGroup {
	l.groups = l.groups[:0]
	l.eachGroup(pairs, func(g int, _ RowPair) { l.groups[g].size++ })
	for g := range l.groups {
		l.groups[g].rows = l.room(l.groups[g].size)
	}
	l.eachGroup(pairs, func(g int, p RowPair) { l.groups[g].rows = append(l.groups[g].rows, p) })
	return l.groups
}

// eachGroup calls f for every row with its group, which it makes if there is none.
func (l *lowering) eachGroup(pairs []computation.Pair, f func(group int, p RowPair)) {
	last := 0
	for i, p := range pairs {
		if p[0] < 0 {
			continue
		}
		if last >= len(l.groups) || l.groups[last].sub != p[0] {
			last = slices.IndexFunc(l.groups, func(g rowGroup) bool { return g.sub == p[0] })
			if last < 0 {
				last = len(l.groups)
				l.groups = append(l.groups, rowGroup{sub: p[0]})
			}
		}
		f(last, RowPair{int32(i), p[1]})
	}
}

// room returns memory for n pairs of rows, which becomes part of the graph.
func (l *lowering) room(n int) []RowPair {
	if cap(l.pairs)-len(l.pairs) < n {
		l.pairs = make([]RowPair, 0, max(n, 1<<10))
	}
	end := len(l.pairs) + n
	rows := l.pairs[len(l.pairs):len(l.pairs):end]
	l.pairs = l.pairs[:end]
	return rows
}
