package compile

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// backward appends the commands of the backward pass: the derivatives of outputs, the steps in
// reverse, and a permanent no-op after which derivatives with respect to inputs are complete.
func (e *emitter) backward() error {
	for i := range e.steps {
		if st := &e.steps[i]; st.kind == outputStep && st.deriv != 0 && st.spec.HasDeriv {
			e.command(computation.AcceptInput, st.deriv, st.node)
		}
	}
	inputDerivs := false
	// In reverse, a derivative is complete when its step is reached: all that use the value come
	// later in the forward pass. Every matrix begins with zeros, and each use adds to it.
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
			e.descriptor(st, true)
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
		return fmt.Errorf("%w: node %q: component %s has no derivative", nnet3.ErrNetwork, e.net.name(st.node), e.net.nn.Components[n.component].Type())
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

// addToRows appends commands that add row i of a view to row rows[i], one of n, of another. One
// command can add several rows to the same row only if they are adjacent.
func (e *emitter) addToRows(to int32, scale float32, from int32, rows []int32, n int32) {
	for _, list := range splitRuns(rows, n) {
		// Where every row goes to another one, seen from the destination it is a plain list of
		// sources. Where several adjacent rows go to one, it is a list of ranges to sum.
		if inverse, ok := invert(list, n); ok {
			e.addRows(to, scale, from, e.keep(inverse))
			continue
		}
		e.comp.IndexesRanges = append(e.comp.IndexesRanges, ranges(list, n))
		e.scaled(computation.AddRowRanges, scale, to, from, int32(len(e.comp.IndexesRanges)-1))
	}
}

// splitRepeated divides a list into lists in which no two locations share an element: the first
// occurrences, the second ones, and so on. Sub-matrices share elements if dim-range-nodes overlap.
func (e *emitter) splitRepeated(list []location) [][]location {
	s := &e.split
	s.prepare(e.comp, list)
	var split [][]location
	for row, at := range list {
		if at[0] < 0 {
			continue
		}
		sub := &e.comp.Submatrices[at[0]]
		head := s.head(sub, at)
		k := int32(0)
		// Two locations in one row of a matrix overlap only if their columns do. A list head for
		// each row of the matrices at hand makes this linear in the locations; comparing all pairs
		// would be quadratic in the length of a chunk.
		for n := *head; n != 0; n = s.uses[n].next {
			if u := &s.uses[n]; u.col < sub.ColOffset+sub.NumCols && sub.ColOffset < u.col+sub.NumCols {
				k = max(k, u.list+1)
			}
		}
		s.uses = append(s.uses, rowUse{col: sub.ColOffset, list: k, next: *head})
		*head = int32(len(s.uses) - 1)
		if int(k) == len(split) {
			split = append(split, slices.Repeat([]location{noLocation}, len(list)))
		}
		split[k][row] = at
	}
	// Reset what was used and not all heads: there may be many more rows than locations.
	for _, at := range list {
		if at[0] >= 0 {
			*s.head(&e.comp.Submatrices[at[0]], at) = 0
		}
	}
	return split
}

// rowSplit is the scratch memory of splitRepeated.
type rowSplit struct {
	first []int32  // by matrix, if the list has locations in it: its first row in heads
	heads []int32  // by row: its last use; 0 between calls
	uses  []rowUse // the first one stands for none
}

// rowUse is a location of a list.
type rowUse struct {
	col  int32
	list int32 // the number of the list that it is in
	next int32 // the use of the row before
}

// prepare makes room for the rows of the matrices of a list.
func (s *rowSplit) prepare(c *computation.Computation, list []location) {
	s.first = slices.Grow(s.first[:0], len(c.Matrices))[:len(c.Matrices)]
	for _, at := range list {
		if at[0] >= 0 {
			s.first[c.Submatrices[at[0]].Matrix] = none
		}
	}
	rows := int32(0)
	for _, at := range list {
		if at[0] < 0 {
			continue
		}
		if m := c.Submatrices[at[0]].Matrix; s.first[m] == none {
			s.first[m] = rows
			rows += c.Matrices[m].Rows
		}
	}
	if len(s.heads) < int(rows) {
		s.heads = make([]int32, rows)
	}
	s.uses = append(s.uses[:0], rowUse{})
}

// head returns the element of heads for a location, which is in a sub-matrix.
func (s *rowSplit) head(sub *computation.SubMatrixInfo, at location) *int32 {
	return &s.heads[s.first[sub.Matrix]+sub.RowOffset+at[1]]
}

// splitRuns divides a list of rows below n into lists in which all occurrences of a row are
// adjacent: the first run of each row, the second run, and so on.
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
			split = append(split, slices.Repeat([]int32{none}, len(rows)))
		}
		split[k][i] = r
	}
	return split
}

// invert returns for each of n rows its position in the list, or none. No row may occur twice.
func invert(rows []int32, n int32) ([]int32, bool) {
	inverse := slices.Repeat([]int32{none}, int(n))
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

// ranges returns for each of n rows its range in the list, in which equal rows are adjacent.
func ranges(rows []int32, n int32) []computation.Pair {
	list := slices.Repeat([]computation.Pair{noLocation}, int(n))
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
