package tensorpass

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

const (
	// trialRows is how many rows an output has at least, over all draws of inputs: one row says little
	// about others.
	trialRows = 4
	// trialSize is the size of a dimension of an input that is not known.
	trialSize = 8
	// trialBytes bounds what the values of a graph take.
	trialBytes = 1 << 30
)

var errNoTrial = errors.New("tensorpass: the graph can't be computed on random inputs")

// A trial computes a graph on random inputs, with products in given precisions. Floats are normally
// distributed, integers that index are any index, other integers are 1 and bools true.
type trial struct {
	g       *fgraph.FunctionGraph
	order   []*apply
	kernels []tensor.Kernel // by apply, with products of float32s
	product []*noisyProduct // by apply
	integer map[*noisyProduct]map[kernel.Precision]tensor.Kernel
	exact   [][]*array.Array // by draw and variable
	failed  bool
}

func newTrial(g *fgraph.FunctionGraph, list []*noisyProduct) *trial {
	t := &trial{g: g, integer: make(map[*noisyProduct]map[kernel.Precision]tensor.Kernel)}
	by := make(map[*apply]*noisyProduct)
	for _, p := range list {
		by[p.apply] = p
		t.integer[p] = make(map[kernel.Precision]tensor.Kernel)
	}
	for a := range g.Ordered() {
		p := by[a]
		k, err := t.compile(a, p, kernel.Float32)
		if destroys(a.Op()) || err != nil {
			t.failed = true
			return t
		}
		t.order, t.kernels, t.product = append(t.order, a), append(t.kernels, k), append(t.product, p)
	}
	draws := 1
	for _, v := range g.Outputs() {
		rows := 1
		shape := typeOf(v).Shape()
		for _, n := range shape[:max(len(shape)-1, 0)] {
			if n != tensor.Unknown {
				rows *= max(n, 1)
			}
		}
		draws = max(draws, (trialRows+rows-1)/rows)
	}
	r := rand.New(rand.NewPCG(1, 2))
	limits := indexLimits(g)
	for range draws {
		values := make([]*array.Array, g.NumVariableIDs())
		for i, v := range g.Inputs() {
			values[v.ID()] = randomInput(r, typeOf(v), limits[i])
		}
		t.exact = append(t.exact, values)
	}
	return t
}

// compile returns what computes an apply, or the product that it is in a precision.
func (t *trial) compile(a *apply, p *noisyProduct, to kernel.Precision) (tensor.Kernel, error) {
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

// randomInput returns the value of an input.
func randomInput(r *rand.Rand, t tensor.Type, limit int) *array.Array {
	shape := append([]int(nil), t.Shape()...)
	for d, n := range shape {
		if n == tensor.Unknown {
			shape[d] = trialSize
		}
	}
	if t.IsCSR() || volume(shape) > trialBytes/4 {
		return nil
	}
	a := array.New(t.DType(), shape...)
	for i := range a.Len() {
		switch {
		case t.DType().IsFloat():
			a.SetFloat(i, r.NormFloat64())
		case limit > 0:
			a.SetFloat(i, float64(r.IntN(limit)))
		default:
			a.SetFloat(i, 1)
		}
	}
	return a
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		if d != 0 && n > trialBytes/d {
			return trialBytes
		}
		n *= d
	}
	return n
}

// indexLimits returns, for each input that indexes a tensor, how many indexes there are at most, and 0 for
// others.
func indexLimits(g *fgraph.FunctionGraph) []int {
	limits := make([]int, len(g.Inputs()))
	number := make(map[*variable]int)
	for i, v := range g.Inputs() {
		number[v] = i
	}
	for a := range g.Ordered() {
		if _, ok := a.Op().(tensor.AdvancedSubtensorOp); !ok {
			continue
		}
		size := typeOf(a.Inputs()[0]).Dim(0)
		todo, seen := []*variable{a.Inputs()[1]}, make(map[*variable]bool)
		for len(todo) > 0 {
			v := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[v] || typeOf(v).DType().IsFloat() {
				continue
			}
			seen[v] = true
			if i, ok := number[v]; ok && size > 0 && (limits[i] == 0 || size < limits[i]) {
				limits[i] = size
			}
			if v.Owner() != nil {
				todo = append(todo, v.Owner().Inputs()...)
			}
		}
	}
	return limits
}

// errors returns the error of each output with products in the precisions that choose gives them.
func (t *trial) errors(ctx context.Context, choose func(*noisyProduct) kernel.Precision) ([]float64, error) {
	if t.failed {
		return nil, errNoTrial
	}
	var d differences
	for draw := range t.exact {
		got, err := t.outputs(ctx, draw, choose)
		if err != nil {
			t.failed = true
			return nil, err
		}
		want := make([]*array.Array, len(got))
		for i, v := range t.g.Outputs() {
			want[i] = t.value(t.exact[draw], counted(v))
		}
		d.add(got, want)
	}
	return d.relative(), nil
}

// counted returns what is compared in place of an output: the argument of a softmax, since probabilities
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

// value returns the value of a variable.
func (t *trial) value(values []*array.Array, v *variable) *array.Array {
	if c := tensor.ConstantOf(v); c != nil {
		return c
	}
	return values[v.ID()]
}

// outputs computes the outputs for a draw. It remembers what all variables are with float32s, and
// computes again only what depends on a product of integers.
func (t *trial) outputs(ctx context.Context, draw int, choose func(*noisyProduct) kernel.Precision) ([]*array.Array, error) {
	exact := t.exact[draw]
	changed := make([]*array.Array, len(exact)) // by variable
	bytes := 0
	for n, a := range t.order {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		in, other := make([]*array.Array, len(a.Inputs())), false
		was := make([]*array.Array, len(in))
		for i, v := range a.Inputs() {
			was[i] = t.value(exact, v)
			if in[i] = was[i]; !v.IsConstant() && changed[v.ID()] != nil {
				in[i], other = changed[v.ID()], true
			}
			if in[i] == nil || was[i] == nil {
				return nil, errNoTrial
			}
		}
		if exact[a.Outputs()[0].ID()] == nil {
			size, err := t.compute(a, t.kernels[n], was, exact)
			if bytes += size; err != nil || bytes > trialBytes {
				return nil, errors.Join(err, errNoTrial)
			}
		}
		k := t.kernels[n]
		if p := t.product[n]; p != nil && choose(p) != kernel.Float32 {
			other = true
			to := choose(p)
			if k = t.integer[p][to]; k == nil {
				var err error
				if k, err = t.compile(a, p, to); err != nil {
					return nil, err
				}
				t.integer[p][to] = k
			}
		}
		if other {
			if _, err := t.compute(a, k, in, changed); err != nil {
				return nil, err
			}
		}
	}
	outs := make([]*array.Array, len(t.g.Outputs()))
	for i, v := range t.g.Outputs() {
		v := counted(v)
		if outs[i] = t.value(changed, v); outs[i] == nil {
			outs[i] = t.value(exact, v)
		}
	}
	return outs, nil
}

// compute runs a kernel and keeps its outputs. It returns how many bytes they take.
func (t *trial) compute(a *apply, k tensor.Kernel, in, values []*array.Array) (bytes int, err error) {
	ws := array.Workspace{MaxBytes: trialBytes}
	out := make([]*array.Array, len(a.Outputs()))
	for i := range out {
		out[i] = new(array.Array)
	}
	if err := k(&ws, in, out); err != nil {
		return 0, err
	}
	for i, v := range a.Outputs() {
		values[v.ID()] = out[i]
		if !out[i].IsCSR() {
			bytes += out[i].Len() * out[i].DType().Size()
		}
	}
	return bytes, nil
}
