package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestMaps(t *testing.T) {
	scale, offset := float32(1.5), float32(-0.25)
	vec := func(n int, v float32) []float32 { return slices.Repeat([]float32{v}, n) }
	for _, c := range []struct {
		name string
		f    func(dst, src Matrix)
		want func([]float64) []float64
	}{
		{"ReLU", rows(ReLUVec), each(func(x float64) float64 { return max(x, 0) })},
		{"Sigmoid", rows(SigmoidVec), each(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })},
		{"Tanh", rows(TanhVec), each(math.Tanh)},
		{"Copy", Copy, each(func(x float64) float64 { return x })},
		{"CopyScaled", func(d, s Matrix) { CopyScaled(d, scale, s) }, each(func(x float64) float64 { return 1.5 * x })},
		{"ScaleCols", func(d, s Matrix) { scaleCols(d, s, vec(s.Cols, scale)) }, each(func(x float64) float64 { return 1.5 * x })},
		{"ScaleOffset", func(d, s Matrix) { scaleOffset(d, s, vec(s.Cols, scale), vec(s.Cols, offset)) }, each(func(x float64) float64 { return 1.5*x - 0.25 })},
		{"LogSoftmax", LogSoftmax, func(row []float64) []float64 { return shift(row, logSum(row)) }},
		{"Softmax", softmax, func(row []float64) []float64 {
			return each(math.Exp)(shift(row, logSum(row)))
		}},
		{"NormalizeRow", func(d, s Matrix) {
			for i := range d.Rows {
				NormalizeRow(Row(d, i), Row(s, i), 0.5)
			}
		}, func(row []float64) []float64 {
			sum := 0.0
			for _, v := range row {
				sum += v * v
			}
			f := 0.5 / math.Sqrt(sum/float64(len(row)))
			return each(func(x float64) float64 { return f * x })(row)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { checkMap(t, c.f, 2e-6, c.want) })
	}
}

func logSum(row []float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(v)
	}
	return math.Log(sum)
}

func shift(row []float64, by float64) []float64 {
	return each(func(x float64) float64 { return x - by })(row)
}

func TestSoftmaxExtremes(t *testing.T) {
	m := Matrix{Rows: 1, Cols: 3, Stride: 3, Data: []float32{1000, -1000, 0}}
	y := New(1, 3)
	softmax(y, m)
	if !slices.Equal(y.Data, []float32{1, 1e-20, 1e-20}) {
		t.Errorf("softmax %v", y.Data)
	}
	LogSoftmax(y, m)
	if !slices.Equal(y.Data, []float32{0, -2000, -1000}) {
		t.Errorf("log-softmax %v", y.Data)
	}
	none := Matrix{Rows: 3, Stride: 0}
	softmax(none, none)
	LogSoftmax(none, none)
}

func TestNormalizeRowOfZeros(t *testing.T) {
	x := make([]float32, 4)
	if f := NormalizeRow(x, x, 1); f != 1<<33 || slices.Max(x) != 0 {
		t.Errorf("factor %g, result %v", f, x)
	}
	dx := []float32{0, 0, 0, 0}
	NormalizeRowDeriv(dx, x, []float32{1, 0, 0, -1}, 1)
	if dx[0] != 1<<33 || dx[3] != -(1<<33) {
		t.Errorf("derivative %v", dx)
	}
}

func TestArithmetic(t *testing.T) {
	r := newRand()
	for _, s := range sizes {
		a, b, v := random(r, s.rows, s.cols, s.gap), random(r, s.rows, s.cols, 1), random(r, 1, s.cols, 0).Data
		sum, product := make([]float32, s.cols), make([]float32, s.cols)
		d := Clone(a)
		Add(d, 2, b)
		AddRow(d, -1, v)
		mapRows2(d, d, a, MulVec)
		mapRows2(d, b, b, AddMulVec)
		Scale(d, 0.5)
		AddColSums(sum, 3, d)
		AddColProducts(product, 1, d, a)
		moment, squares := make([]float32, s.cols), make([]float64, s.cols)
		addColMoments(moment, 3, squares, d, d)
		var wantSum, wantProduct, dot float64
		for j := range s.cols {
			wantSum, wantProduct = 0, 0
			for i := range s.rows {
				x, y := float64(Row(a, i)[j]), float64(Row(b, i)[j])
				want := 0.5 * ((x+2*y-float64(v[j]))*x + y*y)
				got := float64(Row(d, i)[j])
				if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("element (%d, %d) is %g, want %g", i, j, got, want)
				}
				wantSum += 3 * got
				wantProduct += got * x
			}
			dot += wantProduct
			for _, c := range [][2]float64{{float64(sum[j]), wantSum}, {float64(product[j]), wantProduct}, {float64(moment[j]), wantSum}} {
				if math.Abs(c[0]-c[1]) > 1e-4*(1+math.Abs(c[1])) {
					t.Fatalf("column %d: %g, want %g", j, c[0], c[1])
				}
			}
		}
		if got := MatrixDot(d, a); math.Abs(got-dot) > 1e-4*(1+math.Abs(dot)) {
			t.Errorf("dot product %g, want %g", got, dot)
		}
	}
	mustPanic(t, "Add of different sizes", func() { Add(New(2, 3), 1, New(3, 2)) })
}

// A zero doesn't hide NaN, except for factors of zero that are documented not to read.
func TestArithmeticKeepsNaN(t *testing.T) {
	m := Matrix{Rows: 1, Cols: 2, Stride: 2, Data: []float32{nan, 1}}
	d := New(1, 2)
	Add(d, 0, m)
	if d.Data[0] == d.Data[0] {
		t.Error("0·NaN was added as nothing")
	}
	rows2(ReLUDerivVec)(d, m, Matrix{Rows: 1, Cols: 2, Stride: 2, Data: []float32{5, 6}})
	if !slices.Equal(d.Data, []float32{0, 6}) {
		t.Errorf("derivative %v", d.Data)
	}
	Scale(m, 0)
	if !slices.Equal(m.Data, []float32{0, 0}) {
		t.Error("a scale of zero doesn't set to zero")
	}
}

func TestDotAndSum(t *testing.T) {
	for n := range 20 {
		x, y := make([]float32, n), make([]float32, n)
		var dot, sum float32
		for i := range n {
			x[i], y[i] = float32(i+1), float32(2-i)
			dot += x[i] * y[i]
			sum += x[i]
		}
		if Dot(x, y) != dot || Sum(x) != sum {
			t.Errorf("%d elements: dot %g, want %g; sum %g, want %g", n, Dot(x, y), dot, Sum(x), sum)
		}
	}
}

func TestDerivatives(t *testing.T) {
	r := newRand()
	for _, c := range []struct {
		name    string
		f       func(dst, src Matrix)
		deriv   func(dx, y, dy Matrix)
		inPlace bool
	}{
		{"Sigmoid", rows(SigmoidVec), rows2(SigmoidDerivVec), true},
		{"Tanh", rows(TanhVec), rows2(TanhDerivVec), true},
		{"Softmax", softmax, SoftmaxDeriv, true},
		{"LogSoftmax", LogSoftmax, LogSoftmaxDeriv, true},
	} {
		x, dy, y, dx := random(r, 3, 8, 1), random(r, 3, 8, 2), New(3, 8), New(3, 8)
		c.f(y, x)
		c.deriv(dx, y, dy)
		d := random(r, 3, 8, 0)
		const step = 1e-2
		up, down := Clone(x), Clone(x)
		Add(up, step, d)
		Add(down, -step, d)
		c.f(up, up)
		c.f(down, down)
		measured := (MatrixDot(up, dy) - MatrixDot(down, dy)) / (2 * step)
		if predicted := MatrixDot(dx, d); math.Abs(predicted-measured) > 1e-3*(1+math.Abs(measured)) {
			t.Errorf("%s: slope %g, measured %g", c.name, predicted, measured)
		}
		c.deriv(dy, y, dy)
		for i := range 3 {
			if !slices.Equal(Row(dy, i), Row(dx, i)) {
				t.Errorf("%s: in place the derivative is another", c.name)
			}
		}
	}
}

func TestRowMoves(t *testing.T) {
	src := Matrix{Rows: 3, Cols: 2, Stride: 3, Data: []float32{1, 2, nan, 3, 4, nan, 5, 6, nan}}
	fresh := func() Matrix {
		m := New(4, 2)
		Fill(m, 10)
		return m
	}
	for _, c := range []struct {
		name string
		f    func(Matrix)
		want []float32
	}{
		{"CopyRows", func(m Matrix) { copyRows(m, src, []int32{2, -1, 0, 2}) }, []float32{5, 6, 0, 0, 1, 2, 5, 6}},
		{"AddRows", func(m Matrix) { addRows(m, 2, src, []int32{2, -1, 0, 2}) }, []float32{20, 22, 10, 10, 12, 14, 20, 22}},
		{"AddRowRanges", func(m Matrix) { AddRowRanges(m, 1, src, [][2]int32{{0, 3}, {-1, -1}, {1, 2}, {2, 2}}) }, []float32{19, 22, 10, 10, 13, 14, 10, 10}},
		{"SetRows", func(m Matrix) { SetRows(m, []float32{7, 8}) }, []float32{7, 8, 7, 8, 7, 8, 7, 8}},
		{"PermuteCols", func(m Matrix) { PermuteCols(Rows(m, 0, 3), src, []int32{1, 0}) }, []float32{2, 1, 4, 3, 6, 5, 10, 10}},
	} {
		m := fresh()
		c.f(m)
		if !slices.Equal(m.Data, c.want) {
			t.Errorf("%s: %v, want %v", c.name, m.Data, c.want)
		}
	}
	mustPanic(t, "a row that isn't there", func() { copyRows(New(1, 2), src, []int32{3}) })
	mustPanic(t, "a range that ends too late", func() { AddRowRanges(New(1, 2), 1, src, [][2]int32{{2, 4}}) })
	mustPanic(t, "too few indexes", func() { copyRows(New(2, 2), src, []int32{0}) })
}

func TestViews(t *testing.T) {
	m := New(6, 4)
	for i := range m.Data {
		m.Data[i] = float32(i)
	}
	if v := View(m, 1, 2, 2, 2); !slices.Equal(Row(v, 0), []float32{6, 7}) || !slices.Equal(Row(v, 1), []float32{10, 11}) {
		t.Errorf("view %v", v)
	}
	if v := EveryNth(m, 1, 2, 3); !slices.Equal(Row(v, 0), Row(m, 1)) || !slices.Equal(Row(v, 1), Row(m, 4)) || v.Stride != 12 {
		t.Errorf("every third row %v", v)
	}
	if v := EveryNth(m, 5, 1, 0); v.Rows != 1 || Row(v, 0)[0] != 20 {
		t.Errorf("one row %v", v)
	}
	if v := EveryNth(m, 0, 0, 1); v.Rows != 0 || v.Cols != 4 {
		t.Errorf("no rows %v", v)
	}
	if v, ok := Reshape(m, 8); !ok || v.Rows != 3 || Row(v, 1)[0] != 8 {
		t.Errorf("reshaped %v", v)
	}
	if _, ok := Reshape(Cols(m, 0, 2), 1); ok {
		t.Error("a matrix with gaps was reshaped")
	}
	if _, ok := Reshape(m, 5); ok {
		t.Error("24 elements were made rows of 5")
	}
	if !Same(m, View(m, 0, 6, 0, 4)) || Same(m, Rows(m, 0, 5)) || Same(m, Clone(m)) {
		t.Error("Same is wrong")
	}
	mustPanic(t, "a view that is too large", func() { View(m, 1, 6, 0, 4) })
	mustPanic(t, "a row too far", func() { EveryNth(m, 0, 3, 3) })
}
