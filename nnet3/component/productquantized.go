package component

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// Quantized returns a product that multiplies integers of the given precision: the rows of its
// input, each quantized by itself, and its parameters. In kernel.Int8, long rows have steps for each
// group of columns. Sums of a block don't continue those of the
// one before, but are added to them. A row with NaN or infinities is computed in float32. Quantized
// reports false if the parameters can't be quantized. With kernel.Float32 it returns p in float32.
func (p *Product) Quantized(to kernel.Precision) (*Product, bool) {
	q := *p
	q.precision, q.step, q.length = to, 0, 0
	if to == kernel.Float32 {
		return &q, true
	}
	for i := range p.blocks {
		for _, r := range p.blocks[i].w.steps(q.form()) {
			if !r.ok {
				return nil, false
			}
			// Groups have steps of their own, and the part of the row that each multiplies counts.
			q.step += float64(r.step * float64(r.cols))
			q.length += r.length
		}
	}
	q.step /= float64(p.Terms())
	return &q, true
}

// Precision returns the precision of the factors.
func (p *Product) Precision() kernel.Precision { return p.precision }

// form returns how the parameters of a quantized product are quantized. Groups pay in long rows, and
// must begin at the same columns in the input and in all blocks.
func (p *product) form() form {
	if p.precision == kernel.Int16 {
		return whole16
	}
	if p.inputDim < 2*groupColumns {
		return whole8
	}
	for i := range p.blocks {
		if p.blocks[i].col%groupColumns != 0 {
			return whole8
		}
	}
	return grouped
}

// Group returns how many columns of the input of a quantized product share steps.
func (p *Product) Group() int {
	if p.form() == grouped {
		return groupColumns
	}
	return p.inputDim
}

// ExpectedError returns an estimate of the error of a quantized product: the root mean square,
// relative to the result, before any operation on it. It takes the elements of a row for independent
// normal numbers. QuantizationError has the formula.
func (p *Product) ExpectedError() float64 {
	if p.length == 0 {
		return 0
	}
	step := normalRange(p.Group()) / float64(p.precision.Levels())
	return math.Sqrt((float64(step*step) + p.step*float64(p.Terms())/p.length) / 12)
}

// normalRange returns about how far n independent normal numbers are apart at most, on average.
func normalRange(n int) float64 {
	if n < 3 {
		return 1.2
	}
	const euler = 0.5772
	z := math.Sqrt(2 * elementary.Log(float64(n)))
	return 2 * (z - (elementary.Log(elementary.Log(float64(n)))+elementary.Log(4*math.Pi)-2*euler)/(2*z))
}

// Terms returns the number of terms of a sum.
func (p *Product) Terms() int {
	k := 0
	for i := range p.blocks {
		k += p.blocks[i].w.m.Cols
	}
	return k
}

// QuantizationError returns an estimate of the root mean square of the error that an element of the
// output of a quantized product has because the factors are rounded, before any operation on the
// result, for this input:
//
//	sqrt((sx²·|w|² + sw²·|x|²) / 12)
//
// with the mean square over all elements, where sx and sw are the distances of levels in a row of
// the input and in a column of parameters. It reports false if the indexes don't fit. Marked rows
// don't count.
func (p *Product) QuantizationError(pre Precomputed, in kernel.Matrix, rows int) (rms float64, ok bool) {
	var x kernel.QuantizedRows
	x.SetGroups(p.precision, p.Group(), in)
	total := 0.0
	for b := range p.blocks {
		src, ok := p.Rows(b, pre, rows)
		if !ok {
			return 0, false
		}
		for _, r := range p.blocks[b].w.steps(p.form()) {
			if !r.ok {
				return 0, false
			}
			total += r.error(&x, in, p.blocks[b].col+r.col, src)
		}
	}
	return math.Sqrt(total / 12 / float64(max(rows, 1))), true
}

// error returns the sum of the squares of the errors of a group, whose input begins with a column, over
// some rows, times 12. Marked rows don't count.
func (r *rounding) error(x *kernel.QuantizedRows, in kernel.Matrix, col int, rows []int32) (total float64) {
	for _, i := range rows {
		if x.IsMarked(int(i)) {
			continue
		}
		squares := 0.0
		for _, v := range kernel.Row(in, int(i))[col : col+r.cols] {
			squares += float64(float64(v) * float64(v))
		}
		s := float64(x.Step(int(i), col))
		total += float64(float64(s*s)*r.length) + float64(r.step*squares)
	}
	return total
}

// quantizedInput returns the rows of the input as integers, and which is the first: those of the
// pass if they have the precision and the groups of the product, and otherwise its own.
func (w *Workspace) quantizedInput(p *Product, pass ForwardPass, in kernel.Matrix) (rows *kernel.QuantizedRows, first int) {
	rows, first = pass.Rows, pass.FirstRow
	if rows == nil || rows.Rows() < first+in.Rows || rows.Precision() != p.precision || rows.Group() != p.Group() {
		// The rows of the pass have other steps than the product needs, or there are none. That is
		// no error: what is shared saves time and changes no bit.
		rows, first = &w.ownRows, 0
		w.Threads.SetGroups(rows, p.precision, p.Group(), in)
	}
	return rows, first
}

// mulQuantized is mul for a quantized product, given the rows of the input as integers, from row
// first on.
func (p *Product) mulQuantized(w *Workspace, x *tdnnIndexes, in kernel.Matrix, rows *kernel.QuantizedRows, first int,
	ep kernel.Epilogue, y kernel.Matrix) {
	defer w.Release(w.Mark())
	if y.Rows == 0 {
		return
	}
	segs := w.quantizedSegments()
	for i := range p.blocks {
		list := w.integersOf(p.blocks[i].w, p.form())
		if list == nil {
			p.mulFloat(w, x, in, ep, y)
			return
		}
		for g, q := range list {
			segs.all = append(segs.all, kernel.QuantizedSegment{W: q, Col: p.blocks[i].col + g*groupColumns})
		}
		segs.ends = append(segs.ends, len(segs.all))
	}
	ep.Accumulate = p.adds
	var exact kernel.Matrix
	if rows.Marked() > 0 {
		// Some rows of the input have NaN or infinities, for which no step exists. Compute all rows
		// in float32 as well and take those that need it: they are rare, and one product in float32
		// is simpler than one of scattered rows. It must come first, because a residual and sums to
		// be continued are still in y.
		exact = w.Matrix(y.Rows, y.Cols)
		w.Threads.Copy(exact, y)
		float := ep
		float.Accumulate = p.adds && !p.blocks[0].goesOn
		float.Residual = residual(ep.Alpha, exact)
		p.mulFloat(w, x, in, float, exact)
	}
	if x == nil {
		ep.Residual = residual(ep.Alpha, y)
		kernel.MulQuantized(segs.of(0, rows, first, 1), ep, y)
	} else {
		mulQuantizedRuns(w, rows, first, segs, x.Runs, ep, y)
	}
	if rows.Marked() > 0 {
		p.restore(x, rows, first, exact, y)
	}
}

// quantizedSegments are the segments of a quantized product, block by block.
type quantizedSegments struct {
	all  []kernel.QuantizedSegment
	ends []int // by block: the end of its segments
}

// of returns the segments of a block, with their rows.
func (s *quantizedSegments) of(block int, rows *kernel.QuantizedRows, first, step int) []kernel.QuantizedSegment {
	begin := 0
	if block > 0 {
		begin = s.ends[block-1]
	}
	list := s.all[begin:s.ends[block]]
	for i := range list {
		list[i].Rows, list[i].First, list[i].Step = rows, first, step
	}
	return list
}

// mulQuantizedRuns computes y = ep(Σ_i x_i·W_iᵀ), where the runs of term i say which rows x_i
// consists of, counted from the given one.
func mulQuantizedRuns(w *Workspace, rows *kernel.QuantizedRows, first int, segs *quantizedSegments, runs [][]run, ep kernel.Epilogue, y kernel.Matrix) {
	if alike(runs) {
		for r := range runs[0] {
			out := runs[0][r].output(y)
			for i := range runs {
				segs.of(i, rows, first+int(runs[i][r].In), int(runs[i][r].InStep))
			}
			ep.Residual = residual(ep.Alpha, out)
			kernel.MulQuantized(segs.all, ep, out)
		}
		return
	}
	// The terms divide the rows in different ways, so they are added one after the other. Bias,
	// ReLU and scale apply to the whole sum, and the residual is the old y. So sums grow in scratch
	// memory, and only the last term applies the epilogue.
	sum := w.Matrix(y.Rows, y.Cols)
	if ep.Accumulate {
		w.Threads.Copy(sum, y)
	}
	for i := range runs {
		each := kernel.Epilogue{Accumulate: i > 0 || ep.Accumulate, Threads: w.Threads}
		if i == len(runs)-1 {
			accumulate := each.Accumulate
			each = ep
			each.Accumulate = accumulate
		}
		for _, r := range runs[i] {
			each.Residual = residual(each.Alpha, r.output(y))
			kernel.MulQuantized(segs.of(i, rows, first+int(r.In), int(r.InStep)), each, r.output(sum))
		}
	}
	w.Threads.Copy(y, sum)
}

// restore copies the output rows that depend on a marked row from exact.
func (p *Product) restore(x *tdnnIndexes, rows *kernel.QuantizedRows, first int, exact, y kernel.Matrix) {
	if x == nil {
		for i := range y.Rows {
			if rows.IsMarked(first + i) {
				copy(kernel.Row(y, i), kernel.Row(exact, i))
			}
		}
		return
	}
	for _, runs := range x.Runs {
		for _, r := range runs {
			for k := range r.Count {
				if rows.IsMarked(first + int(r.In+k*r.InStep)) {
					o := int(r.Out + k*r.OutStep)
					// One marked row among the terms is enough.
					copy(kernel.Row(y, o), kernel.Row(exact, o))
				}
			}
		}
	}
}
