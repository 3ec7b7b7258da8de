package models

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A drawer draws the variables of one expression. What an operator can do with few shapes is drawn for
// it: weights that fit an image, factors for each of its channels, axes that it has.
type drawer struct {
	*domain
	tape   *rulecheck.Tape
	like   ir.Type // of most names
	op     string  // what is drawn for
	inputs []*fgraph.Variable
}

func (d *domain) Begin(t *rulecheck.Tape) rulecheck.Drawer {
	return &drawer{domain: d, tape: t, like: mustType(shapes[t.Draw(len(shapes))])}
}

func (d *drawer) Place(op string, inputs []*fgraph.Variable) { d.op, d.inputs = op, inputs }

// Argument makes an input or a constant.
func (d *drawer) Argument(name string, asked bool) (*fgraph.Variable, error) {
	if d.tape.Draw(8) < 7 && len(d.inputs) > 0 {
		if v, err := d.fitting(asked); v != nil || err != nil {
			return v, err
		}
	}
	t := d.like
	if d.tape.Draw(4) == 3 {
		t = mustType(shapes[d.tape.Draw(len(shapes))])
	}
	if _, known := t.Numbers(); known && d.tape.Draw(4) == 3 && asked {
		return d.constant(t, false)
	}
	return fgraph.NewInput(t, name), nil
}

// listed are sizes, axes and the like that are drawn where an operator asks for some.
var listed = [][]int64{
	{0}, {1}, {-1}, {0, 1}, {1, 2}, {-1, -2}, {2, 3}, {2}, {-1, 0}, {3, 2}, {6, -1}, {0, -1}, {2, 3}, {1, 2, 3}, {2, 3, 4}, {0, 0, -1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1},
	{4}, {3}, {-2}, {1, 3, 4, 4}, {1 << 62}, {}, {2, 1, 3}, {0, 0}, {0, 0, 0, 0}, {0, 0, 1, 1, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0},
}

// fitting makes what the next input of an operator has to be for most of its attributes, or nil.
func (d *drawer) fitting(asked bool) (*fgraph.Variable, error) {
	k := len(d.inputs)
	x := ir.TypeOf(d.inputs[0])
	dims, ranked := x.Shape()
	if !ranked {
		return nil, nil
	}
	rank := len(dims)
	float := func(dims ...int64) (*fgraph.Variable, error) {
		return d.constant(ir.NewType(onnx.Float, lists.Map(dims, ir.Known)...), d.op == "BatchNormalization" && k == 4)
	}
	channels, ok := int64(0), false
	if rank > 1 {
		channels, ok = dims[1].Number()
	}
	switch {
	case d.lists(k):
		return d.list(dims)
	case (d.op == "Conv" || d.op == "ConvTranspose") && k == 1 && ok && rank == 4:
		kinds := [][]int64{{4, channels, 3, 3}, {4, channels, 1, 1}, {channels, 1, 3, 3}, {channels, 4, 2, 2}}
		return float(kinds[d.tape.Draw(len(kinds))]...)
	case (d.op == "Conv" || d.op == "ConvTranspose") && k == 2:
		w, known := ir.TypeOf(d.inputs[1]).Numbers()
		if known && len(w) > 1 {
			return float(w[d.tape.Draw(2)])
		}
	case (d.op == "BatchNormalization" || d.op == "InstanceNormalization") && ok:
		return float(channels)
	case (d.op == "LayerNormalization" || d.op == "RMSNormalization") && rank > 0:
		if n, ok := dims[rank-1].Number(); ok {
			return float(n)
		}
	case (d.op == "MatMul" || d.op == "Gemm") && k == 1 && rank > 1:
		if n, ok := dims[rank-1].Number(); ok && asked {
			return float([][]int64{{n, 4}, {4, n}, {n, n}}[d.tape.Draw(3)]...)
		}
	case d.op == "Gemm" && k == 2:
		return float([][]int64{{4}, {}, {1, 4}, {2, 4}, {1}}[d.tape.Draw(5)]...)
	case d.op == "Clip", d.op == "Pad" && k == 2:
		if d.tape.Draw(3) == 0 {
			return ir.Filled(0, x.Elem())
		}
		return float()
	case asked && rank > 0 && (d.op == "Add" || d.op == "Sub" || d.op == "Mul" || d.op == "Div" || d.op == "Max" || d.op == "Min" || d.op == "Pow"):
		return d.operand(dims, channels, ok)
	}
	return nil, nil
}

// lists reports whether an input is a list of integers.
func (d *drawer) lists(k int) bool {
	switch d.op {
	case "Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze", "Split", "TopK":
		return k == 1
	case "Slice":
		return true
	case "Pad":
		return k == 1 || k == 3
	}
	return strings.HasPrefix(d.op, "Reduce") && k == 1
}

// list makes a list of integers: one of listed, or one that follows from the sizes of the first input.
func (d *drawer) list(dims []ir.Dim) (*fgraph.Variable, error) {
	if d.tape.Draw(4) == 0 {
		return ir.Int64s(listed[d.tape.Draw(len(listed))]...), nil
	}
	kinds := d.kinds(dims)
	return ir.Int64s(kinds[d.tape.Draw(len(kinds))]...), nil
}

// kinds returns lists that make sense for an operator and the sizes of its first input.
func (d *drawer) kinds(dims []ir.Dim) [][]int64 {
	n := len(dims)
	all := func(v int64) []int64 { return slices.Repeat([]int64{v}, n) }
	sizes, axes := all(-1), all(0)
	for i, dim := range dims {
		axes[i] = int64(i)
		if k, ok := dim.Number(); ok {
			sizes[i] = k
		}
	}
	switch d.op {
	case "Reshape", "Expand":
		turned := slices.Clone(sizes)
		slices.Reverse(turned)
		return [][]int64{sizes, turned, {-1}, {0, -1}, {-1, 0}, all(0), append(all(0), 1), slices.Concat([]int64{1}, sizes), {6, 4}, {4, -1}, all(1)}
	case "Pad":
		border := slices.Concat(all(0), all(0))
		for i := 2; i < n; i++ {
			border[i], border[n+i] = 1, 1
		}
		one := slices.Concat(all(0), all(0))
		if n > 0 {
			one[n-1] = 1
		}
		return [][]int64{border, one, slices.Concat(all(0), all(0)), slices.Concat(all(1), all(0)), slices.Concat(all(-1), all(1)), axes}
	case "Slice":
		return [][]int64{{0}, {1}, {-1}, {-2}, {2}, {1 << 40}, axes, all(0), all(1), sizes, all(1 << 40)}
	}
	return [][]int64{{0}, {1}, {-1}, {0, 1}, axes, all(1), sizes, {int64(n)}}
}

// operand makes a constant that is broadcast in one of the ways that occur: one number, one for each
// channel or column, or one for each element.
func (d *drawer) operand(dims []ir.Dim, channels int64, known bool) (*fgraph.Variable, error) {
	last, ok := dims[len(dims)-1].Number()
	kinds := [][]int64{{}, {1}}
	if ok {
		kinds = append(kinds, []int64{last}, []int64{1, last})
	}
	if known && len(dims) == 4 {
		kinds = append(kinds, []int64{channels, 1, 1}, []int64{1, channels, 1, 1}, []int64{channels, 1, 1})
	}
	shape := kinds[d.tape.Draw(len(kinds))]
	list := lists.Map(shape, ir.Known)
	elem := ir.TypeOf(d.inputs[0]).Elem()
	return d.constant(ir.NewType(elem, list...), false)
}

// constant makes a constant whose values follow from a choice.
func (d *drawer) constant(t ir.Type, positive bool) (*fgraph.Variable, error) {
	rng := rand.New(rand.NewPCG(uint64(d.tape.Draw(1<<10)), 1))
	a, ok := random(t, false, rng).(*array.Array)
	if !ok {
		return nil, rulecheck.ErrUnfit
	}
	for i := range a.Len() {
		if positive {
			a.SetFloat(i, math.Abs(a.Float(i))+0.5)
		}
	}
	x, err := lower.TensorOf("", a, t.Elem())
	if err != nil {
		return nil, err
	}
	return ir.Constant(ir.NewValue(x, ""), ""), nil
}

// literals are the shapes of constants that are a number.
var literals = [][]int64{{}, {1}, {3}, {1, 1}, {2, 1}, {1, 3, 1, 1}, {2, 3}, {1, 1, 1, 1, 1}}

// Literal makes a constant all of whose elements are a number.
func (d *drawer) Literal(l pattern.Literal) (*fgraph.Variable, error) {
	elem := d.like.Elem()
	if len(d.inputs) > 0 && ir.TypeOf(d.inputs[0]).IsTensor() && d.op != "Where" {
		elem = ir.TypeOf(d.inputs[0]).Elem()
	}
	if d.lists(len(d.inputs)) {
		elem = onnx.Int64
	}
	if l.Type() != "" {
		elem = mustType(l.Type() + "[]").Elem()
	}
	shape := literals[d.tape.Draw(len(literals))]
	if d.op == "Clip" {
		shape = nil
	}
	v, err := ir.Filled(l.Float(), elem, shape...)
	if err != nil || !d.vocabulary.Equal(l, v) {
		return nil, rulecheck.ErrUnfit
	}
	return v, nil
}

func (d *drawer) Indexes(pattern.Operator, int) int { return -1 }

func (d *drawer) Rest(name string, _ bool) *fgraph.Variable {
	if v, err := d.Argument(name, true); err == nil {
		return v
	}
	return fgraph.NewInput(d.like, name)
}
