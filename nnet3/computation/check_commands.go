package computation

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
)

// commands checks each command by itself: sizes, rows, components, nodes.
func (r *report) commands() {
	for i, cmd := range r.c.Commands {
		if bad := float64(cmd.Alpha); math.IsNaN(bad) || math.IsInf(bad, 0) {
			r.addf(errSize, i, "alpha is %g", cmd.Alpha)
		}
		switch cmd.Type {
		case SwapMatrix:
			r.sameSize(i, cmd.View(), cmd.Source())
			r.forbid(r.overlap(cmd.View(), cmd.Source()), errOverlap, i, "a matrix is swapped with itself")
		case Propagate:
			r.propagate(i, cmd)
		case Backprop, BackpropNoModelUpdate:
			r.backprop(i, cmd)
		case MatrixCopy:
			r.sameSize(i, cmd.View(), cmd.Source())
			if same := r.c.Submatrices[cmd.View()] == r.c.Submatrices[cmd.Source()]; same && cmd.Alpha == 1 {
				r.addf(errOverlap, i, "a copy to itself does nothing")
			} else if !same {
				r.disjoint(i, cmd.View(), cmd.Source())
			}
		case MatrixAdd:
			r.sameSize(i, cmd.View(), cmd.Source())
			r.disjoint(i, cmd.View(), cmd.Source())
		case CopyRows, AddRows:
			rowSources(r, i, cmd, r.c.Indexes[cmd.Vector()], "row numbers", rowFault)
		case AddRowRanges:
			rowSources(r, i, cmd, r.c.IndexesRanges[cmd.Vector()], "ranges", rangeFault)
		case CopyRowsMulti, AddRowsMulti, CopyToRowsMulti, AddToRowsMulti:
			r.multi(i, cmd)
		case CompressMatrix:
			if !(cmd.Alpha >= 0 && cmd.Alpha <= 1000) {
				r.addf(errCompression, i, "the range is %g, not in [0, 1000]", cmd.Alpha)
			}
		case AcceptInput, ProvideOutput:
			r.io(i, cmd)
		case NoOperationLabel, GotoLabel:
			r.jump(i, cmd)
		}
	}
}

// forbid records a violation of the given kind by command i if its condition holds.
func (r *report) forbid(violated bool, kind error, i int, fault string) {
	if violated {
		r.addf(kind, i, "%s", fault)
	}
}

// sameSize checks that two sub-matrices have the same size.
func (r *report) sameSize(i int, s, t int32) {
	a, b := r.c.Submatrices[s], r.c.Submatrices[t]
	if a.NumRows != b.NumRows || a.NumCols != b.NumCols {
		r.addf(errSize, i, "%dx%d and %dx%d", a.NumRows, a.NumCols, b.NumRows, b.NumCols)
	}
}

// disjoint checks that two sub-matrices share no element.
func (r *report) disjoint(i int, s, t int32) {
	if r.overlap(s, t) {
		r.addf(errOverlap, i, "%s and %s share elements", r.printer.appendSubmatrix(nil, s), r.printer.appendSubmatrix(nil, t))
	}
}

// overlap reports whether two sub-matrices share an element. Sub-matrix 0 has none.
func (r *report) overlap(s, t int32) bool { return r.c.Submatrices[s].overlaps(r.c.Submatrices[t]) }

// overlaps reports whether the two rectangles share an element.
func (s SubMatrixInfo) overlaps(t SubMatrixInfo) bool {
	return s.Matrix == t.Matrix && s.Matrix != 0 &&
		s.RowOffset < t.RowOffset+t.NumRows && t.RowOffset < s.RowOffset+s.NumRows &&
		s.ColOffset < t.ColOffset+t.NumCols && t.ColOffset < s.ColOffset+s.NumCols
}

// inPlace checks that a component's operands are apart, or one view if it may work in place.
func (r *report) inPlace(i int, read, written int32, allowed bool, what string) {
	switch {
	case !r.overlap(read, written):
	case r.c.Submatrices[read] != r.c.Submatrices[written]:
		r.addf(errOverlap, i, "%s are different views that share elements", what)
	case !allowed:
		r.addf(errOverlap, i, "%s are the same, and the component does not work in place", what)
	}
}

// operand checks the number of columns of a component's operand.
func (r *report) operand(i int, s int32, dim int, what string) {
	if cols := r.c.Submatrices[s].NumCols; s != 0 && int(cols) != dim {
		r.addf(errSize, i, "the %s has %d columns, the component's dimension is %d", what, cols, dim)
	}
}

func (r *report) propagate(i int, cmd Command) {
	r.precomputed(i, cmd, cmd.Input(), cmd.Output())
	info, known := r.net.component(cmd.Component())
	if !known {
		r.inPlace(i, cmd.Input(), cmd.Output(), true, "input and output")
		return
	}
	simple := info.Has(component.Simple)
	r.forbid(simple && cmd.Precomputed() != 0, errComponent, i, "a simple component has no precomputed indexes")
	r.forbid(simple && cmd.Input() == 0, errComponent, i, "a simple component needs an input")
	r.operand(i, cmd.Input(), info.InputDim, "input")
	r.operand(i, cmd.Output(), info.OutputDim, "output")
	if in, out := r.c.Submatrices[cmd.Input()].NumRows, r.c.Submatrices[cmd.Output()].NumRows; simple && cmd.Input() != 0 && in != out {
		r.addf(errSize, i, "%d rows in and %d rows out of a simple component", in, out)
	}
	r.inPlace(i, cmd.Input(), cmd.Output(), info.Has(component.PropagateInPlace), "input and output")
	r.forbid(cmd.StoresStats() && !info.Has(component.StoresStats), errComponent, i, "the component has no statistics to store")
}

func (r *report) backprop(i int, cmd Command) {
	r.precomputed(i, cmd, cmd.Input(), cmd.OutputDeriv())
	info, known := r.net.component(cmd.Component())
	r.inPlace(i, cmd.OutputDeriv(), cmd.InputDeriv(), !known || info.Has(component.BackpropInPlace), "the derivatives of output and input")
	for _, value := range [...]int32{cmd.Input(), cmd.Output()} {
		r.disjoint(i, value, cmd.InputDeriv())
	}
	if !known {
		return
	}
	simple := info.Has(component.Simple)
	r.forbid(simple && cmd.Precomputed() != 0, errComponent, i, "a simple component has no precomputed indexes")
	r.forbid(cmd.Input() == 0 && info.Has(component.BackpropNeedsInput), errComponent, i, "the component needs its input value")
	r.forbid(cmd.Output() == 0 && info.Has(component.BackpropNeedsOutput), errComponent, i, "the component needs its output value")
	r.forbid(cmd.InputDeriv() == 0 && !info.Has(component.Updatable), errComponent, i, "the command has no effect: no derivative is wanted and there is nothing to update")
	r.operand(i, cmd.Input(), info.InputDim, "input value")
	r.operand(i, cmd.Output(), info.OutputDim, "output value")
	r.operand(i, cmd.OutputDeriv(), info.OutputDim, "output derivative")
	r.operand(i, cmd.InputDeriv(), info.InputDim, "input derivative")
	r.sameRows(i, cmd.Input(), cmd.InputDeriv(), "input value and derivative")
	r.sameRows(i, cmd.Output(), cmd.OutputDeriv(), "output value and derivative")
	if simple {
		r.sameRows(i, cmd.Input(), cmd.OutputDeriv(), "input value and output derivative of a simple component")
		r.sameRows(i, cmd.InputDeriv(), cmd.OutputDeriv(), "input and output derivative of a simple component")
	}
}

// sameRows checks that two sub-matrices, if both exist, have the same number of rows.
func (r *report) sameRows(i int, s, t int32, what string) {
	if s == 0 || t == 0 {
		return
	}
	if a, b := r.c.Submatrices[s].NumRows, r.c.Submatrices[t].NumRows; a != b {
		r.addf(errSize, i, "%d and %d rows of %s", a, b, what)
	}
}

// precomputed checks the numbers of rows against the precomputed indexes, if they are known.
func (r *report) precomputed(i int, cmd Command, input, output int32) {
	if cmd.Precomputed() == 0 {
		return
	}
	pre := &r.c.PrecomputedIndexes[cmd.Precomputed()]
	if n := len(pre.InputIndexes); n > 0 && input != 0 && n != int(r.c.Submatrices[input].NumRows) {
		r.addf(errSize, i, "precomputed indexes for %d input rows, not %d", n, r.c.Submatrices[input].NumRows)
	}
	if n := len(pre.OutputIndexes); n > 0 && n != int(r.c.Submatrices[output].NumRows) {
		r.addf(errSize, i, "precomputed indexes for %d output rows, not %d", n, r.c.Submatrices[output].NumRows)
	}
}

// memos checks that each memo is written once and then consumed once by the same component.
func (r *report) memos() {
	// A memo is the step from a forward to a backward run of one component. Kaldi leaves it in
	// memory until it is consumed, so one that is never consumed leaks, and one consumed twice is
	// freed twice.
	const unwritten, consumed = -1, -2
	most := int32(0)
	for _, cmd := range r.c.Commands {
		if cmd.Type == Propagate || cmd.Type.IsBackprop() {
			most = max(most, cmd.Memo())
		}
	}
	writer := slices.Repeat([]int{unwritten}, int(most)+1)
	for i, cmd := range r.c.Commands {
		info, known := r.net.component(cmd.Component())
		switch {
		case cmd.Type == Propagate && cmd.Memo() > 0:
			if writer[cmd.Memo()] != unwritten {
				r.addf(errMemo, i, "memo %d is written a second time", cmd.Memo())
			}
			r.forbid(known && !info.Has(component.UsesMemo), errMemo, i, "the component makes no memo")
			writer[cmd.Memo()] = i
		case cmd.Type.IsBackprop() && cmd.Memo() > 0:
			switch w := writer[cmd.Memo()]; {
			case w == unwritten:
				r.addf(errMemo, i, "memo %d has not been written", cmd.Memo())
			case w == consumed:
				r.addf(errMemo, i, "memo %d is consumed a second time", cmd.Memo())
			case r.c.Commands[w].Component() != cmd.Component():
				r.addf(errMemo, i, "memo %d is another component's, of command c%d", cmd.Memo(), w)
			}
			writer[cmd.Memo()] = consumed
		case cmd.Type.IsBackprop() && known && info.Has(component.UsesMemo):
			r.addf(errMemo, i, "the component needs its memo")
		}
	}
	for memo, w := range writer {
		if w >= 0 {
			r.addf(errMemo, w, "memo %d is never consumed", memo)
		}
	}
}

func (r *report) io(i int, cmd Command) {
	if r.net == nil || len(r.net.Nodes) == 0 {
		return
	}
	node := r.net.Nodes[cmd.Node()]
	if !node.IsInput && !node.IsOutput && !node.IsComponent {
		r.addf(errIO, i, "node %s is neither an input, nor an output, nor a component", node.Name)
		return
	}
	if cols := r.c.Submatrices[cmd.View()].NumCols; int(cols) != node.Dim {
		r.addf(errSize, i, "%d columns for node %s of dimension %d", cols, node.Name, node.Dim)
	}
}

func (r *report) jump(i int, cmd Command) {
	if cmd.Type == NoOperationLabel {
		if !r.c.Looped() {
			r.addf(errLoop, i, "a label, and the last command does not jump to it")
		} else if to := r.c.Commands[len(r.c.Commands)-1].Target(); int(to) != i {
			r.addf(errLoop, i, "a label, and the jump goes to command c%d", to)
		}
		return
	}
	r.forbid(i+1 != len(r.c.Commands), errLoop, i, "a jump must be the last command")
	r.forbid(r.c.Commands[cmd.Target()].Type != NoOperationLabel, errLoop, i, "the target is not a label")
}

// rowSources checks a command that names a source for each row of its result: a row, or a range of
// rows. fault says what is wrong with a source for the given row, in a source matrix of n rows.
func rowSources[T any](r *report, i int, cmd Command, sources []T, what string, fault func(row int, source T, n int32) string) {
	dst, src := r.c.Submatrices[cmd.View()], r.c.Submatrices[cmd.Source()]
	if dst.NumCols != src.NumCols {
		r.addf(errSize, i, "%d and %d columns", dst.NumCols, src.NumCols)
	}
	r.disjoint(i, cmd.View(), cmd.Source())
	if len(sources) != int(dst.NumRows) {
		r.addf(errRows, i, "%d %s for %d rows", len(sources), what, dst.NumRows)
	}
	for row, source := range sources {
		if text := fault(row, source, src.NumRows); text != "" {
			r.addf(errRows, i, "%s", text)
			return // one such fault tells enough
		}
	}
}

func rowFault(row int, from, n int32) string {
	if from >= -1 && from < n {
		return ""
	}
	return fmt.Sprintf("row %d comes from row %d of %d", row, from, n)
}

func rangeFault(row int, p Pair, n int32) string {
	if p == (Pair{-1, -1}) || p[0] >= 0 && p[0] <= p[1] && p[1] <= n {
		return ""
	}
	return fmt.Sprintf("row %d sums the rows [%d, %d) of %d", row, p[0], p[1], n)
}

// rowAt is the position of a row that a vector of pairs names.
type rowAt struct {
	matrix, row, col int32
}

// multi checks the commands with a vector of (sub-matrix, row) pairs, which are known to exist.
func (r *report) multi(i int, cmd Command) {
	near := r.c.Submatrices[cmd.View()]
	v := r.c.IndexesMulti[cmd.Vector()]
	if len(v) != int(near.NumRows) {
		r.addf(errRows, i, "%d pairs for %d rows", len(v), near.NumRows)
	}
	writesFar := cmd.Type == CopyToRowsMulti || cmd.Type == AddToRowsMulti
	var places []rowAt
	for row, p := range v {
		if p[0] < 0 {
			continue
		}
		far := r.c.Submatrices[p[0]]
		if far.NumCols != near.NumCols {
			r.addf(errSize, i, "%d columns, and row %d is of %s with %d columns", near.NumCols, row, r.printer.appendSubmatrix(nil, p[0]), far.NumCols)
			return
		}
		// Of the far sub-matrix the command touches only this row.
		at := far
		at.RowOffset, at.NumRows = far.RowOffset+p[1], 1
		if at.overlaps(near) {
			r.addf(errOverlap, i, "row %d of %s is one of the command's own rows", p[1], r.printer.appendSubmatrix(nil, p[0]))
			return
		}
		if writesFar {
			places = append(places, rowAt{far.Matrix, at.RowOffset, far.ColOffset})
		}
	}
	if cmd.Type == CopyToRowsMulti && cmd.Alpha != 1 {
		r.addf(errSize, i, "alpha is %g, it must be 1", cmd.Alpha)
	}
	r.distinct(i, places, near.NumCols)
}

// distinct checks that rows of cols columns at the places share no element.
func (r *report) distinct(i int, places []rowAt, cols int32) {
	// Places have one width, so if any two of them overlap, two neighbors in this order do.
	slices.SortFunc(places, func(a, b rowAt) int {
		return cmp.Or(cmp.Compare(a.matrix, b.matrix), cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
	})
	for k := 1; k < len(places); k++ {
		a, b := places[k-1], places[k]
		if a.matrix == b.matrix && a.row == b.row && b.col < a.col+cols {
			r.addf(errOverlap, i, "row %d of m%d is written twice", a.row, a.matrix)
			return
		}
	}
}
