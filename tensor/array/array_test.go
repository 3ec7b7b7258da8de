package array_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/nnopt/nnopt/tensor/array"
)

func Example() {
	a := Of([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
	b := a.Transpose(1, 0) // shares the memory of a
	fmt.Println(b, b.Shape())
	// Output: [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]] [3 2]
}

// apply runs one operation, with broadcasting.
func apply(t *testing.T, op Opcode, in ...*Array) *Array {
	t.Helper()
	types, shape := make([]DType, len(in)), make([]int, in[0].NDim())
	values := make([]int, len(in))
	for i, a := range in {
		types[i], values[i] = a.DType(), i
		for d, n := range a.Shape() {
			if i == 0 || n != 1 {
				shape[d] = n
			}
		}
	}
	p := NewProgram(types...)
	p.Return(p.Append(op, values...))
	out := New(p.OutputType(0), shape...)
	new(Workspace).Map(p, []*Array{out}, in)
	return out
}

func TestOpsOnSpecialValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		op   Opcode
		a, b float64
		want float64
	}{
		{Add, 1, 2, 3}, {Sub, inf, inf, nan}, {Mul, 0, nan, nan}, {Mul, 0, inf, nan}, {TrueDiv, 1, 0, inf}, {TrueDiv, 0, 0, nan},
		{IntDiv, -7, 2, -4}, {IntDiv, 1, 0.1, 9}, {IntDiv, -2.5, 0.1, -25}, {IntDiv, -1, inf, -1}, {IntDiv, inf, 2, nan}, {IntDiv, 3, 0, inf}, {IntDiv, -0.5, -1, 0}, {Mod, -7, 2, 1}, {Mod, 7, -2, -1}, {Pow, 0, 0, 1}, {Pow, nan, 0, 1}, {Pow, 2, -1, 0.5},
		{Maximum, 1, nan, nan}, {Maximum, nan, 1, nan}, {Minimum, 1, nan, nan}, {Minimum, -inf, 2, -inf},
		{Second, nan, 5, 5}, {Arctan2, 1, -1, 3 * math.Pi / 4},
		{LogAddExp, 1000, 1000, 1000 + math.Ln2}, {LogAddExp, -inf, -inf, -inf}, {LogAddExp, inf, inf, inf}, {LogAddExp, -inf, 3, 3}, {LogAddExp, nan, inf, nan},
	} {
		if got := apply(t, c.op, Scalar(c.a), Scalar(c.b)).Float(0); MaxRelDiff(Scalar(got), Scalar(c.want)) > 1e-15 {
			t.Errorf("%v(%v, %v) = %v, want %v", c.op, c.a, c.b, got, c.want)
		}
	}
	for _, c := range []struct {
		op      Opcode
		x, want float64
	}{
		{Abs, math.Copysign(0, -1), 0}, {Abs, -inf, inf}, {Abs, nan, nan}, {Sgn, -3, -1}, {Sgn, nan, nan}, {Sgn, 0, 0}, {Inv, 0, inf},
		{Sigmoid, -1000, 0}, {Sigmoid, 1000, 1}, {Softplus, 1000, 1000}, {Softplus, -1000, 0}, {Softplus, -inf, 0}, {Softplus, nan, nan},
		{Round, 2.5, 2}, {Round, -0.5, 0}, {Trunc, -1.5, -1}, {Log, 0, -inf}, {Sqrt, -1, nan}, {Erfc, inf, 0}, {Expm1, 1e-20, 1e-20},
	} {
		if got := apply(t, c.op, Scalar(c.x)).Float(0); MaxRelDiff(Scalar(got), Scalar(c.want)) > 1e-15 {
			t.Errorf("%v(%v) = %v, want %v", c.op, c.x, got, c.want)
		}
	}
	for x, want := range map[float64][2]bool{1: {false, false}, nan: {true, false}, inf: {false, true}, -inf: {false, true}} {
		got := [2]bool{apply(t, IsNan, Scalar(x)).Float(0) != 0, apply(t, IsInf, Scalar(x)).Float(0) != 0}
		if got != want {
			t.Errorf("isnan, isinf of %v: %v", x, got)
		}
	}
}

func TestIntegerOps(t *testing.T) {
	for _, c := range []struct {
		op      Opcode
		a, b, w int64
	}{
		{IntDiv, 7, 2, 3}, {IntDiv, -7, 2, -4}, {IntDiv, 7, -2, -4}, {IntDiv, 1, 0, 0}, {IntDiv, math.MinInt64, -1, math.MinInt64},
		{Mod, -7, 2, 1}, {Mod, 7, -2, -1}, {Mod, 1, 0, 0}, {Pow, 3, 4, 81}, {Pow, -1, -3, -1}, {Pow, 2, -1, 0}, {Pow, 0, 0, 1},
		{And, 6, 3, 2}, {Or, 6, 3, 7}, {Xor, 6, 3, 5}, {Maximum, 1, 2, 2},
	} {
		if got := apply(t, c.op, Scalar(c.a), Scalar(c.b)); got.DType() != Int64 || got.Int(0) != c.w {
			t.Errorf("%v(%d, %d) = %v, want %d", c.op, c.a, c.b, got, c.w)
		}
	}
	if got := apply(t, TrueDiv, Scalar(int64(3)), Scalar(int64(4))); got.DType() != Float64 || got.Float(0) != 0.75 {
		t.Errorf("3/4 = %v", got)
	}
	if got := apply(t, Add, Scalar(true), Scalar(true)); got.DType() != Int64 || got.Int(0) != 2 {
		t.Errorf("True + True = %v", got)
	}
}

// A remainder of floats that is zero has the sign of the divisor. The values are Python's.
func TestSignOfZeroRemainder(t *testing.T) {
	zero, minus, inf := 0.0, math.Copysign(0, -1), math.Inf(1)
	for _, c := range [][3]float64{
		{-1, 1, zero}, {1, -1, minus}, {5, -2.5, minus}, {-5, 2.5, zero}, {minus, 1, zero}, {zero, -1, minus},
		{1, 1, zero}, {-1, -1, minus}, {minus, inf, zero}, {zero, -inf, minus}, {-1, inf, inf}, {1, -inf, -inf},
	} {
		for _, d := range []DType{Float32, Float64} {
			got := apply(t, Mod, Full(d, c[0]), Full(d, c[1])).Float(0)
			if math.Float64bits(got) != math.Float64bits(c[2]) {
				t.Errorf("%v %v %% %v is %v, want %v", d, c[0], c[1], got, c[2])
			}
		}
	}
}

// TestEveryOp finds each operation by its name, and applies it to each type that it is defined for.
func TestEveryOp(t *testing.T) {
	for op := range NumOpcodes {
		if o, ok := ParseOpcode(op.String()); !ok || o != op {
			t.Errorf("%v is not found by its name", op)
		}
		if op == Cast {
			continue
		}
		for _, d := range DTypes() {
			n := max(op.NumArgs(), 1)
			if op.NumArgs() < 0 {
				n = 3
			}
			in := make([]*Array, n)
			types := make([]DType, n)
			for i := range in {
				in[i], types[i] = Full(d, 1, 2, 3), d
			}
			_, result, ok := op.Types(types...)
			if !ok {
				continue
			}
			if got := apply(t, op, in...); got.DType() != result {
				t.Errorf("%v of %v: %v, want %v", op, d, got.DType(), result)
			}
		}
	}
}

// TestMapLayouts compares the loop with a plain one on transposed, broadcast, sliced and reversed
// arrays whose sizes are near that of a block.
func TestMapLayouts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		nd := rng.IntN(4)
		shape := make([]int, nd)
		for d := range shape {
			shape[d] = []int{1, 2, 3, 7, 40}[rng.IntN(5)]
		}
		a, b := randomView(rng, shape), randomView(rng, shape)
		p := NewProgram(Float64, Float64)
		sum := p.Append(Add, 0, 1)
		p.Return(p.Append(Mul, sum, 0, sum), sum)
		out := []*Array{New(Float64, shape...), New(Float64, shape...)}
		new(Workspace).Map(p, out, []*Array{a, b})
		full, err := a.BroadcastTo(shape...)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := b.BroadcastTo(shape...)
		for i := range full.Len() {
			x, y := full.Float(i), other.Float(i)
			if got := out[0].Float(i); got != (x+y)*x*(x+y) {
				t.Fatalf("shape %v: element %d is %v, want %v", shape, i, got, (x+y)*x*(x+y))
			}
			if got := out[1].Float(i); got != x+y {
				t.Fatalf("shape %v: second output", shape)
			}
		}
	}
}

// randomView returns a view that broadcasts to the shape, with a random memory layout.
func randomView(rng *rand.Rand, shape []int) *Array {
	small := make([]int, len(shape))
	order := rng.Perm(len(shape))
	for d, n := range shape {
		small[order[d]] = []int{n, n, 1, 2 * n}[rng.IntN(4)]
	}
	a := New(Float64, small...)
	for i := range a.Len() {
		a.SetFloat(i, rng.NormFloat64())
	}
	v := a.Transpose(order...)
	ranges := make([]Range, len(shape))
	for d, n := range v.Shape() {
		ranges[d] = Range{Start: 0, Step: 1, Count: min(n, shape[d])}
		if n == 2*shape[d] {
			ranges[d].Step = 2
		}
		if rng.IntN(3) == 0 {
			r := ranges[d]
			ranges[d] = Range{Start: r.Start + (r.Count-1)*r.Step, Step: -r.Step, Count: r.Count}
		}
	}
	out := new(Array)
	v.RangeTo(out, ranges...)
	return out
}

// TestMapInPlace uses an input as output, even if the program reads it again later.
func TestMapInPlace(t *testing.T) {
	p := NewProgram(Float64)
	one := p.Constant(Scalar(1.0))
	next := p.Append(Add, 0, one)
	p.Return(next, p.Append(Add, p.Append(Cos, next), 0))
	x := New(Float64, 1000)
	for i := range x.Len() {
		x.SetFloat(i, float64(i))
	}
	second := New(Float64, 1000)
	new(Workspace).Map(p, []*Array{x, second}, []*Array{x})
	for i := range x.Len() {
		if v := float64(i); x.Float(i) != v+1 || second.Float(i) != math.Cos(v+1)+v {
			t.Fatalf("element %d: %v, %v", i, x.Float(i), second.Float(i))
		}
	}
}

// TestMapOverElements: an output may be an input that is another view of the same elements, of one block or of many.
func TestMapOverElements(t *testing.T) {
	p := NewProgram(Float64)
	next := p.Append(Add, 0, p.Constant(Scalar(1.0)))
	p.Return(next, p.Append(Add, p.Append(Cos, next), 0))
	for _, n := range []int{3, 1000} {
		buf := make([]float64, n+1)
		part, whole := Of(buf[1:], n), new(Array)
		Of(buf, n+1).RangeTo(whole, Range{Start: 1, Step: 1, Count: n})
		out := []*Array{part, New(Float64, n)}
		new(Workspace).Map(p, out, []*Array{whole})
		for i := range n {
			if x, second := part.Float(i), out[1].Float(i); x != 1 || second != math.Cos(1) {
				t.Fatalf("element %d of %d: %v, %v", i, n, x, second)
			}
		}
	}
}

func TestReduce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var ws Workspace
	for range 300 {
		nd := rng.IntN(4)
		shape := make([]int, nd)
		for d := range shape {
			shape[d] = []int{1, 2, 3, 20}[rng.IntN(4)]
		}
		a := randomView(rng, shape)
		axes := Axes(rng.IntN(1 << nd))
		var outShape []int
		for d, n := range a.Shape() {
			if !axes.Has(d) {
				outShape = append(outShape, n)
			}
		}
		for r := range NumReductions {
			out, want := New(r.Result(Float64), outShape...), make([]float64, 0)
			if err := ws.Reduce(r, out, a, axes); err != nil {
				t.Fatal(err)
			}
			for range out.Len() {
				want = append(want, map[Reduction]float64{Prod: 1, Max: math.Inf(-1), Min: math.Inf(1), All: 1, LogSumExp: math.Inf(-1)}[r])
			}
			for i := range a.Len() {
				k, step, rest := 0, 1, i
				for d := nd - 1; d >= 0; d-- {
					at := rest % a.Dim(d)
					rest /= a.Dim(d)
					if !axes.Has(d) {
						k += at * step
						step *= a.Dim(d)
					}
				}
				x := a.Float(i)
				switch r {
				case Sum:
					want[k] += x
				case Prod:
					want[k] *= x
				case Max:
					want[k] = max(want[k], x)
				case Min:
					want[k] = min(want[k], x)
				case All:
				case Any:
					want[k] = 1
				case LogSumExp:
					want[k] = math.Log(math.Exp(want[k]) + math.Exp(x))
				}
			}
			for k := range want {
				if got := out.Float(k); math.Abs(got-want[k]) > 1e-12*max(1, math.Abs(want[k])) {
					t.Fatalf("%v of shape %v over %b: element %d is %v, want %v", r, a.Shape(), axes, k, got, want[k])
				}
			}
		}
	}
}

func TestReduceSpecialValues(t *testing.T) {
	var ws Workspace
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		r    Reduction
		x    []float64
		want float64
	}{
		{Max, []float64{1, nan, 3}, nan}, {Min, []float64{nan, 1}, nan}, {Sum, []float64{inf, -inf}, nan}, {Sum, nil, 0}, {Prod, nil, 1},
		{LogSumExp, []float64{-inf, -inf}, -inf}, {LogSumExp, []float64{inf, inf, 1}, inf}, {LogSumExp, []float64{1000, 1000}, 1000 + math.Ln2},
		{LogSumExp, []float64{1, nan}, nan}, {LogSumExp, nil, -inf},
	} {
		out := New(Float64)
		if err := ws.Reduce(c.r, out, Of(c.x, len(c.x)), 1); err != nil {
			t.Fatal(err)
		}
		if MaxRelDiff(out, Scalar(c.want)) > 1e-15 {
			t.Errorf("%v of %v is %v, want %v", c.r, c.x, out, c.want)
		}
	}
	if err := ws.Reduce(Max, New(Float64), New(Float64, 0), 1); !errors.Is(err, ErrEmpty) {
		t.Errorf("maximum of nothing: %v", err)
	}
	if err := ws.Reduce(Max, New(Float64, 0), New(Float64, 0, 0), 1); err != nil {
		t.Errorf("no maxima of nothing: %v", err)
	}
}

func TestGemm(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, d := range []DType{Float64, Float32} {
		for range 200 {
			m, n, k := rng.IntN(6), rng.IntN(6), rng.IntN(6)
			a, b := randomView(rng, []int{m, k}), randomView(rng, []int{k, n})
			a, _ = a.BroadcastTo(m, k)
			b, _ = b.BroadcastTo(k, n)
			if d == Float32 {
				a, b = a.Cast(d), b.Cast(d)
				if rng.IntN(2) == 0 {
					a = a.Transpose(1, 0).Clone().Transpose(1, 0)
				}
				if rng.IntN(2) == 0 {
					b = b.Transpose(1, 0).Clone().Transpose(1, 0)
				}
			}
			c := Full(d, 2, m, n)
			if rng.IntN(2) == 0 {
				c = Full(d, 2, n, m).Transpose(1, 0)
			}
			if err := new(Workspace).Gemm(0.5, a, b, 3, c); err != nil {
				t.Fatal(err)
			}
			for i := range m {
				for j := range n {
					want := 6.0
					for l := range k {
						want += 0.5 * a.Float(i*k+l) * b.Float(l*n+j)
					}
					if got := c.Float(i*n + j); math.Abs(got-want) > map[DType]float64{Float64: 1e-12, Float32: 1e-4}[d]*max(1, math.Abs(want)) {
						t.Fatalf("%v %dx%dx%d: %v, want %v", d, m, k, n, got, want)
					}
				}
			}
		}
	}
}

func TestSliceRange(t *testing.T) {
	p := func(i int) *int { return &i }
	for _, c := range []struct {
		n           int
		start, stop *int
		step        int
		want        []int
	}{
		{5, nil, nil, 1, []int{0, 1, 2, 3, 4}}, {5, p(1), p(3), 1, []int{1, 2}}, {5, p(-2), nil, 1, []int{3, 4}}, {5, nil, nil, -1, []int{4, 3, 2, 1, 0}},
		{5, nil, nil, 2, []int{0, 2, 4}}, {5, p(4), p(0), -2, []int{4, 2}}, {5, p(9), nil, 1, nil}, {5, p(-9), p(2), 1, []int{0, 1}}, {0, nil, nil, -1, nil},
		{5, p(3), p(1), 1, nil}, {5, p(9), p(-9), -3, []int{4, 1}},
	} {
		r := SliceRange(c.n, c.start, c.stop, c.step)
		var got []int
		for i := range r.Count {
			got = append(got, r.Start+i*r.Step)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v selects %v, want %v", c, got, c.want)
		}
	}
}

// TestEmptyViews: views without elements lie in the memory of what they are views of, and are slices.
func TestEmptyViews(t *testing.T) {
	for _, shape := range [][]int{{0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {3, 3, 3}} {
		a := New(Float32, shape...)
		var v Array
		for d, n := range shape {
			if n == 0 {
				continue
			}
			ranges := make([]Range, 3)
			for i, m := range shape {
				ranges[i] = Range{Step: 1, Count: m}
			}
			ranges[d] = Range{Start: n - 1, Step: 1, Count: 1, Drop: true}
			a.RangeTo(&v, ranges...)
			if got := len(Slice[float32](v.Clone())); got != a.Len()/n {
				t.Errorf("%d elements of %v", got, shape)
			}
			if v.Len() == 0 && len(Slice[float32](&v)) != 0 {
				t.Errorf("elements of %v", v.Shape())
			}
		}
		if a.Len() == 0 {
			a.DiagonalTo(&v, 2, 1, 2)
			_ = Slice[float32](&v)
			a.DiagonalTo(&v, -2, 0, 1)
			_ = Slice[float32](&v)
		}
	}
}

func TestTakePut(t *testing.T) {
	var ws Workspace
	a := Of([]float64{0, 1, 2, 3, 4, 5}, 3, 2)
	i := Of([]int64{2, -1, 0}, 3)
	out := New(Float64, 3, 2)
	if err := ws.Take(out, a, i); err != nil || out.String() != "[[4.0, 5.0], [4.0, 5.0], [0.0, 1.0]]" {
		t.Errorf("rows: %v, %v", out, err)
	}
	out = New(Float64, 3)
	if err := ws.Take(out, a, i, Of([]int64{0, 1, 0}, 3)); err != nil || out.String() != "[4.0, 5.0, 0.0]" {
		t.Errorf("elements: %v, %v", out, err)
	}
	if err := ws.Put(a, Full(Float64, 10, 3, 2), true, i); err != nil || a.String() != "[[10.0, 11.0], [2.0, 3.0], [24.0, 25.0]]" {
		t.Errorf("added: %v, %v", a, err)
	}
	if err := ws.Take(out, a, Of([]int64{0, 1, 3}, 3), i); !errors.Is(err, ErrIndex) {
		t.Errorf("index 3 of 3: %v", err)
	}
}

func TestWorkspace(t *testing.T) {
	ws := Workspace{MaxBytes: 1 << 20}
	var a Array
	if err := ws.New(&a, Float64, 1<<40, 1<<40); !errors.Is(err, ErrTooLarge) {
		t.Errorf("2^80 elements: %v", err)
	}
	if err := ws.New(&a, Float64, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("8 MB of 1: %v", err)
	}
	if err := ws.New(&a, Float64, 1<<40, 0); err != nil {
		t.Errorf("nothing: %v", err)
	}
	ws.Release(&a)
	if allocs := testing.AllocsPerRun(100, func() {
		if err := ws.New(&a, Float64, 100, 10); err != nil {
			t.Fatal(err)
		}
		ws.Release(&a)
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		a    *Array
		want string
	}{
		{Scalar(2.0), "2.0"}, {Scalar(int64(2)), "2"}, {Scalar(true), "True"}, {Scalar(1e-7), "1e-07"}, {Scalar(math.Inf(-1)), "-inf"},
		{Scalar(float32(0.1)), "0.1"}, {New(Float64, 0), "[]"}, {New(Int64, 2, 0), "[[], []]"}, {Full(Int64, 1, 200), ""},
	} {
		if got := c.a.String(); c.want != "" && got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		} else if c.want == "" && len(got) > 400 {
			t.Errorf("%d bytes for 200 elements", len(got))
		}
	}
	got, err := Of([]float64{1, math.NaN(), 2.5}, 3).MarshalJSON()
	if err != nil || string(got) != `[1,"nan",2.5]` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestSoftmax(t *testing.T) {
	a := Of([]float64{1000, 1000, -1000, 0, 0, 0}, 2, 3)
	out := New(Float64, 2, 3)
	new(Workspace).Softmax(out, a, false)
	if MaxRelDiff(out, Of([]float64{.5, .5, 0, 1. / 3, 1. / 3, 1. / 3}, 2, 3)) > 1e-12 {
		t.Error(out)
	}
	new(Workspace).Softmax(out, a, true)
	if MaxRelDiff(out, Of([]float64{-math.Ln2, -math.Ln2, -2000 - math.Ln2, -math.Log(3), -math.Log(3), -math.Log(3)}, 2, 3)) > 1e-12 {
		t.Error(out)
	}
}

// TestLargeSoftmax takes the softmax of elements that are so large that adding the logarithm of the
// sum does not change them.
func TestLargeSoftmax(t *testing.T) {
	for _, most := range []float64{0, 1e17, 1e300, -1e300, math.MaxFloat64} {
		a := Of([]float64{most, most}, 1, 2)
		new(Workspace).Softmax(a, a, true)
		if a.Float(0) != -math.Ln2 || a.Float(1) != -math.Ln2 {
			t.Errorf("log-softmax of two times %v is %v", most, a)
		}
	}
}

// TestLargeIntegers compares integers that round to the same float64.
func TestLargeIntegers(t *testing.T) {
	a, b := Of([]int64{1<<62 + 1, math.MinInt64}, 2), Of([]int64{1 << 62, math.MaxInt64}, 2)
	at := New(Int64)
	if err := new(Workspace).ArgMax(at, Of([]int64{1 << 62, 1<<62 + 1, 1<<62 - 1}, 3), 1); err != nil || at.Int(0) != 1 {
		t.Errorf("argmax is %v, %v", at, err)
	}
	if d := MaxRelDiff(a, b); d != 2 {
		t.Errorf("the difference is %v", d)
	}
	if d := MaxRelDiff(Of([]int64{1<<62 + 1}, 1), Of([]int64{1 << 62}, 1)); d == 0 {
		t.Error("no difference")
	}
	if v, ok := Uniform(Of([]int64{1<<62 + 1, 1 << 62}, 2)); ok {
		t.Errorf("all are %v", v)
	}
	if v, ok := Uniform(Of([]int64{1 << 53, 1 << 53}, 2)); !ok || v != 1<<53 {
		t.Errorf("all are %v, %v", v, ok)
	}
}

// TestCopyCSR copies, converts and compares a sparse matrix.
func TestCopyCSR(t *testing.T) {
	dense := Of([]float64{0, 1, 0.1, 0, 0, 3}, 2, 3)
	s := ToCSR(dense)
	c, f := s.Clone(), s.Cast(Float32)
	if !c.IsCSR() || MaxRelDiff(c, dense) != 0 || !Equal(c, s) || Hash(c) != Hash(s) {
		t.Errorf("the copy is %v", c)
	}
	if !f.IsCSR() || f.DType() != Float32 || f.Float(2) != float64(float32(0.1)) {
		t.Errorf("as float32 it is %v", f)
	}
	if d := MaxRelDiff(s, ToCSR(Of([]float64{0, 1, 0.1, 0, 0, 4}, 2, 3))); d != 0.25 {
		t.Errorf("the difference is %v", d)
	}
}

// TestSubnormals applies functions to arguments for which package math is wrong on some processors.
func TestSubnormals(t *testing.T) {
	for _, c := range []struct {
		op         Opcode
		x, y, want float64
	}{
		{Log10, 5e-324, 0, -323.3062153431158}, {Log10, 1e-310, 0, -310}, {Log, 5e-324, 0, -744.4400719213812}, {Log2, 5e-324, 0, -1074},
		{Pow, 5e-324, 0.1, 4.6706622762338734e-33}, {Pow, 1e-310, -0.1, 1e31}, {Pow, 1e-310, 0.5, 1e-155}, {Pow, 5e-324, 1, 5e-324}, {Pow, 5e-324, -1, math.Inf(1)}, {Pow, 1e-310, -2.5, math.Inf(1)}, {Pow, 1e-310, 2.5, 0},
		{Arctan2, -5e-324, -2, -math.Pi}, {Arctan2, 5e-324, -2, math.Pi}, {Arctan2, -1e-17, -1e308, -math.Pi}, {Arctan2, -5e-324, 2, 0},
	} {
		args := []*Array{Scalar(c.x), Scalar(c.y)}
		if got := apply(t, c.op, args[:c.op.NumArgs()]...).Float(0); got != c.want && !(math.Abs(got-c.want) <= 1e-14*math.Abs(c.want)) {
			t.Errorf("%v of %v and %v is %v, want %v", c.op, c.x, c.y, got, c.want)
		}
	}
}

// TestRangeClip compares the elements of ranges, their opposites and parts with lists of them.
func TestRangeClip(t *testing.T) {
	elements := func(r Range) (list []int) {
		for k := range r.Count {
			list = append(list, r.Start+k*r.Step)
		}
		return list
	}
	for _, r := range []Range{{Start: 0, Step: 1, Count: 5}, {Start: 7, Step: -3, Count: 3}, {Start: 2, Step: 2, Count: 4}, {Start: 4, Step: 1}, {Start: 4, Step: -1, Count: 1}} {
		all := elements(r)
		back := slices.Clone(all)
		slices.Reverse(back)
		if r.Count > 0 && !slices.Equal(elements(r.Reversed()), back) {
			t.Errorf("%v reversed is %v", r, r.Reversed())
		}
		for lo := -1; lo < 10; lo++ {
			for hi := lo; hi < 11; hi++ {
				want := slices.DeleteFunc(slices.Clone(all), func(p int) bool { return p < lo || p >= hi })
				if got := elements(r.Clip(lo, hi)); !slices.Equal(got, want) {
					t.Errorf("%v in [%d, %d) is %v, want %v", r, lo, hi, got, want)
				}
			}
		}
	}
}
