package kernel

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/internal/kernel/kerneltest"
)

var update = flag.Bool("update", false, "rewrite the checksums in testdata")

// TestSameBits: every set of kernels computes the bits whose checksums are in testdata, on every
// processor.
//
//	go test ./internal/kernel ./exec ./exec/refcase -run TestSameBits -update
func TestSameBits(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	for _, set := range ownSets() {
		bestSet = set
		var c kerneltest.Checksums
		productBits(&c)
		patchBits(&c)
		longBits(&c)
		mapBits(&c)
		rowBits(&c)
		doubleBits(&c)
		quantizedBits(&c)
		c.Golden(t, "testdata/bits.txt", set.String(), *update)
		*update = false // the other sets must compute the same
	}
}

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// numbers returns a matrix of random numbers, with a gap between its rows.
func numbers(r *rand.Rand, rows, cols int) Matrix {
	return Matrix{Rows: rows, Cols: cols, Stride: cols + 3, Data: kerneltest.Numbers(r, rows*(cols+3))}
}

// addMatrix adds the elements of a matrix to a checksum.
func addMatrix(c *kerneltest.Checksums, name string, m Matrix) {
	for i := range m.Rows {
		c.Float32s(name, Row(m, i)...)
	}
}

// quantizedBits computes quantized products.
func quantizedBits(c *kerneltest.Checksums) {
	r := source()
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {13, 70, 129}, {65, 33, 40}, {2, 130, 65}} {
		m, n, k := s[0], s[1], s[2]
		for _, p := range []Precision{Int8, Int16} {
			a, b, y := numbers(r, m, k), numbers(r, n, k), numbers(r, m, n)
			w, _ := NewQuantizedWeights(p, b)
			var rows QuantizedRows
			rows.Set(p, a)
			x := QuantizedSegment{Rows: &rows, Step: 1, W: w}
			ep := Epilogue{Accumulate: true, ReLU: true, Bias: kerneltest.Numbers(r, n), Scale: kerneltest.Numbers(r, n), Offset: kerneltest.Numbers(r, n), Alpha: 0.3, Residual: numbers(r, m, n)}
			MulQuantized([]QuantizedSegment{x, x}, ep, y)
			addMatrix(c, "Quantized,"+p.String(), y)
		}
	}
}

// productBits computes products of all kinds, with whole and partial tiles.
func productBits(c *kerneltest.Checksums) {
	r := source()
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {7, 17, 33}, {13, 70, 129}, {65, 33, 40}, {2, 130, 65}, {70, 30, 1100}} {
		m, n, k := s[0], s[1], s[2]
		a, at, b, bt, y := numbers(r, m, k), numbers(r, k, m), numbers(r, k, n), numbers(r, n, k), numbers(r, m, n)
		for _, beta := range []float32{0, 1, 0.7} {
			MulNN(1.3, a, b, beta, y)
			addMatrix(c, "MulNN", y)
			(*Threads)(nil).MulNT(1.3, a, bt, beta, y)
			addMatrix(c, "MulNT", y)
			(*Threads)(nil).MulTN(1.3, at, b, beta, y)
			addMatrix(c, "MulTN", y)
		}
		w := NewWeights(bt)
		ep := Epilogue{Accumulate: true, ReLU: true, Bias: kerneltest.Numbers(r, n), Scale: kerneltest.Numbers(r, n), Offset: kerneltest.Numbers(r, n), Alpha: 0.3, Residual: numbers(r, m, n)}
		w.Mul(a, Epilogue{}, y)
		addMatrix(c, "Weights", y)
		w.Mul(a, ep, y)
		addMatrix(c, "Weights,epilogue", y)
		transposedWeights(b).Mul(a, ep, y)
		addMatrix(c, "TransposedWeights", y)
		MulSegments([]Segment{{X: a, W: w}, {X: numbers(r, m, k), W: w}, {X: numbers(r, m, k), W: w, Continue: true}}, ep, y)
		addMatrix(c, "MulSegments", y)
	}
	for n := 1; n <= 32; n++ {
		for _, k := range []int{31, 72, 100, 300} {
			y := numbers(r, 3, n)
			NewWeights(numbers(r, n, k)).Mul(numbers(r, 3, k), Epilogue{}, y)
			addMatrix(c, fmt.Sprintf("Weights,%02d-columns", n), y)
		}
	}
}

// patchBits computes products with patches.
func patchBits(c *kerneltest.Checksums) {
	r := source()
	for _, channels := range []int{1, 3, 20, 700} {
		x := &Patches{
			Data: kerneltest.Numbers(r, 2*5*7*channels), Pixel: channels, Channels: channels, In: [3]int{2, 5, 7}, Out: [3]int{1, 3, 7},
			Size: [3]int{1, 3, 3}, Stride: [3]int{1, 2, 1}, Dilation: [3]int{1, 1, 1}, Before: [3]int{0, 1, 1},
		}
		y := numbers(r, 21, 70)
		NewWeights(numbers(r, 70, 9*channels)).MulPatches(x, 0, &Epilogue{Bias: kerneltest.Numbers(r, 70)}, y)
		addMatrix(c, "MulPatches", y)
	}
}

// longBits computes sums of several chains.
func longBits(c *kerneltest.Checksums) {
	r := source()
	const m, n, k = 3, 25, 2*maxTerms + 100
	for _, n := range []int{4, n} {
		a, b, y := numbers(r, m, k), numbers(r, n, k), numbers(r, m, n)
		(*Threads)(nil).MulNT(1.3, a, b, 0.7, y)
		addMatrix(c, "Long,MulNT", y)
		MulNN(1.3, a, transposed(b), 1, y)
		addMatrix(c, "Long,MulNN", y)
		(*Threads)(nil).MulTN(1.3, transposed(a), transposed(b), 0, y)
		addMatrix(c, "Long,MulTN", y)
		NewWeights(b).Mul(a, Epilogue{Accumulate: true, Bias: kerneltest.Numbers(r, n)}, y)
		addMatrix(c, "Long,Weights", y)
		c.Float32s("Long,Dot", Dot(Row(a, 0), Row(b, 0)), Sum(Row(a, 0)))
	}
}

// mapBits computes maps of vectors, with whole and partial blocks, and numbers of all sizes.
func mapBits(c *kerneltest.Checksums) {
	r := source()
	for _, n := range []int{1, 5, 16, 19, 37, 128, 131, 515} {
		v := func() []float32 { return kerneltest.Numbers(r, n) }
		wide := v()
		for i := range wide {
			wide[i] *= float32(math.Ldexp(1, r.IntN(60)-40))
		}
		copy(wide, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0, 1e-40})
		x, y, z := v(), v(), v()
		dst := make([]float32, n)
		for name, f := range map[string]func(){
			"AddVec":         func() { AddVec(copyOf(dst, x), 0.3, y) },
			"AddVec,one":     func() { AddVec(copyOf(dst, x), 1, y) },
			"ScaleVec":       func() { ScaleVec(dst, 0.3, x) },
			"MulVec":         func() { MulVec(dst, x, y) },
			"FAdd":           func() { Float32Map("add")(dst, x, wide) },
			"FSub":           func() { Float32Map("sub")(dst, x, wide) },
			"FDiv":           func() { Float32Map("div")(dst, x, wide) },
			"FMax":           func() { Float32Map("max")(dst, x, wide) },
			"FMin":           func() { Float32Map("min")(dst, wide, x) },
			"FSqrt":          func() { Float32Map("sqrt")(dst, wide, nil) },
			"FRound":         func() { Float32Map("round")(dst, wide, nil) },
			"FAbs":           func() { Float32Map("abs")(dst, wide, nil) },
			"FFloor":         func() { Float32Map("floor")(dst, wide, nil) },
			"FCeil":          func() { Float32Map("ceil")(dst, wide, nil) },
			"FTrunc":         func() { Float32Map("trunc")(dst, wide, nil) },
			"FLeakyReLU":     func() { LeakyReLUVec(dst, wide, 0.2, -0.4) },
			"FHardSigmoid":   func() { HardSigmoidVec(dst, wide, 1.0/6, 0.5, 0, 1) },
			"FHardSwish":     func() { HardSwishVec(dst, wide, 1.0/6, 0.5, 0, 1) },
			"FNeg":           func() { Float32Map("neg")(dst, wide, nil) },
			"FGELU":          func() { GELUVec(dst, x, wide) },
			"FGELUOf":        func() { GELUOfVec(dst, wide, math.Sqrt2, 0.5) },
			"FErfc":          func() { Float32Map("erfc")(dst, wide, nil) },
			"AddMulVec":      func() { AddMulVec(copyOf(dst, z), x, y) },
			"MulAddVec":      func() { MulAddVec(dst, x, y, z) },
			"SubMulVec":      func() { SubMulVec(dst, x, y, z) },
			"SigmoidVec":     func() { SigmoidVec(dst, wide) },
			"TanhVec":        func() { TanhVec(dst, wide) },
			"ExpVec":         func() { c.Float32s("ExpVec", ExpVec(dst, wide, 0.5)) },
			"ExpVec,sum":     func() { c.Float32s("ExpVec,sum", ExpVec(dst, x, 8)) },
			"SigmoidDeriv":   func() { SigmoidDerivVec(dst, x, y) },
			"TanhDeriv":      func() { TanhDerivVec(dst, x, y) },
			"SoftmaxVec":     func() { SoftmaxVec(dst, x, 1e-20) },
			"LayerNorm":      func() { LayerNormRows(dst, x, len(x), y, z, 7, 1e-5) },
			"NormalizeRow":   func() { c.Float32s("NormalizeRow,factor", NormalizeRow(dst, x, 0.5)) },
			"NormalizeDeriv": func() { NormalizeRowDeriv(copyOf(dst, z), x, y, 0.5) },
			"Dot":            func() { dst[0] = Dot(x, y) },
			"Sum":            func() { dst[0] = Sum(x) },
			"Exp":            func() { mapped(dst, wide, exp) },
			"Sigmoid1":       func() { mapped(dst, wide, sigmoid) },
			"Tanh1":          func() { mapped(dst, wide, tanh) },
		} {
			clear(dst)
			f()
			c.Float32s(name, dst...)
		}
	}
}

// copyOf copies src to dst and returns dst.
func copyOf(dst, src []float32) []float32 {
	copy(dst, src)
	return dst
}

func mapped(dst, src []float32, f func(float32) float32) {
	for i, v := range src {
		dst[i] = f(v)
	}
}

// rowBits computes functions of matrices: maps, sums over columns, softmax.
func rowBits(c *kerneltest.Checksums) {
	r := source()
	for _, s := range [][2]int{{1, 1}, {3, 5}, {17, 35}, {9, 128}, {5, 200}, {70, 30}, {133, 7}} {
		rows, cols := s[0], s[1]
		x, y, z, dst := numbers(r, rows, cols), numbers(r, rows, cols), numbers(r, rows, cols), numbers(r, rows, cols)
		scale, offset, mean := kerneltest.Numbers(r, cols), kerneltest.Numbers(r, cols), kerneltest.Numbers(r, cols)
		var signs Signs
		sumsq := make([]float64, cols)
		steps := []struct {
			name string
			f    func()
		}{
			{"Add", func() { Add(dst, 0.3, x) }},
			{"AddRow", func() { AddRow(dst, 0.3, scale) }},
			{"Mul2", func() { mapRows2(dst, x, y, MulVec) }},
			{"AddMul2", func() { mapRows2(dst, x, y, AddMulVec) }},
			{"CopyScaled", func() { CopyScaled(dst, 0.3, x) }},
			{"Scale", func() { Scale(dst, 0.3) }},
			{"ScaleCols", func() { scaleCols(dst, x, scale) }},
			{"ScaleOffset", func() { scaleOffset(dst, x, scale, offset) }},
			{"ReLU", func() { MapRows(dst, x, ReLUVec) }},
			{"ReLUDeriv", func() { mapRows2(dst, x, y, ReLUDerivVec) }},
			{"ReLUSigns", func() { (*Threads)(nil).ReLUSigns(dst, x, &signs, 0, rows) }},
			{"ReLUSignsDeriv", func() {
				(*Threads)(nil).ReLUSignsDeriv(dst, y, &signs, sumsq)
				c.Float64s("ReLUSignsDeriv,squares", sumsq...)
			}},
			{"Softmax", func() { softmax(dst, x) }},
			{"SoftmaxDeriv", func() { SoftmaxDeriv(dst, Clone(dst), y) }},
			{"LogSoftmax", func() { LogSoftmax(dst, x) }},
			{"LogSoftmaxDeriv", func() { LogSoftmaxDeriv(dst, Clone(dst), y) }},
			{"Standardize", func() { standardizeRows(dst, x, mean, scale) }},
			{"StandardizeDeriv", func() { standardizeDeriv(dst, y, z, mean, scale, offset) }},
			{"AddColSums", func() { AddColSums(Row(dst, 0), 0.3, x) }},
			{"AddColMoments", func() { addColMoments(Row(dst, 0), 0.3, sumsq, x, y); c.Float64s("AddColMoments,products", sumsq...) }},
			{"AddColProducts", func() { AddColProducts(Row(dst, 0), 0.3, x, y) }},
			{"AddColSquares", func() { (*Threads)(nil).AddColSquares(sumsq, x); c.Float64s("AddColSquares", sumsq...) }},
			{"MatrixDot", func() { c.Float64s("MatrixDot", MatrixDot(x, y)) }},
			{"AddVecToDoubles", func() { AddVecToDoubles(sumsq, Row(x, 0)); c.Float64s("AddVecToDoubles", sumsq...) }},
		}
		for _, step := range steps {
			step.f()
			addMatrix(c, step.name, dst)
		}
	}
}

// doubleBits computes the functions and products of float64s.
func doubleBits(c *kerneltest.Checksums) {
	r := source()
	x, y := make([]float64, 1003), make([]float64, 1003)
	for i := range x {
		e := r.IntN(14) - 10
		if i%10 == 0 {
			e = r.IntN(1900) - 950
		}
		x[i] = math.Ldexp(float64(r.IntN(1<<53)-1<<52)/(1<<52), e)
		y[i] = float64(r.IntN(1<<53)-1<<52) / (1 << 50)
	}
	copy(x, []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 5e-324, 1e300, -745, 709.7})
	dst := make([]float64, len(x))
	for _, name := range []string{"Sqrt", "Abs", "Neg", "Exp", "Expm1", "Sigmoid", "Tanh", "Log", "Log1p", "Sin", "Cos"} {
		f := Float64Map(strings.ToLower(name))
		f(dst, x, nil)
		c.Float64s("D"+name, dst...)
		f(dst[:700], y[:700], nil) // for the sine, arguments that are not large
		c.Float64s("D"+name, dst...)
	}
	for name, f := range map[string]func(float64) float64{
		"Exp2": elementary.Exp2, "Sinh": elementary.Sinh, "Cosh": elementary.Cosh, "Log2": elementary.Log2, "Log10": elementary.Log10, "Asinh": elementary.Asinh,
		"Acosh": elementary.Acosh, "Atanh": elementary.Atanh, "Tan": elementary.Tan, "Asin": elementary.Asin, "Acos": elementary.Acos, "Atan": elementary.Atan,
		"Erf": elementary.Erf, "Erfc": elementary.Erfc, "Gamma": elementary.Gamma, "Lgamma": elementary.Lgamma, "Digamma": elementary.Digamma,
		"Erfinv": elementary.Erfinv, "Erfcinv": elementary.Erfcinv, "Log1mexp": elementary.Log1mexp, "Cbrt": elementary.Cbrt, "Erfcx": elementary.Erfcx,
	} {
		for i, v := range x {
			c.Float64s("elementary."+name, f(v), f(y[i]), f(math.Abs(y[i])/8))
		}
	}
	for name, f := range map[string]func(x, y float64) float64{"Pow": elementary.Pow, "Atan2": elementary.Atan2, "LogAddExp": elementary.LogAddExp,
		"Hypot": elementary.Hypot, "Xlogy": elementary.Xlogy, "Xlog1py": elementary.Xlog1py,
		"Polygamma": func(x, y float64) float64 { return elementary.Polygamma(math.Abs(math.Trunc(x)), y) },
	} {
		for i, v := range x {
			c.Float64s("elementary."+name, f(v, y[i]), f(math.Abs(y[i]), v), f(math.Abs(y[i]), y[(i+1)%len(y)]))
		}
	}
	for _, s := range [][3]int{{1, 1, 1}, {5, 13, 7}, {3, 4, 200}, {30, 26, 33}} {
		m, n, k := s[0], s[1], s[2]
		clear(dst)
		(*Threads)(nil).DGemm(1.3, Strided{Rows: m, Cols: k, Row: k, Col: 1, Data: y[:m*k]}, Strided{Rows: k, Cols: n, Row: 1, Col: k, Data: y[len(y)-n*k:]}, dst[:m*n], n)
		c.Float64s("DGemm", dst[:m*n]...)
	}
}
