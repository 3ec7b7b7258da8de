package compile

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// backward appends the commands of the backward pass: the derivatives of outputs, the steps in reverse, and a permanent
// no-op where derivatives with respect to inputs are complete.
func (e *emitter) backward() error {
	for i := range e.steps {
		if st := &e.steps[i]; st.kind == outputStep && st.deriv != 0 && st.spec.HasDeriv {
			e.accept(st.deriv, st.node)
		}
	}
	inputDerivs := false
	for i := len(e.steps) - 1; i >= 0; i-- {
		st := &e.steps[i]
		if !st.needDeriv {
			continue
		}
		if e.interrupt.came() {
			return e.interrupt.err
		}
		switch st.kind {
		case inputStep:
			inputDerivs = true
		case gatherStep, outputStep:
			e.backwardDescriptor(st)
		case componentStep:
			if err := e.backprop(i); err != nil {
				return err
			}
		}
	}
	if inputDerivs {
		e.command(computation.NoOperationPermanent)
	}
	e.comp.NeedModelDerivative = e.request().NeedModelDerivative
	return nil
}

func (e *emitter) backprop(i int) error {
	st := &e.steps[i]
	n := &e.net.nodes[st.node]
	if _, ok := e.net.nn.Components[n.component].(component.Backpropper); !ok {
		return fmt.Errorf("%w: node %q: component %s has no derivative", ErrNetwork, e.net.name(st.node), e.net.nn.Components[n.component].Type())
	}
	var inValue, outValue, inDeriv int32
	if st.input >= 0 {
		inDeriv = e.steps[st.input].deriv
		if n.properties.Has(component.BackpropNeedsInput) {
			inValue = e.steps[st.input].value
		}
	}
	if n.properties.Has(component.BackpropNeedsOutput) {
		outValue = st.value
	}
	e.command(computation.Backprop, n.component, st.precomputed, inValue, outValue, st.deriv, inDeriv, e.memo(i))
	return nil
}

// backwardDescriptor appends the commands that hand the derivative of a descriptor's value on to its sources, part by part.
func (e *emitter) backwardDescriptor(st *step) {
	t := e.net.nodes[st.node].terms
	for i := range t.parts {
		p := &t.parts[i]
		view := st.derivParts + int32(i)
		if p.first == p.last {
			continue
		}
		if e.gatherPart(st, t, p, true) {
			for k := range e.sources {
				e.returnSource(view, t.leaves[int(p.first)+k].scale, &e.sources[k])
			}
			continue
		}
		for _, group := range e.groupByScale(st, t, p, true) {
			for _, list := range splitLocations(group.lists) {
				e.returnList(view, group.scale, list)
			}
		}
	}
}

// returnSource appends the commands that add a view to the derivative of the rows that one leaf took.
func (e *emitter) returnSource(view int32, scale float32, src *sourceRows) {
	switch src.step {
	case none:
	case several:
		list := make([]location, len(src.rows))
		for row := range list {
			list[row] = noLocation
			if src.rows[row] >= 0 {
				list[row] = e.locate(src, row, true)
			}
		}
		e.returnList(view, scale, list)
	default:
		e.returnRows(view, scale, e.steps[src.step].deriv, src.rows)
	}
}

// returnList appends commands that add each row of a view to a location.
func (e *emitter) returnList(view int32, scale float32, list []location) {
	if sub, rows, ok := singleSource(list); ok {
		e.returnRows(view, scale, sub, rows)
		return
	}
	for _, l := range e.splitRepeated(list) {
		if sub, rows, ok := singleSource(l); ok {
			e.returnRows(view, scale, sub, rows)
			continue
		}
		e.comp.IndexesMulti = append(e.comp.IndexesMulti, l)
		e.scaled(computation.AddToRowsMulti, scale, view, int32(len(e.comp.IndexesMulti)-1))
	}
}

// returnRows appends commands that add row i of a view to row rows[i] of another. One command can add several rows to the
// same one only if they follow each other.
func (e *emitter) returnRows(view int32, scale float32, to int32, rows []int32) {
	n := e.comp.Submatrices[to].NumRows
	if isIdentity(rows, n) {
		e.scaled(computation.MatrixAdd, scale, to, view)
		return
	}
	for _, list := range splitRuns(rows, n) {
		if inverse, ok := invert(list, n); ok {
			e.comp.Indexes = append(e.comp.Indexes, e.keep(inverse))
			e.scaled(computation.AddRows, scale, to, view, int32(len(e.comp.Indexes)-1))
			continue
		}
		e.comp.IndexesRanges = append(e.comp.IndexesRanges, ranges(list, n))
		e.scaled(computation.AddRowRanges, scale, to, view, int32(len(e.comp.IndexesRanges)-1))
	}
}

// splitRepeated divides a list into lists in which no two locations share an element: the first occurrences, the second
// ones, …. Locations of different sub-matrices share elements where dim-range-nodes overlap.
func (e *emitter) splitRepeated(list []location) [][]location {
	type place struct{ matrix, row int32 }
	type use struct {
		col int32
		k   int // the list it is in
	}
	seen := make(map[place][]use, len(list))
	var split [][]location
	for row, at := range list {
		if at[0] < 0 {
			continue
		}
		sub := &e.comp.Submatrices[at[0]]
		p := place{sub.Matrix, sub.RowOffset + at[1]}
		k := 0
		for _, u := range seen[p] {
			if u.col < sub.ColOffset+sub.NumCols && sub.ColOffset < u.col+sub.NumCols {
				k = max(k, u.k+1)
			}
		}
		seen[p] = append(seen[p], use{sub.ColOffset, k})
		if k == len(split) {
			split = append(split, make([]location, len(list)))
			for i := range split[k] {
				split[k][i] = noLocation
			}
		}
		split[k][row] = at
	}
	return split
}

// splitRuns divides a list of rows, below n, into lists in which all occurrences of a row follow each other: the first runs
// of each row, the second runs, ….
func splitRuns(rows []int32, n int32) [][]int32 {
	runs := make([]int32, n)
	var split [][]int32
	for i, r := range rows {
		if r < 0 {
			continue
		}
		if i == 0 || rows[i-1] != r {
			runs[r]++
		}
		k := int(runs[r]) - 1
		if k == len(split) {
			list := make([]int32, len(rows))
			fill(list, none)
			split = append(split, list)
		}
		split[k][i] = r
	}
	return split
}

// invert returns for each of n rows where in the list it is, or none. It fails if a row is there twice.
func invert(rows []int32, n int32) ([]int32, bool) {
	inverse := make([]int32, n)
	fill(inverse, none)
	for i, r := range rows {
		if r < 0 {
			continue
		}
		if inverse[r] >= 0 {
			return nil, false
		}
		inverse[r] = int32(i)
	}
	return inverse, true
}

// ranges returns for each of n rows the range where it is in the list, in which all occurrences of a row follow each other.
func ranges(rows []int32, n int32) []computation.Pair {
	list := make([]computation.Pair, n)
	for i := range list {
		list[i] = computation.Pair{none, none}
	}
	for i, r := range rows {
		if r < 0 {
			continue
		}
		if list[r][0] < 0 {
			list[r][0] = int32(i)
		}
		list[r][1] = int32(i) + 1
	}
	return list
}
