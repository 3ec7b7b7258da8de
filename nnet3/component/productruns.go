package component

import (
	"strings"

	"github.com/nnopt/nnopt/internal/kernel"
)

// InputDim returns the number of input columns.
func (p *product) InputDim() int { return p.inputDim }

// Properties omits those of a backward pass, which a product doesn't have.
func (p *product) Properties() Properties {
	return Properties(0).with(Simple, p.simple).with(PropagateAdds, p.alpha != 0 || p.adds)
}

// Type joins the names of the parts.
func (p *product) Type() string {
	parts := []string{strings.TrimSuffix(p.base.Type(), "Component")}
	if p.adds {
		parts = append(parts, "Add")
	}
	if p.relu {
		parts = append(parts, "RectifiedLinear")
	}
	if p.scale != nil {
		parts = append(parts, "Scale")
	}
	for _, c := range p.tail {
		parts = append(parts, strings.TrimSuffix(c.Type(), "Component"))
	}
	if p.alpha != 0 {
		parts = append(parts, "Residual")
	}
	if p.precision != kernel.Float32 {
		parts = append(parts, p.precision.String())
	}
	return strings.Join(parts, "+")
}

// Prepare prepares the parameters of the base component.
func (p *product) Prepare() {
	for _, b := range p.blocks {
		if p.precision == kernel.Float32 {
			b.w.prepareOnce()
		} else {
			b.w.quantizeOnce(p.form())
		}
	}
}

// finish applies the tail.
func (p *Product) finish(w *Workspace, y kernel.Matrix) error {
	for _, c := range p.tail {
		if _, err := c.Propagate(w, ForwardPass{DropMemo: true}, y, y); err != nil {
			return err
		}
	}
	return nil
}

// mul computes everything before the tail, and adds alpha·y.
func (p *Product) mul(w *Workspace, pass ForwardPass, in kernel.Matrix, alpha float32, y kernel.Matrix) error {
	ep := kernel.Epilogue{
		Accumulate: p.adds && !p.blocks[0].goesOn, Bias: p.bias, BiasFirst: !p.base.Properties().Has(Simple),
		ReLU: p.relu, Scale: p.scale, Offset: p.offset, Alpha: alpha, Threads: w.Threads,
	}
	var x *tdnnIndexes
	if !p.simple {
		var ok bool
		if x, ok = pass.Pre.(*tdnnIndexes); !ok || !x.fits(len(p.blocks), in.Rows, y.Rows) {
			return misfit(p, in.Rows, y.Rows)
		}
	}
	if p.precision == kernel.Float32 {
		ep.Next = w.preparedForms(pass.Next)
		p.mulFloat(w, x, in, ep, y)
	} else {
		rows, first := w.quantizedInput(p, pass, in)
		p.mulQuantized(w, x, in, rows, first, ep, y)
	}
	return nil
}

// mulFloat is mul in float32. x is nil for a simple product.
func (p *Product) mulFloat(w *Workspace, x *tdnnIndexes, in kernel.Matrix, ep kernel.Epilogue, y kernel.Matrix) {
	if x == nil {
		ep.Residual = residual(ep.Alpha, y)
		p.blocks[0].w.mul(in, ep, y)
		return
	}
	mulRuns(w, p.blocks, x.Runs, ep, in, y)
}

// residual returns y if an epilogue with this alpha adds it, otherwise an empty matrix.
func residual(alpha float32, y kernel.Matrix) kernel.Matrix {
	if alpha == 0 {
		return kernel.Matrix{}
	}
	return y
}

// mulRuns computes y = Σ_i x_i·W_iᵀ and applies ep. The runs of block i say which rows of in are
// x_i. If all blocks have their runs in the same output rows, the products read the rows in place,
// all blocks in one pass. Otherwise the rows are gathered first.
func mulRuns(w *Workspace, blocks []productBlock, runs [][]run, ep kernel.Epilogue, in, y kernel.Matrix) {
	// Weights that are not prepared, as in training, would have to be packed for one use. Block by
	// block, in place, costs passes over y instead. It can't continue sums or keep the old y for a
	// residual, though, so those take the other way.
	if !ready(blocks) && ep.Alpha == 0 {
		mulEach(blocks, runs, ep, in, y)
		return
	}
	defer w.Release(w.Mark())
	segs := w.segments(len(blocks))
	for i := range blocks {
		b := &blocks[i]
		segs[i] = kernel.Segment{W: b.w.ready(), Continue: b.goesOn}
	}
	// Only the last part prefetches what the next product multiplies by: before that, the parts would
	// evict the weights of each other, which they are about to read again.
	next := ep.Next
	ep.Next = nil
	parts := 1
	// If all blocks have the same output rows in each run, one call per run reads the inputs in
	// place through their strides, and sums stay in registers over all blocks. Otherwise rows are
	// gathered, so that there is one run.
	gathered := !alike(runs)
	if !gathered {
		parts = len(runs[0])
	}
	for r := range parts {
		if r == parts-1 {
			ep.Next = next
		}
		out := y
		if !gathered {
			out = runs[0][r].output(y)
		}
		for i := range blocks {
			x := kernel.Cols(in, blocks[i].col, blocks[i].w.m.Cols)
			if gathered {
				segs[i].X = gather(w, runs[i], x, y.Rows)
			} else {
				segs[i].X = runs[i][r].rows(x)
			}
		}
		ep.Residual = residual(ep.Alpha, out)
		kernel.MulSegments(segs, ep, out)
	}
}

// ready reports whether the blocks are prepared, or have to be in order to continue each other's
// sums.
func ready(blocks []productBlock) bool {
	for i := range blocks {
		if blocks[i].goesOn {
			return true
		}
	}
	return blocks[0].w.prepared != nil
}

// mulEach is mulRuns for weights that are not prepared. It multiplies block by block.
func mulEach(blocks []productBlock, runs [][]run, ep kernel.Epilogue, in, y kernel.Matrix) {
	for i := range blocks {
		each := kernel.Epilogue{Accumulate: i > 0 || ep.Accumulate, Threads: ep.Threads}
		if last := i == len(blocks)-1; last {
			each.ReLU, each.Scale, each.Offset = ep.ReLU, ep.Scale, ep.Offset
			if !ep.BiasFirst {
				each.Bias = ep.Bias
			}
		}
		// A sum is not associative. A TDNN of Kaldi copies its bias to the output and adds the
		// blocks to it, so the bias is the first term, for the sake of the bits.
		if i == 0 && ep.BiasFirst {
			each.Bias = ep.Bias
		}
		for _, r := range runs[i] {
			blocks[i].w.mul(r.rows(kernel.Cols(in, blocks[i].col, blocks[i].w.m.Cols)), each, r.output(y))
		}
	}
}

// alike reports whether all blocks have their runs in the same output rows.
func alike(runs [][]run) bool {
	for _, rs := range runs[1:] {
		if len(rs) != len(runs[0]) {
			return false
		}
		for i, r := range rs {
			if s := runs[0][i]; r.Out != s.Out || r.OutStep != s.OutStep || r.Count != s.Count {
				return false
			}
		}
	}
	return true
}

// gather copies the input rows of the runs to scratch memory, in the order of the output rows.
func gather(w *Workspace, runs []run, in kernel.Matrix, rows int) kernel.Matrix {
	x := w.Matrix(rows, in.Cols)
	for _, r := range runs {
		for k := range r.Count {
			copy(kernel.Row(x, int(r.Out+k*r.OutStep)), kernel.Row(in, int(r.In+k*r.InStep)))
		}
	}
	return x
}

// run says that Count rows of an output, OutStep apart from row Out on, take a row of the input
// each, InStep apart from row In on. A product can read and write such rows in place, through the
// strides. With an InStep of 0 all take the same row.
type run struct {
	Out, OutStep int32
	In, InStep   int32
	Count        int32
}

// input returns the input rows of r as a matrix.
func (r run) input(m kernel.Matrix) kernel.Matrix {
	return kernel.EveryNth(m, int(r.In), int(r.Count), int(r.InStep))
}

// rows returns the input rows of r, possibly one row repeated, as a matrix for a Segment.
func (r run) rows(m kernel.Matrix) kernel.Matrix {
	if r.InStep > 0 || r.Count < 2 {
		return r.input(m)
	}
	x := kernel.Rows(m, int(r.In), 1)
	x.Rows, x.Stride = int(r.Count), 0
	return x
}

// output returns the output rows of r as a matrix.
func (r run) output(m kernel.Matrix) kernel.Matrix {
	return kernel.EveryNth(m, int(r.Out), int(r.Count), int(r.OutStep))
}

// findRuns describes rows, the input row of each output row or -1 for none, by runs. It tries to
// find few.
func findRuns(rows []int32) []run {
	var runs []run
	for i := 0; i < len(rows); {
		if rows[i] < 0 {
			i++
			continue
		}
		r := run{Out: int32(i), OutStep: 1, In: rows[i], InStep: 1, Count: 1}
		if i+1 < len(rows) && rows[i+1] >= rows[i] {
			r.InStep = rows[i+1] - rows[i]
		}
		for i++; i < len(rows) && rows[i] >= 0 && rows[i]-rows[i-1] == r.InStep; i++ {
			r.Count++
		}
		runs = append(runs, r)
	}
	// Three sequences at every third time give as many runs of three rows as there are times;
	// turned around, they are three long runs. Products want long ones.
	return transposeRuns(runs)
}

// transposeRuns turns many short runs, all alike and equally spaced, into few long ones: for
// example, the runs of several sequences at every third time.
func transposeRuns(runs []run) []run {
	if len(runs) < 2 || int(runs[0].Count) >= len(runs) {
		return runs
	}
	first := runs[0]
	outStep, inStep := runs[1].Out-first.Out, runs[1].In-first.In
	// EveryNth can't go backwards.
	if inStep <= 0 {
		return runs
	}
	for i, r := range runs {
		if r.Count != first.Count || r.Count > 1 && r.InStep != first.InStep ||
			r.Out != first.Out+int32(i)*outStep || r.In != first.In+int32(i)*inStep {
			return runs
		}
	}
	turned := make([]run, first.Count)
	for k := range turned {
		turned[k] = run{
			Out: first.Out + int32(k), OutStep: outStep,
			In: first.In + int32(k)*first.InStep, InStep: inStep, Count: int32(len(runs)),
		}
	}
	return turned
}
