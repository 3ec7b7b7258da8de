package component

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/index"
)

// TestExpress computes the formulas of all components step by step, and compares what comes out with
// Propagate.
func TestExpress(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		f := new(Formula)
		a := Operands{X: f.Input(k.in.Rows, k.in.Cols), Rows: k.rows, Pre: k.pre}
		y := f.Express(k.c, a)
		mode, modal := k.c.(TestModer)
		if modal && !mode.TestMode() && k.c.Properties().Has(Random) {
			if len(f.Faults()) != 1 || f.Faults()[0].Component != k.c {
				t.Errorf("a component that draws random numbers has the faults %v", f.Faults())
			}
			return
		}
		if len(f.Faults()) > 0 {
			t.Fatal(f.Faults()[0].Reason)
		}
		want, _ := k.propagate(t, k.c, k.in)
		if got := computeSteps(t, f, y, k.in); !near(want, got, 1e-5) {
			t.Errorf("the formula gives\n%v, want\n%v", got.Data, want.Data)
		}
	})
}

// TestExpressProducts does the same for derived components.
func TestExpressProducts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 9))
	c := newComponent(t, "TdnnComponent", "input-dim=4 output-dim=6 time-offsets=-1,0,2", rnd)
	in, out := make([]index.Index, 12), make([]index.Index, 7)
	for i := range in {
		in[i].T = int32(i) - 2
	}
	for i := range out {
		out[i].T = int32(i)
	}
	pre, err := c.(NonSimple).PrecomputeIndexes(in, out, false)
	if err != nil {
		t.Fatal(err)
	}
	bn := newComponent(t, "BatchNormComponent", "dim=6 test-mode=true epsilon=0.5", rnd)
	product := func(list ...Component) *Product {
		p, _ := NewProduct(c)
		for _, next := range list {
			var ok bool
			if p, ok = p.Follow(next); !ok {
				t.Fatalf("%s can't follow", next.Type())
			}
		}
		return p
	}
	relu := newComponent(t, "RectifiedLinearComponent", "dim=6", rnd)
	norm := newComponent(t, "NormalizeComponent", "dim=6", rnd)
	onto, ok := product(relu, bn, norm).Onto(0.66)
	if !ok {
		t.Fatal("the product can't be added to anything")
	}
	first, firstPre := product(bn).Splice([]Splice{{Block: 1, Cols: 4, Rows: []int32{0, 1, 2, 3, 4, 5, 6}}}, 12, 4, true, false)
	last, lastPre := product(relu, bn).Splice([]Splice{{Block: 2, Cols: 4, Rows: []int32{5, 1, 2, 3, 4, 5, 11}}}, 12, 4, false, true)
	masked, _ := NewMaskedReLU(relu, 0, 0)
	for name, k := range map[string]struct {
		c   Component
		pre Precomputed
		y   bool
	}{
		"plain": {product(), pre, false}, "all": {product(relu, bn, norm), pre, false}, "residual": {onto, pre, true},
		"no residual": {onto, pre, false}, "first": {first, firstPre, false}, "last": {last, lastPre, true},
		"overwriting": {NewOverwriting(c), pre, false}, "masked": {masked, nil, false},
	} {
		x, y := randomMatrix(rnd, 12, k.c.InputDim()), kernel.New(7, 6)
		if k.c == masked {
			x = randomMatrix(rnd, 7, 6)
		}
		f := new(Formula)
		a := Operands{X: f.Input(x.Rows, x.Cols), Rows: 7, Pre: k.pre}
		inputs := []kernel.Matrix{x}
		if k.y {
			y = randomMatrix(rnd, 7, 6)
			a.Y = f.Input(7, 6)
			inputs = append(inputs, kernel.Clone(y))
		}
		result := f.Express(k.c, a)
		if len(f.Faults()) > 0 {
			t.Errorf("%s: %s", name, f.Faults()[0].Reason)
			continue
		}
		if _, err := Propagate(k.c, new(Workspace), ForwardPass{Pre: k.pre}, x, y); err != nil {
			t.Fatal(err)
		}
		if got := computeSteps(t, f, result, inputs...); !near(y, got, 1e-5) {
			t.Errorf("%s: the formula gives\n%v, want\n%v", name, got.Data, y.Data)
		}
	}
	quantized, ok := product(relu).Quantized(kernel.Int8)
	if !ok {
		t.Fatal("the product can't be quantized")
	}
	f := new(Formula)
	f.Express(quantized, Operands{X: f.Input(12, 4), Rows: 7, Pre: pre})
	if len(f.Faults()) != 1 || f.Faults()[0].Component != c || !strings.Contains(f.Faults()[0].Reason, "+int8") {
		t.Errorf("a quantized product has the faults %v", f.Faults())
	}
	f = new(Formula)
	f.Express(c, Operands{X: f.Input(3, 4), Rows: 7, Pre: pre})
	if len(f.Faults()) != 1 {
		t.Errorf("indexes for other rows: %v", f.Faults())
	}
}

// TestExpressConvolution: with rows in order, a convolution is one step, also with zeros around it and
// with more input than it sees.
func TestExpressConvolution(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for _, config := range []string{
		"height-in=5 height-out=5 time-offsets=-1,0,1 height-offsets=-1,0,1 required-time-offsets=0",
		"height-in=7 height-out=3 height-subsample-out=2 time-offsets=-4,0 height-offsets=1,3 required-time-offsets=0",
		"height-in=6 height-out=2 height-subsample-out=2 time-offsets=0,2,4 height-offsets=0,1",
	} {
		c := newComponent(t, "TimeHeightConvolutionComponent", "num-filters-in=2 num-filters-out=3 bias-stddev=1 "+config, rnd)
		in, out := make([]index.Index, 12), make([]index.Index, 4)
		for i := range in {
			in[i].T = int32(i) - 1
		}
		for i := range out {
			out[i].T = int32(2*i) - 1
		}
		pre, err := c.(NonSimple).PrecomputeIndexes(in, out, false)
		if err != nil {
			t.Fatal(err)
		}
		x, want := randomMatrix(rnd, 12, c.InputDim()), kernel.New(4, c.OutputDim())
		if _, err := Propagate(c, new(Workspace), ForwardPass{Pre: pre}, x, want); err != nil {
			t.Fatal(err)
		}
		f := new(Formula)
		y := f.Express(c, Operands{X: f.Input(x.Rows, x.Cols), Rows: 4, Pre: pre})
		if !slices.ContainsFunc(f.Steps(), func(s Step) bool { return s.Op == OpConvolve }) {
			t.Errorf("%s is no convolution", config)
		}
		if got := computeSteps(t, f, y, x); !near(want, got, 1e-5) {
			t.Errorf("%s: the formula gives\n%v, want\n%v", config, got.Data, want.Data)
		}
	}
}

// TestExpressBounds: formulas that would take too much memory are faults.
func TestExpressBounds(t *testing.T) {
	longtest.Only(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	blocks := newComponent(t, "BlockAffineComponent", "input-dim=150000 output-dim=150000 num-blocks=150000", rnd)
	f := new(Formula)
	f.Express(blocks, Operands{X: f.Input(1, 150000), Rows: 1})
	if len(f.Faults()) != 1 || f.Faults()[0].Component != blocks || !strings.Contains(f.Faults()[0].Reason, "steps") {
		t.Errorf("150,000 blocks have the faults %v", f.Faults())
	}
	f = new(Formula)
	sets := make([][]int32, 1<<15)
	sets[0] = make([]int32, 1<<15)
	if y := f.SumSets(f.Input(1, 1), 0, sets); y != 0 || len(f.Faults()) != 1 {
		t.Errorf("2³⁰ terms are written down as %d", y)
	}
}

// An evaluated is the value of a step.
type evaluated struct {
	dims []int
	data []float64
}

// at returns the element with the given numbers, repeating sizes of 1.
func (v *evaluated) at(index []int) float64 {
	n := 0
	for i, k := range index {
		if v.dims[i] == 1 {
			k = 0
		}
		n = n*v.dims[i] + k
	}
	return v.data[n]
}

// each makes an array, element by element.
func each(dims []int, f func(index []int) float64) *evaluated {
	v := &evaluated{dims: dims}
	index := make([]int, len(dims))
	for n := 0; !slices.Contains(dims, 0); n++ {
		v.data = append(v.data, f(index))
		i := len(dims) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < dims[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			break
		}
	}
	return v
}

// computeSteps computes a formula for one sequence, in double precision.
func computeSteps(t *testing.T, f *Formula, result Term, inputs ...kernel.Matrix) kernel.Matrix {
	t.Helper()
	var values []*evaluated
	for _, s := range f.Steps() {
		args := make([]*evaluated, len(s.Args))
		for i, a := range s.Args {
			args[i] = values[a-1]
		}
		if s.Op == OpInput {
			m := inputs[0]
			inputs = inputs[1:]
			values = append(values, each(s.Dims, func(i []int) float64 { return float64(kernel.Row(m, i[0])[i[1]]) }))
			continue
		}
		values = append(values, computeStep(t, s, args))
	}
	v := values[result-1]
	if len(v.dims) != 2 {
		t.Fatalf("the result has the sizes %v", v.dims)
	}
	m := kernel.New(v.dims[0], v.dims[1])
	for i, x := range v.data {
		m.Data[i] = float32(x)
	}
	return m
}

func computeStep(t *testing.T, s Step, args []*evaluated) *evaluated {
	t.Helper()
	functions := map[FormulaOp]func(float64) float64{
		OpSigmoid: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, OpTanh: math.Tanh, OpLog: math.Log, OpSqrt: math.Sqrt,
		OpReLU: func(x float64) float64 { return max(x, 0) }, OpReciprocal: func(x float64) float64 { return 1 / x },
	}
	pairs := map[FormulaOp]func(x, y float64) float64{
		OpAdd: func(x, y float64) float64 { return x + y }, OpSubtract: func(x, y float64) float64 { return x - y },
		OpMultiply: func(x, y float64) float64 { return x * y }, OpDivide: func(x, y float64) float64 { return x / y },
		OpMaximum: func(x, y float64) float64 { return max(x, y) },
	}
	// along calls f with the elements along the axis, at a place of the other axes.
	along := func(index []int, axis int, f func(float64)) {
		index = slices.Clone(index)
		for index[axis] = range args[0].dims[axis] {
			f(args[0].at(index))
		}
	}
	return each(s.Dims, func(index []int) float64 {
		switch s.Op {
		case OpConstant:
			return (&evaluated{s.Dims, doubles(s.Values)}).at(index)
		case OpProduct:
			sum := 0.0
			from, last := slices.Clone(index), len(index)-1
			for k, w := range kernel.Row(s.W, index[last]) {
				from[last] = k
				sum += args[0].at(from) * float64(w)
			}
			return sum
		case OpConvolve:
			sum, w, x := float64(s.Values[index[0]]), s.Window, args[0]
			for k, factor := range kernel.Row(s.W, index[0]) {
				place, channel := k/x.dims[0], k%x.dims[0]
				at := []int{channel, place / w.Size[1], place % w.Size[1]}
				for axis := range 2 {
					at[axis+1] = at[axis+1]*w.Dilation[axis] + index[axis+1]*w.Stride[axis] - w.Before[axis]
				}
				if at[1] >= 0 && at[1] < x.dims[1] && at[2] >= 0 && at[2] < x.dims[2] {
					sum += float64(factor) * x.at(at)
				}
			}
			return sum
		case OpSlice, OpTake:
			from := slices.Clone(index)
			if s.Op == OpSlice {
				from[s.Axis] += int(s.Ints[0])
			} else if from[s.Axis] = int(s.Ints[index[s.Axis]]); from[s.Axis] < 0 {
				return 0
			}
			return args[0].at(from)
		case OpConcat:
			from := slices.Clone(index)
			for _, a := range args {
				if from[s.Axis] < a.dims[s.Axis] {
					return a.at(from)
				}
				from[s.Axis] -= a.dims[s.Axis]
			}
		case OpReshape:
			n := 0
			for i, k := range index {
				n = n*s.Dims[i] + k
			}
			return args[0].data[n]
		case OpTranspose:
			from := make([]int, len(index))
			for i, axis := range s.Ints {
				from[axis] = index[i]
			}
			return args[0].at(from)
		case OpSum, OpMean, OpLargest, OpBatchMean:
			sum, most := 0.0, math.Inf(-1)
			along(index, s.Axis, func(x float64) { sum, most = sum+x, max(most, x) })
			switch s.Op {
			case OpLargest:
				return most
			case OpSum:
				return sum
			}
			return sum / float64(args[0].dims[s.Axis])
		case OpSoftmax, OpLogSoftmax:
			sum := 0.0
			along(index, s.Axis, func(x float64) { sum += math.Exp(x) })
			if s.Op == OpSoftmax {
				return math.Exp(args[0].at(index)) / sum
			}
			return args[0].at(index) - math.Log(sum)
		}
		if f := functions[s.Op]; f != nil {
			return f(args[0].at(index))
		}
		if f := pairs[s.Op]; f != nil {
			return f(args[0].at(index), args[1].at(index))
		}
		t.Fatalf("there is no operation %q", s.Op)
		return 0
	})
}
