package array_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// wholeNumbers returns integers whose least and greatest are least and most, in each item: such as that
// rounding to steps of 1 changes none.
func wholeNumbers(r *rand.Rand, least, most, items int, shape ...int) *array.Array {
	a := array.New(array.Float32, shape...)
	size := a.Len() / max(items, 1)
	for i := range a.Len() {
		a.SetFloat(i, float64(least+r.IntN(most-least+1)))
		switch i % size {
		case 0:
			a.SetFloat(i, float64(least))
		case size - 1:
			a.SetFloat(i, float64(most))
		}
	}
	return a
}

// nearly fails unless two arrays are equal but for roundings of float32s and, in 16 bits, of weights, whose
// steps are not 1. They are much smaller than what an element that is in a wrong place makes of sums.
func nearly(t *testing.T, name string, p kernel.Precision, got, want *array.Array) {
	t.Helper()
	most, largest := 1e-5, 0.0
	if p == kernel.Int16 {
		most = 1e-3
	}
	for i := range want.Len() {
		largest = max(largest, math.Abs(want.Float(i)))
	}
	for i := range want.Len() {
		if d := math.Abs(got.Float(i) - want.Float(i)); !(d <= most*largest) {
			t.Fatalf("%s: element %d is %v, want %v", name, i, got.Float(i), want.Float(i))
		}
	}
}

// levels returns numbers between which products of a precision have steps of 1.
func levels(p kernel.Precision, zero bool) (least, most int) {
	n := p.Levels()
	if zero {
		n-- // see kernel.Threads.SetTogether
	}
	return -n / 3, n - n/3
}

// TestIntegerMatMul: factors that are integers have exact products, for all shapes, and with an epilogue
// those of Map.
func TestIntegerMatMul(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		p := []kernel.Precision{kernel.Int8, kernel.Int16}[r.IntN(2)]
		rows, k, n := r.IntN(8), 2+r.IntN(90), 1+r.IntN(70)
		if trial%20 == 0 {
			rows, k = 300+r.IntN(400), 600 // several blocks
		}
		least, most := levels(p, false)
		a, b := wholeNumbers(r, least, most, rows, rows, k), wholeNumbers(r, -127, 127, 1, k, n)
		if p == kernel.Int8 {
			for j := range n {
				b.SetFloat(j, 127)
			}
		}
		name := fmt.Sprintf("%d: %v, %d×%d×%d", trial, p, rows, n, k)
		var ws array.Workspace
		want, got := array.New(array.Float32, rows, n), array.New(array.Float32, rows, n)
		program, args, kinds := randomEpilogue(r, array.Float32, []int{rows, n})
		e := array.NewEpilogue(program, kinds)
		if err := ws.BatchMatMul(want, a, b, nil, e, args); err != nil {
			t.Fatal(err)
		}
		switch r.IntN(4) {
		case 0:
			a = a.Transpose(1, 0).Clone().Transpose(1, 0)
		case 1:
			b = b.Transpose(1, 0).Clone().Transpose(1, 0)
		}
		f := array.NewIntegerFactor(b, p)
		if f == nil {
			t.Fatalf("%s: the matrix can't be quantized", name)
		}
		if err := ws.IntegerMatMul(got, a, b, f, e, args); err != nil {
			t.Fatal(err)
		}
		nearly(t, name, p, got, want)
	}
}

// matrixOf returns a contiguous array as a matrix.
func matrixOf(a *array.Array) kernel.Matrix {
	return kernel.Matrix{Rows: a.Dim(0), Cols: a.Dim(1), Stride: a.Dim(1), Data: array.Slice[float32](a)}
}

// TestIntegerError: the error of a product of random numbers is what the distances of levels let expect.
func TestIntegerError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range []kernel.Precision{kernel.Int8, kernel.Int16} {
		const rows, k, n = 100, 384, 96
		a, b := array.New(array.Float32, rows, k), array.New(array.Float32, k, n)
		for _, m := range []*array.Array{a, b} {
			for i := range m.Len() {
				m.SetFloat(i, r.NormFloat64())
			}
		}
		var ws array.Workspace
		want, got := array.New(array.Float32, rows, n), array.New(array.Float32, rows, n)
		if err := ws.BatchMatMul(want, a, b, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := ws.IntegerMatMul(got, a, b, array.NewIntegerFactor(b, p), nil, nil); err != nil {
			t.Fatal(err)
		}
		var q kernel.QuantizedRows
		q.Set(p, matrixOf(a))
		steps := 0.0
		for i := range rows {
			steps += float64(q.Step(i, 0)) * float64(q.Step(i, 0)) / rows
		}
		step, length, _ := kernel.QuantizationSteps(p, matrixOf(b.Transpose(1, 0).Clone()))
		expected := math.Sqrt((steps*length + step*k) / 12) // elements of rows have a mean square of 1
		sum := 0.0
		for i := range want.Len() {
			d := got.Float(i) - want.Float(i)
			sum += d * d
		}
		if rms := math.Sqrt(sum / float64(want.Len())); rms < 0.9*expected || rms > 1.1*expected {
			t.Errorf("%v: the error is %v, where %v is expected", p, rms, expected)
		}
	}
}

// TestIntegerConvLast: factors that are integers have exact sums, for any window, and with an epilogue
// those of Map.
func TestIntegerConvLast(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 300 {
		p := []kernel.Precision{kernel.Int8, kernel.Int16}[r.IntN(2)]
		dims, in, out := 1+r.IntN(array.MaxSpatial), 2+r.IntN(20), 5+r.IntN(30)
		w := array.Window{Dims: dims}
		x, weights, y := []int{1 + r.IntN(3)}, []int{}, []int{0}
		y[0] = x[0]
		pointwise := r.IntN(4) == 0
		for d := range dims {
			w.Size[d], w.Stride[d], w.Dilation[d] = 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(2)
			w.Before[d], w.After[d] = r.IntN(4)-1, r.IntN(4)-1
			if pointwise {
				w.Size[d], w.Before[d], w.After[d], w.Stride[d] = 1, 0, 0, 1+trial%2
			}
			n := 4 + r.IntN(6)
			if trial%30 == 0 && d < 2 {
				n += 40 // several blocks
			}
			x, weights, y = append(x, n), append(weights, w.Size[d]), append(y, w.OutputSize(d, n, false))
		}
		x, weights, y = append(x, in), append(weights, in, out), append(y, out)
		name := fmt.Sprintf("%d: %v, x %v, weights %v, y %v, %+v", trial, p, x, weights, y, w)
		pointwise = w.Size == [array.MaxSpatial]int{1, min(dims-1, 1), max(dims-2, 0)} // then each position has its steps
		least, most := levels(p, !pointwise)
		items := x[0]
		if pointwise {
			for _, n := range x[1 : len(x)-1] {
				items *= n
			}
		}
		ax, aw := wholeNumbers(r, least, most, items, x...), wholeNumbers(r, -127, 127, 1, weights...)
		if p == kernel.Int8 {
			for j := range out {
				aw.SetFloat(j, 127)
			}
		}
		var ws array.Workspace
		program, args, kinds := randomEpilogue(r, array.Float32, y)
		e := array.NewEpilogue(program, kinds)
		want, got := array.New(array.Float32, y...), array.New(array.Float32, y...)
		if err := ws.ConvLast(want, ax, aw, nil, w, 1, e, args); err != nil {
			t.Fatal(err)
		}
		if trial%2 == 0 { // as weights are whose channels come first
			aw = channelsFirst(aw).Clone().Transpose(lastOrder(dims)...)
		}
		prepared := array.NewIntegerWeights(aw, p)
		if prepared == nil {
			t.Fatalf("%s: the weights can't be quantized", name)
		}
		if err := ws.IntegerConvLast(got, ax, aw, prepared, w, e, args); err != nil {
			t.Fatal(err)
		}
		nearly(t, name, p, got, want)
		// Threads change no bit.
		divide.Always.Store(true)
		threads := kernel.NewThreads(3)
		again, shared := array.New(array.Float32, y...), array.Workspace{Threads: threads}
		err := shared.IntegerConvLast(again, ax, aw, prepared, w, e, args)
		divide.Always.Store(false)
		if err != nil || !array.Equal(again, got) {
			t.Fatalf("%s: three threads compute %v, %v, not %v", name, again, err, got)
		}
	}
}

// channelsFirst returns weights whose channels come last with these in front.
func channelsFirst(weights *array.Array) *array.Array {
	dims := weights.NDim() - 2
	order := []int{dims + 1, dims}
	for d := range dims {
		order = append(order, d)
	}
	return weights.Transpose(order...)
}

// lastOrder is the order of dimensions that undoes channelsFirst.
func lastOrder(dims int) []int {
	order := []int{}
	for d := range dims {
		order = append(order, d+2)
	}
	return append(order, 1, 0)
}

// TestIntegersOfStrangeNumbers: rows, positions and items that have NaN or infinities are those of
// float32s, and others do not depend on them.
func TestIntegersOfStrangeNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, size := range []int{1, 3} {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			x, aw := array.New(array.Float32, 3, 5, 6, 33), array.New(array.Float32, size, size, 33, 20)
			for _, a := range []*array.Array{x, aw} {
				for i := range a.Len() {
					a.SetFloat(i, r.NormFloat64())
				}
			}
			w := array.Window{Dims: 2, Size: [array.MaxSpatial]int{size, size}, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}}
			y := []int{3, 6 - size, 7 - size, 20}
			program := array.NewProgram(array.Float32)
			e := array.NewEpilogue(program.Return(program.Append(array.Exp, 0)), []array.ArgKind{array.AnyArg})
			run := func(prepared *array.IntegerWeights) *array.Array {
				var ws array.Workspace
				got := array.New(array.Float32, y...)
				if err := ws.IntegerConvLast(got, x, aw, prepared, w, e, nil); err != nil {
					t.Fatal(err)
				}
				return got
			}
			if bad > 0 {
				aw = channelsFirst(aw).Clone().Transpose(lastOrder(2)...)
			}
			prepared := array.NewIntegerWeights(aw, kernel.Int8)
			fine := run(prepared)
			at := 5*6*33 + 33*7 + 2 // in the second item
			x.SetFloat(at, bad)
			got, exact := run(prepared), run(nil)
			part := fine.Len() / 3 // an item
			for i := range got.Len() {
				float := i/part == 1
				if size == 1 {
					float = i/20 == at/33
				}
				want := fine
				if float {
					want = exact
				}
				if g, w := got.Float(i), want.Float(i); g != w && (g == g || w == w) {
					t.Fatalf("window of %d, %v: element %d is %v, want %v", size, bad, i, g, w)
				}
			}
		}
	}
}
