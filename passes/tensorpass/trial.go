package tensorpass

import (
	"context"
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

// trialBytes bounds what the values of a graph take at a time.
const trialBytes = 1 << 30

var errNoTrial = errors.New("tensorpass: the graph can't be computed on random inputs")

// A trial computes a graph on drawn inputs, with products in given precisions.
type trial struct {
	g       *fgraph.FunctionGraph
	program interp.Program  // with products of float32s
	product []*noisyProduct // by step
	integer map[*noisyProduct]map[kernel.Precision]tensor.Kernel
	seen    []*variable
	carried []carried
	draws   []*draw
}

// newTrial returns a trial of a graph with some products of integers.
func newTrial(g *fgraph.FunctionGraph, list []*noisyProduct) (*trial, error) {
	t := &trial{g: g, integer: make(map[*noisyProduct]map[kernel.Precision]tensor.Kernel)}
	t.program.Slots(g.Inputs())
	by := make(map[*apply]*noisyProduct)
	for _, p := range list {
		by[p.apply] = p
		t.integer[p] = make(map[kernel.Precision]tensor.Kernel)
	}
	cost := 0.0
	for a := range g.Ordered() {
		p := by[a]
		k, err := compileProduct(a, p, kernel.Float32)
		if destroys(a.Op()) || err != nil {
			return nil, errors.Join(err, errNoTrial)
		}
		t.program.Add(a, k)
		t.product = append(t.product, p)
		cost += tensor.Cost(a)
	}
	for _, v := range g.Outputs() {
		t.see(v)
		t.see(counted(v))
	}
	t.carried = carriedBy(g)
	if t.draws = drawsOf(g, cost, t.carried); t.draws == nil {
		return nil, errNoTrial
	}
	return t, nil
}

// see adds a variable to those that are compared.
func (t *trial) see(v *variable) {
	t.program.Keep(v)
	if typeOf(v).DType().IsFloat() && !typeOf(v).IsCSR() && !slices.Contains(t.seen, v) {
		t.seen = append(t.seen, v)
	}
}

// counted returns what is compared besides an output: the argument of a softmax, since probabilities
// that are nearly 0 and 1 hide how near others are.
func counted(out *variable) *variable {
	for v := out; v.Owner() != nil; v = v.Owner().Inputs()[0] {
		switch v.Owner().Op().(type) {
		case tensor.SoftmaxOp:
			return v.Owner().Inputs()[0]
		case tensor.DimShuffleOp, tensor.ReshapeOp:
		default:
			return out
		}
	}
	return out
}

// compileProduct returns what computes an apply, or the product that it is in a precision.
func compileProduct(a *apply, p *noisyProduct, to kernel.Precision) (tensor.Kernel, error) {
	if p == nil || to == p.precision() {
		return tensor.Compile(a)
	}
	op := p.base()
	if to != kernel.Float32 {
		op = tensor.NewIntegers(op, to)
	}
	other, err := tensor.Make(op, a.Inputs()...)
	if err != nil {
		return nil, err
	}
	return tensor.Compile(other)
}

// kernel returns what computes a step with products in the precisions that they are to have.
func (t *trial) kernel(n int) (tensor.Kernel, error) {
	p, s := t.product[n], t.program.Steps[n]
	if p == nil || p.to == kernel.Float32 {
		return s.Kernel, nil
	}
	k := t.integer[p][p.to]
	if k == nil {
		var err error
		if k, err = compileProduct(s.Apply, p, p.to); err != nil {
			return nil, err
		}
		t.integer[p][p.to] = k
	}
	return k, nil
}

// A world is the values of a graph while it is computed.
type world = interp.State

// world returns the values before the first step.
func (t *trial) world(inputs []*array.Array) *world {
	w := t.program.Start(inputs...)
	w.MaxBytes = trialBytes
	return w
}

// run runs a kernel.
func run(ctx context.Context, a *apply, k tensor.Kernel, in []*array.Array) ([]*array.Array, error) {
	return tensor.Run(a, k, workspace(ctx), in)
}

// workspace returns the workspace of an apply.
func workspace(ctx context.Context) *array.Workspace {
	return &array.Workspace{MaxBytes: trialBytes, Context: ctx}
}

// compute returns the values of a graph for some inputs, with products in the precisions that they are to have.
func (t *trial) compute(ctx context.Context, inputs []*array.Array) (*world, error) {
	w := t.world(inputs)
	for n := range t.program.Steps {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		k, err := t.kernel(n)
		if err == nil {
			err = w.Run(workspace(ctx), n, k)
		}
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// results returns the compared values.
func (t *trial) results(w *world) []*array.Array {
	return lists.Map(t.seen, w.Of)
}

// after returns the inputs of a draw, of which some may be what the draw before it has made.
func (t *trial) after(before *world, d *draw) []*array.Array {
	if before == nil || !d.continues {
		return d.inputs
	}
	list := slices.Clone(d.inputs)
	for _, c := range t.carried {
		list[c.in] = before.Of(t.g.Outputs()[c.out])
	}
	return list
}

// sideBySide is how many draws are computed side by side.
const sideBySide = 4

// prepare computes what the outputs are with float32s, for all draws. Some that do not continue each other are
// computed side by side, apply by apply: what a product has prepared of its weights, which takes as much memory
// as they do, is dropped before the next one prepares its own. Graphs with large weights have few draws.
func (t *trial) prepare(ctx context.Context) error {
	if len(t.draws) <= sideBySide && !slices.ContainsFunc(t.draws, func(d *draw) bool { return d.continues }) {
		worlds := make([]*world, len(t.draws))
		for i, d := range t.draws {
			worlds[i] = t.world(d.inputs)
			worlds[i].MaxBytes /= int64(len(worlds))
		}
		// Values that are too large together may not be so one by one.
		err := t.floats(ctx, worlds, true)
		if err == nil {
			for i, d := range t.draws {
				d.exact = t.results(worlds[i])
			}
		}
		if !errors.Is(err, interp.ErrMemory) {
			return err
		}
	}
	var w *world
	for _, d := range t.draws {
		w = t.world(t.after(w, d))
		if err := t.floats(ctx, []*world{w}, false); err != nil {
			return err
		}
		d.exact = t.results(w)
	}
	return nil
}

// floats computes worlds with float32s, and keeps no weights for others if they are the last.
func (t *trial) floats(ctx context.Context, worlds []*world, last bool) (err error) {
	for n := range t.program.Steps {
		s := &t.program.Steps[n]
		for _, w := range worlds {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := w.Run(workspace(ctx), n, s.Kernel); err != nil {
				return err
			}
		}
		if p := t.product[n]; p != nil && last {
			if s.Kernel, err = compileProduct(s.Apply, p, kernel.Float32); err != nil {
				return err
			}
		}
	}
	return nil
}

// call computes a draw after the one before it, with products in the precisions that they are to have.
func (t *trial) call(ctx context.Context, before *world, draw int) (*world, error) {
	return t.compute(ctx, t.after(before, t.draws[draw]))
}

// again is call after the same calls, which are computed again.
func (t *trial) again(ctx context.Context, draw int) (w *world, err error) {
	for n := t.first(draw); n <= draw; n++ {
		if w, err = t.call(ctx, w, n); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// first returns the draw that begins what a draw continues.
func (t *trial) first(draw int) int {
	for t.draws[draw].continues {
		draw--
	}
	return draw
}
