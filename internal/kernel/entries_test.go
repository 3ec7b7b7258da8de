package kernel

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"

	"gonum.org/v1/gonum/blas"
)

// entries are all exported functions and methods. Each is called with arguments for a number of
// rows and columns.
var entries = map[string]func(a *arena, rows, cols int){
	"New":       func(a *arena, rows, cols int) { New(rows, cols) },
	"NewFloats": func(a *arena, rows, cols int) { NewFloats(rows * cols) },
	"Row": func(a *arena, rows, cols int) {
		m := a.from(rows, cols)
		for i := range rows {
			Row(m, i)
		}
	},
	"View":       func(a *arena, rows, cols int) { View(a.from(rows, cols), rows/2, rows-rows/2, cols/2, cols-cols/2) },
	"Rows":       func(a *arena, rows, cols int) { Rows(a.from(rows, cols), rows/2, rows-rows/2) },
	"Cols":       func(a *arena, rows, cols int) { Cols(a.from(rows, cols), cols/2, cols-cols/2) },
	"EveryNth":   func(a *arena, rows, cols int) { EveryNth(a.from(rows, cols), rows%2, (rows-rows%2+1)/2, 2) },
	"Reshape":    func(a *arena, rows, cols int) { Reshape(a.from(rows, cols), max(cols/2, 1)) },
	"Same":       func(a *arena, rows, cols int) { Same(a.from(rows, cols), a.from(rows, cols)) },
	"Valid":      func(a *arena, rows, cols int) { Valid(a.from(rows, cols)) },
	"Clone":      func(a *arena, rows, cols int) { Clone(a.from(rows, cols)) },
	"Fill":       func(a *arena, rows, cols int) { Fill(a.to(rows, cols), 1) },
	"Scale":      func(a *arena, rows, cols int) { Scale(a.to(rows, cols), 2) },
	"MapRows":    onto2(rows(TanhVec)),
	"MapRows2":   onto3(rows2(MulVec)),
	"Copy":       onto2(Copy),
	"CopyScaled": onto2(func(dst, src Matrix) { CopyScaled(dst, 2, src) }),
	"Add":        onto2(func(dst, src Matrix) { Add(dst, 2, src) }),
	"SetRows":    func(a *arena, rows, cols int) { SetRows(a.to(rows, cols), a.in(cols)) },
	"AddRow":     func(a *arena, rows, cols int) { AddRow(a.to(rows, cols), 2, a.in(cols)) },
	"ScaleCols":  func(a *arena, rows, cols int) { scaleCols(a.to(rows, cols), a.from(rows, cols), a.in(cols)) },
	"ScaleOffset": func(a *arena, rows, cols int) {
		scaleOffset(a.to(rows, cols), a.from(rows, cols), a.in(cols), a.in(cols))
	},
	"Standardize": func(a *arena, rows, cols int) {
		standardizeRows(a.to(rows, cols), a.from(rows, cols), a.in(cols), a.in(cols))
	},
	"StandardizeDeriv": func(a *arena, rows, cols int) {
		standardizeDeriv(a.to(rows, cols), a.from(rows, cols), a.from(rows, cols), a.in(cols), a.in(cols), a.in(cols))
	},
	"ReLUVec":    func(a *arena, rows, cols int) { ReLUVec(a.out(cols), a.in(cols)) },
	"LogSoftmax": onto2(LogSoftmax),
	"LogSoftmaxRows": func(a *arena, rows, cols int) {
		if cols > 0 {
			LogSoftmaxRows(a.out(rows*cols), a.in(rows*cols), cols)
		}
	},
	"ReLUDerivVec":    func(a *arena, rows, cols int) { ReLUDerivVec(a.out(cols), a.in(cols), a.in(cols)) },
	"LogSoftmaxDeriv": onto3(LogSoftmaxDeriv),
	"SoftmaxDeriv":    onto3(SoftmaxDeriv),
	"ReLUSigns": func(a *arena, rows, cols int) {
		(*Threads)(nil).ReLUSigns(a.to(rows, cols), a.from(rows, cols), new(Signs), rows/2, rows-rows/2)
	},
	"ReLUSignsDeriv": func(a *arena, rows, cols int) {
		var signs Signs
		(*Threads)(nil).ReLUSigns(New(rows, cols), New(rows, cols), &signs, 0, rows)
		(*Threads)(nil).ReLUSignsDeriv(a.to(rows, cols), a.from(rows, cols), &signs, a.dout(cols))
	},

	"AddVec":   func(a *arena, rows, cols int) { AddVec(a.out(cols), 2, a.in(cols)) },
	"ScaleVec": func(a *arena, rows, cols int) { ScaleVec(a.out(cols), 2, a.in(cols)) },
	"CodesVec": func(a *arena, rows, cols int) {
		CodesVec(make([]byte, cols), a.in(cols), a.in(cols), a.in(cols), 0, 255)
	},
	"BytesVec":        func(a *arena, rows, cols int) { BytesVec(make([]byte, cols), a.in(cols)) },
	"WidenHalf":       func(a *arena, rows, cols int) { WidenHalf(a.out(cols), make([]uint16, cols)) },
	"RoundHalf":       func(a *arena, rows, cols int) { RoundHalf(make([]uint16, cols), a.in(cols)) },
	"Interleave":      func(a *arena, rows, cols int) { Interleave(a.out(2*cols), a.in(cols), a.in(cols)) },
	"Interleave3":     func(a *arena, rows, cols int) { Interleave3(a.out(3*cols), a.in(cols), a.in(cols), a.in(cols)) },
	"EverySecond":     func(a *arena, rows, cols int) { EverySecond(a.out(cols), a.in(2*cols)) },
	"FMAVec":          func(a *arena, rows, cols int) { FMAVec(a.out(cols), 0.5, a.in(cols)) },
	"MulVec":          func(a *arena, rows, cols int) { MulVec(a.out(cols), a.in(cols), a.in(cols)) },
	"AddMulVec":       func(a *arena, rows, cols int) { AddMulVec(a.out(cols), a.in(cols), a.in(cols)) },
	"MulAddVec":       func(a *arena, rows, cols int) { MulAddVec(a.out(cols), a.in(cols), a.in(cols), a.in(cols)) },
	"SubMulVec":       func(a *arena, rows, cols int) { SubMulVec(a.out(cols), a.in(cols), a.in(cols), a.in(cols)) },
	"SigmoidVec":      func(a *arena, rows, cols int) { SigmoidVec(a.out(cols), a.in(cols)) },
	"SigmoidDerivVec": func(a *arena, rows, cols int) { SigmoidDerivVec(a.out(cols), a.in(cols), a.in(cols)) },
	"HardSigmoidVec":  func(a *arena, rows, cols int) { HardSigmoidVec(a.out(cols), a.in(cols), 0.2, 0.5, 0, 1) },
	"LeakyReLUVec":    func(a *arena, rows, cols int) { LeakyReLUVec(a.out(cols), a.in(cols), 0.2, -0.4) },
	"GELUVec":         func(a *arena, rows, cols int) { GELUVec(a.out(cols), a.in(cols), a.in(cols)) },
	"GELUOfVec":       func(a *arena, rows, cols int) { GELUOfVec(a.out(cols), a.in(cols), 1.5, 0.5) },
	"HardSwishVec":    func(a *arena, rows, cols int) { HardSwishVec(a.out(cols), a.in(cols), 0.2, 0.5, 0, 1) },
	"TanhVec":         func(a *arena, rows, cols int) { TanhVec(a.out(cols), a.in(cols)) },
	"TanhDerivVec":    func(a *arena, rows, cols int) { TanhDerivVec(a.out(cols), a.in(cols), a.in(cols)) },
	"ExpVec":          func(a *arena, rows, cols int) { ExpVec(a.out(cols), a.in(cols), 1) },
	"Transpose":       func(a *arena, rows, cols int) { Transpose(a.out(rows*cols), rows, a.from(rows, cols)) },
	"RowSums": func(a *arena, rows, cols int) {
		if cols > 0 {
			RowSums(a.out(rows), a.in(rows*cols), cols)
		}
	},
	"LayerNormRows": func(a *arena, rows, cols int) {
		LayerNormRows(a.out(rows*cols), a.in(rows*cols), cols, a.in(cols), a.in(cols), 3, 1e-5)
	},
	"SoftmaxRows":       func(a *arena, rows, cols int) { SoftmaxRows(a.out(rows*cols), a.in(rows*cols), cols, 0.1) },
	"SoftmaxVec":        func(a *arena, rows, cols int) { SoftmaxVec(a.out(cols), a.in(cols), 0.1) },
	"NormalizeRow":      func(a *arena, rows, cols int) { NormalizeRow(a.out(cols), a.in(cols), 1) },
	"NormalizeRowDeriv": func(a *arena, rows, cols int) { NormalizeRowDeriv(a.out(cols), a.in(cols), a.in(cols), 1) },
	"AddVecToDoubles":   func(a *arena, rows, cols int) { AddVecToDoubles(a.dsums(cols), a.in(cols)) },
	"Dot":               func(a *arena, rows, cols int) { Dot(a.in(cols), a.in(cols)) },
	"NewBlockWeights": func(a *arena, rows, cols int) {
		c := BlockCoding{Rows: rows, Cols: cols, Bits: 8, Block: 16, Zeros: []float32{1}}
		blocks := (cols + 15) / 16
		c.Codes, c.Scales = make([]byte, rows*16*blocks), a.in(rows*blocks)
		NewBlockWeights(nil, &c)
	},
	"BlockWeights.Shape": func(*arena, int, int) { new(BlockWeights).Shape() },
	"BlockWeights.Mul": func(a *arena, rows, cols int) {
		c := BlockCoding{Rows: cols, Cols: rows, Bits: 4, Block: 16, Zeros: []float32{1}}
		blocks := (rows + 15) / 16
		c.Codes, c.Scales = make([]byte, cols*8*blocks), make([]float32, cols*blocks)
		for _, c.Ints = range []bool{false, true} {
			NewBlockWeights(nil, &c).Mul(a.from(cols, rows), Epilogue{Bias: a.in(cols)}, a.to(cols, cols))
		}
	},
	"Extremes": func(a *arena, rows, cols int) { Extremes(a.in(cols)) },
	"FourDots": func(a *arena, rows, cols int) { FourDots(a.in(cols), a.in(cols), a.in(cols), a.in(cols), a.in(cols)) },
	"Sum":      func(a *arena, rows, cols int) { Sum(a.in(cols)) },

	"MatrixDot":  func(a *arena, rows, cols int) { MatrixDot(a.from(rows, cols), a.from(rows, cols)) },
	"AddColSums": func(a *arena, rows, cols int) { AddColSums(a.out(cols), 2, a.from(rows, cols)) },
	"AddColMoments": func(a *arena, rows, cols int) {
		addColMoments(a.out(cols), 2, a.dsums(cols), a.from(rows, cols), a.from(rows, cols))
	},
	"AddColProducts": func(a *arena, rows, cols int) { AddColProducts(a.out(cols), 2, a.from(rows, cols), a.from(rows, cols)) },
	"AddColSquares":  func(a *arena, rows, cols int) { (*Threads)(nil).AddColSquares(a.dsums(cols), a.from(rows, cols)) },

	"CopyRows": func(a *arena, rows, cols int) { copyRows(a.to(rows, cols), a.from(rows+1, cols), indexes(rows)) },
	"AddRows":  func(a *arena, rows, cols int) { addRows(a.to(rows, cols), 2, a.from(rows+1, cols), indexes(rows)) },
	"AddRowRanges": func(a *arena, rows, cols int) {
		ranges := make([][2]int32, rows)
		for i := range ranges {
			ranges[i] = [2]int32{int32(i / 2), int32(i + 2)}
		}
		AddRowRanges(a.to(rows, cols), 2, a.from(rows+1, cols), ranges)
	},
	"PermuteCols": func(a *arena, rows, cols int) { PermuteCols(a.to(rows, cols), a.from(rows, cols+1), indexes(cols)) },

	"NewThreads":      func(a *arena, rows, cols int) { NewThreads(rows) },
	"ProductTime":     func(a *arena, rows, cols int) { ProductTime(rows, cols, 1) },
	"Divisible":       func(a *arena, rows, cols int) { _ = Divisible(rows, cols) },
	"NewWeights":      func(a *arena, rows, cols int) { NewWeights(a.from(rows, cols)) },
	"Weights.Release": func(a *arena, rows, cols int) { NewWeights(a.from(rows, cols)).Release() },
	"Weights.Matrix": func(a *arena, rows, cols int) {
		w := NewWeights(a.from(rows, cols))
		w.Release()
		Copy(a.to(rows, cols), w.Matrix())
	},
	"Weights.SetWindows": func(a *arena, rows, cols int) { new(Weights).SetWindows(nil, a.from(rows, 3*cols), 3) },
	"Weights.Mul": func(a *arena, rows, cols int) {
		w := NewWeights(a.from(cols, inner(rows)))
		w.Mul(a.from(rows, inner(rows)), Epilogue{}, a.to(rows, cols))
	},
	"Epilogue.Mul": func(a *arena, rows, cols int) {
		w := NewWeights(a.from(cols, inner(rows)))
		x, y := a.from(rows, inner(rows)), a.to(rows, cols)
		(&Epilogue{ReLU: true}).Mul(&x, w, &y)
	},
	"Weights.MulPatches": func(a *arena, rows, cols int) {
		const channels = 3
		w := NewWeights(a.from(cols, 2*channels))
		x := Patches{Pixel: channels, Channels: channels, In: [3]int{1, 1, rows}, Out: [3]int{1, 1, max(rows, 1)}, Size: [3]int{1, 1, 2}, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}
		x.Data = a.in(channels * rows)
		w.MulPatches(&x, 0, &Epilogue{Bias: a.in(cols)}, a.to(rows, cols))
	},
	"Patches.MulPatchesGroups": func(a *arena, rows, cols int) {
		const channels = 3
		w := []*Weights{NewWeights(a.from(cols, 2*channels)), NewWeights(a.from(cols, 2*channels))}
		x := Patches{Pixel: 2 * channels, Channels: channels, In: [3]int{1, 1, rows}, Out: [3]int{1, 1, max(rows, 1)}, Size: [3]int{1, 1, 2}, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}
		x.Data = a.in(2 * channels * rows)
		x.MulPatchesGroups(0, w, &Epilogue{Bias: a.in(2 * cols)}, a.to(rows, 2*cols))
	},
	"Weights.Divisible": func(a *arena, rows, cols int) { NewWeights(a.from(rows, cols)).Divisible() },
	"Epilogue.Repeat": func(a *arena, rows, cols int) {
		x, y := a.from(rows, inner(rows)), a.to(rows, cols)
		(&Epilogue{ReLU: true}).Repeat(&x, NewWeights(a.from(cols, inner(rows))), &y)
	},
	"Repetition.Run": func(a *arena, rows, cols int) {
		x, y := a.from(rows, inner(rows)), a.to(rows, cols)
		if r := (&Epilogue{Bias: a.in(cols)}).Repeat(&x, NewWeights(a.from(cols, inner(rows))), &y); r != nil {
			r.Run()
		}
	},
	"Mul": func(a *arena, rows, cols int) {
		k := inner(rows)
		Mul(a.from(rows, k), a.from(cols, k), Epilogue{
			Accumulate: true, ReLU: true, Bias: a.in(cols), Scale: a.in(cols), Offset: a.in(cols), Alpha: 2, Residual: a.from(rows, cols),
		}, a.to(rows, cols))
	},
	"MulSegments": func(a *arena, rows, cols int) {
		k := inner(cols)
		w, tall := NewWeights(a.from(cols, k)), transposedWeights(a.from(rows+1, cols))
		MulSegments([]Segment{{X: a.from(rows, k), W: w}, {X: a.from(rows, rows+1), W: tall, Continue: true}, {X: a.from(rows, k), W: w}},
			Epilogue{Bias: a.in(cols), BiasFirst: true}, a.to(rows, cols))
	},
	"MulNT": func(a *arena, rows, cols int) {
		k := inner(rows)
		(*Threads)(nil).MulNT(2, a.from(rows, k), a.from(cols, k), 1, a.to(rows, cols))
	},
	"MulNN": func(a *arena, rows, cols int) {
		k := inner(cols)
		MulNN(2, a.from(rows, k), a.from(k, cols), 0, a.to(rows, cols))
	},
	"MulTN": func(a *arena, rows, cols int) {
		k := inner(cols)
		(*Threads)(nil).MulTN(2, a.from(k, rows), a.from(k, cols), 3, a.to(rows, cols))
	},
	"BLAS.Sgemm": sgemm(BLAS{}),
	"OpenBLAS":   sgemm(OpenBLAS()),

	"Precision.String":       func(a *arena, rows, cols int) { _ = Int8.String() },
	"Precision.Levels":       func(a *arena, rows, cols int) { _ = Int16.Levels() },
	"NewQuantizedWeights":    quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) {}),
	"QuantizedWeights.Shape": quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { w.Shape() }),
	"QuantizedRows.Set":      quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) {}),
	"QuantizedRows.SetGroups": func(a *arena, rows, cols int) {
		var q QuantizedRows
		q.SetGroups(Int8+Precision(a.r.IntN(2)), 1+a.r.IntN(20), a.from(rows, cols))
	},
	"QuantizedRows.SetCodes": func(a *arena, rows, cols int) {
		var q QuantizedRows
		q.SetCodes(make([]byte, rows*cols), a.r.IntN(2) == 0, 3, rows, cols)
	},
	"NewIntegerWeights": func(a *arena, rows, cols int) {
		w := NewIntegerWeights(make([]int16, rows*cols), rows, cols)
		_, _ = w.Shape()
		_ = w.Exact()
	},
	"IntegerWeights.Shape": func(*arena, int, int) { NewIntegerWeights(nil, 0, 0).Shape() },
	"IntegerWeights.Exact": func(*arena, int, int) { _ = NewIntegerWeights(nil, 0, 0).Exact() },
	"MulIntegers": func(a *arena, rows, cols int) {
		w := NewIntegerWeights(make([]int16, cols*7), cols, 7)
		var q QuantizedRows
		q.SetCodes(make([]byte, rows*7), false, 3, rows, 7)
		MulIntegers(make([]int32, rows*cols), &q, w, New(rows, cols), nil)
	},
	"MulExact": func(a *arena, rows, cols int) {
		w := NewIntegerWeights(make([]int16, cols*7), cols, 7)
		var q QuantizedRows
		q.SetCodes(make([]byte, rows*7), false, 3, rows, 7)
		MulExact(&q, w, Epilogue{}, a.to(rows, cols))
	},
	"QuantizedRows.SetPatches": patchesEntry(func(p, q *QuantizedRows, rows, cols int) {}),
	"QuantizedRows.SetRun": patchesEntry(func(p, q *QuantizedRows, rows, cols int) {
		for i := range rows {
			p.SetRun(i, cols/2, q, i, 0, cols/2)
		}
	}),
	"QuantizedRows.SetZeros": patchesEntry(func(p, _ *QuantizedRows, rows, cols int) {
		for i := range rows {
			p.SetZeros(i, cols/3, cols-cols/3)
		}
	}),
	"QuantizedRows.Group":     quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { _ = q.Group() }),
	"QuantizedRows.Rows":      quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { _ = q.Rows() }),
	"QuantizedRows.Precision": quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { _ = q.Precision() }),
	"QuantizedRows.Marked":    quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { _ = q.Marked() }),
	"QuantizedRows.IsMarked":  quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { _ = q.Rows() > 0 && q.IsMarked(0) }),
	"QuantizedRows.Step":      quantizedEntry(func(q *QuantizedRows, w *QuantizedWeights) { _ = q.Rows() > 0 && q.Step(0, 0) > 0 }),
	"Quantizable":             func(a *arena, rows, cols int) { Quantizable(Int16, a.from(rows, cols)) },
	"QuantizationSteps":       func(a *arena, rows, cols int) { QuantizationSteps(Int8, a.from(rows, cols)) },
	"MulQuantized": func(a *arena, rows, cols int) {
		k, p := min(inner(cols), 300), Int8+Precision(a.r.IntN(2))
		var q QuantizedRows
		q.Set(p, a.from(rows, k))
		w, _ := NewQuantizedWeights(p, a.from(cols, k))
		MulQuantized([]QuantizedSegment{{Rows: &q, Step: 1, W: w}, {Rows: &q, W: w}}, Epilogue{
			Accumulate: true, ReLU: true, Bias: a.in(cols), Scale: a.in(cols), Offset: a.in(cols), Alpha: 2, Residual: a.from(rows, cols),
		}, a.to(rows, cols))
	},

	"HasDGemm": func(a *arena, rows, cols int) { HasDGemm() },
	"DGemm": func(a *arena, rows, cols int) {
		k := inner(cols)
		factor := func(rows, cols int) Strided {
			if a.r.IntN(2) == 0 {
				return a.factor(cols, rows).transposed()
			}
			return a.factor(rows, cols)
		}
		x, y := factor(rows, k), factor(k, cols)
		c, stride := a.sums(rows, cols)
		(*Threads)(nil).DGemm(2, x, y, c, stride)
	},
	"Float64Map add":     double2("add"),
	"Float64Map sub":     double2("sub"),
	"Float64Map mul":     double2("mul"),
	"Float64Map div":     double2("div"),
	"Float64Map sqrt":    double1("sqrt"),
	"Float64Map abs":     double1("abs"),
	"Float64Map neg":     double1("neg"),
	"Float64Map exp":     double1("exp"),
	"Float64Map expm1":   double1("expm1"),
	"Float64Map sigmoid": double1("sigmoid"),
	"Float64Map tanh":    double1("tanh"),
	"Float64Map log":     double1("log"),
	"Float64Map log1p":   double1("log1p"),
	"Float64Map sin":     double1("sin"),
	"Float64Map cos":     double1("cos"),
	"Largest": func(a *arena, rows, cols int) {
		more := 3
		Largest(a.out(rows*cols), a.in(rows*cols+more), []Tap{{0, 0}, {more, 0}}, Positions{Lines: 1, Each: rows, DstStep: cols, XStep: cols}, cols)
	},
	"Sums": func(a *arena, rows, cols int) {
		more := 3
		Sums(a.out(rows*cols), a.in(rows*cols+more), []Tap{{0, 0}, {more, 0}}, Positions{Lines: 1, Each: rows, DstStep: cols, XStep: cols}, cols)
	},
	"Winograd.Combine": func(a *arena, rows, cols int) {
		lines := func(data []float32) Lines { return Lines{data, rows * cols, cols} }
		Winograd4Out.Combine(lines(a.out(4*rows*cols)), lines(a.in(6*rows*cols)), rows, cols)
	},
	"WinogradWeights": func(*arena, int, int) { WinogradWeights(4, 1, 2, 3) },
	"Depthwise": func(a *arena, rows, cols int) {
		more := 0
		if rows > 0 {
			more = cols
		}
		Depthwise(a.out(rows*cols), a.in(rows*cols+more), a.in(2*more), []Tap{{0, 0}, {more, more}}, Positions{Lines: rows, Each: 1, DstLine: cols, XLine: cols}, cols, a.in(cols), true)
	},
	"Float32Map add":   single("add"),
	"Float32Map sub":   single("sub"),
	"Float32Map mul":   single("mul"),
	"Float32Map div":   single("div"),
	"Float32Map max":   single("max"),
	"Float32Map min":   single("min"),
	"Float32Map sqrt":  single("sqrt"),
	"Float32Map neg":   single("neg"),
	"Float32Map round": single("round"),
	"Float32Map abs":   single("abs"),
	"Float32Map floor": single("floor"),
	"Float32Map ceil":  single("ceil"),
	"Float32Map trunc": single("trunc"),
	"Float32Map erf":   single("erf"),
	"Float32Map erfc":  single("erfc"),
	"Float32Map expm1": single("expm1"),
}

func onto2(f func(dst, src Matrix)) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) { f(a.to(rows, cols), a.from(rows, cols)) }
}

func onto3(f func(dst, x, y Matrix)) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) { f(a.to(rows, cols), a.from(rows, cols), a.from(rows, cols)) }
}

func double1(name string) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) { Float64Map(name)(a.dout(cols), a.din(cols), nil) }
}

func single(name string) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) { Float32Map(name)(a.out(cols), a.in(cols), a.in(cols)) }
}

func double2(name string) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) { Float64Map(name)(a.dout(cols), a.din(cols), a.din(cols)) }
}

// sgemm calls a BLAS with the transposes that the arena draws.
func sgemm(impl blas.Float32) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) {
		k, ta, tb := inner(cols), blas.NoTrans, blas.NoTrans
		aRows, aCols, bRows, bCols := rows, k, k, cols
		if a.r.IntN(2) == 0 {
			ta, aRows, aCols = blas.Trans, aCols, aRows
		}
		if a.r.IntN(2) == 0 {
			tb, bRows, bCols = blas.Trans, bCols, bRows
		}
		x, y, z := a.from(aRows, aCols), a.from(bRows, bCols), a.to(rows, cols)
		if min(x.Stride, y.Stride, z.Stride) == 0 {
			return // not allowed there
		}
		impl.Sgemm(ta, tb, rows, cols, k, 2, x.Data, x.Stride, y.Data, y.Stride, 3, z.Data, z.Stride)
	}
}

// inner returns the length of the sums of a product: zero, for sums in lanes, or for divided sums,
// among others.
func inner(n int) int { return [...]int{48, 33, 1030, 5, 0, 64, 31, 1, 193}[n%9] }

// quantizedEntry quantizes rows and weights.
func quantizedEntry(f func(*QuantizedRows, *QuantizedWeights)) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) {
		var q QuantizedRows
		q.Set(Int8+Precision(a.r.IntN(2)), a.from(rows, cols))
		w, _ := NewQuantizedWeights(Int8+Precision(a.r.IntN(2)), a.from(cols, rows))
		f(&q, w)
	}
}

// patchesEntry makes patches of rows.
func patchesEntry(f func(p, q *QuantizedRows, rows, cols int)) func(a *arena, rows, cols int) {
	return func(a *arena, rows, cols int) {
		var p, q QuantizedRows
		(*Threads)(nil).SetTogether(&q, Int8+Precision(a.r.IntN(2)), a.from(rows, cols))
		if q.Rows() > 0 {
			p.SetPatches(&q, rows, cols)
			f(&p, &q, rows, cols)
		}
	}
}

// indexes returns n indexes, not in order.
func indexes(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(n - i)
	}
	return v
}

// exported returns the names of the exported functions and methods of the package, and of every
// Float64Map and Float32Map.
func exported(t *testing.T) []string {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			name := f.Name.Name
			if name == "Float64Map" {
				for of := range float64Maps {
					names = append(names, name+" "+of)
				}
				continue
			}
			if name == "Float32Map" {
				for of := range float32Maps {
					names = append(names, name+" "+of)
				}
				continue
			}
			if f.Recv != nil {
				of := f.Recv.List[0].Type
				if p, ok := of.(*ast.StarExpr); ok {
					of = p.X
				}
				// Tests of shares compare the methods of Threads with the functions.
				if of := of.(*ast.Ident).Name; !ast.IsExported(of) || of == "Threads" {
					continue
				}
				name = of.(*ast.Ident).Name + "." + name
			}
			names = append(names, name)
		}
	}
	slices.Sort(names) // some functions exist for several processors
	return slices.Compact(names)
}

// TestEntries calls everything exported, with every set of kernels and odd sizes, with arguments
// next to unmapped memory: functions read nothing beyond, and write only their destinations.
func TestEntries(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func(s kernelSet) { bestSet = s }(bestSet)
	names := exported(t)
	for _, name := range names {
		if entries[name] == nil {
			t.Errorf("%s is exported, and not in the table", name)
		}
	}
	for name := range entries {
		// What is exported as a method of Threads only is called with none of them.
		if _, ok := reflect.TypeFor[*Threads]().MethodByName(name); !ok && !slices.Contains(names, name) {
			t.Errorf("%s is in the table, and not exported", name)
		}
	}
	a := newArena(t)
	for _, bestSet = range supportedSets() {
		for name, f := range entries {
			for _, rows := range []int{0, 1, 3, 6, 13, 67} {
				if !longtest.Enabled() && rows > 7 {
					continue
				}
				for _, cols := range []int{1, 17, 33, 0, 7, 16, 24, 65}[:longtest.Of(3, 8)] {
					for seed := range uint64(2) {
						front := seed == 0
						a.reset(seed, front, (rows+cols+int(seed))%2*3)
						if p := panicOf(func() { f(a, rows, cols) }); p != nil {
							t.Fatalf("%s, %s, %d×%d, front %t: %v", bestSet, name, rows, cols, front, p)
						}
						if err := a.intact(); err != nil {
							t.Fatalf("%s, %s, %d×%d, front %t: %v", bestSet, name, rows, cols, front, err)
						}
					}
				}
			}
		}
	}
}

// ignored reports whether an entry may continue with a fault of a matrix: Row looks at one row,
// Same at no more than one element, Valid at none, and BLAS gets the numbers of rows and columns
// separately.
func ignored(name string, f fault) bool {
	switch name {
	case "Row":
		return f == negativeRows || f == manyRows
	case "Same", "Valid":
		return true
	case "BLAS.Sgemm", "OpenBLAS":
		return f >= negativeRows
	}
	return false
}

// TestEntriesRefuse calls every entry with one wrong argument after the other: the entry doesn't
// access memory outside of its arguments, and panics with a message if an argument is too small.
func TestEntriesRefuse(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func(s kernelSet) { bestSet = s }(bestSet)
	a := newArena(t)
	const rows, cols = 12, 66
	for _, bestSet = range supportedSets() {
		for name, f := range entries {
			a.reset(0, false, 2)
			f(a, rows, cols)
			for arg := range len(a.given) {
				for fault := range faults {
					for seed := range uint64(longtest.Of(1, 4)) {
						a.reset(seed, seed%2 == 0, 2)
						a.hostile, a.fault = arg, fault
						p := panicOf(func() { f(a, rows, cols) })
						what := fmt.Sprintf("%s, %s, argument %d, %s, seed %d", bestSet, name, arg, fault, seed)
						if err := a.intact(); err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						text, ok := p.(string)
						switch {
						case p == nil && a.fatal && !ignored(name, fault):
							t.Errorf("%s: does not panic", what)
						case p != nil && !(ok && strings.HasPrefix(text, "kernel: ")) && name != "Row":
							t.Errorf("%s: %v", what, p)
						}
					}
				}
			}
		}
	}
}

// TestNumbersRefused calls entries with wrong numbers.
func TestNumbersRefused(t *testing.T) {
	m, signs := New(4, 5), new(Signs)
	(*Threads)(nil).ReLUSigns(m, m, signs, 0, 4)
	plain := Strided{Rows: 4, Cols: 5, Row: 5, Col: 1, Data: make([]float64, 20)}
	product := func(change func(*Strided)) func() {
		return func() {
			a := plain
			change(&a)
			(*Threads)(nil).DGemm(1, a, Strided{Rows: 5, Cols: 4, Row: 4, Col: 1, Data: make([]float64, 20)}, make([]float64, 16), 4)
		}
	}
	product(func(*Strided) {})()
	for what, f := range map[string]func(){
		"a matrix too large":          func() { New(1<<33, 1<<31) },
		"a matrix of -1 rows":         func() { New(-1, 5) },
		"too many rows of a view":     func() { View(m, 1, math.MaxInt, 0, 5) },
		"too many columns of a view":  func() { View(m, 0, 4, 1, math.MaxInt) },
		"the row behind the last":     func() { View(m, 5, 0, 0, 5) },
		"-1 of a matrix's rows":       func() { EveryNth(m, 0, -1, 1) },
		"rows too far apart":          func() { EveryNth(m, 1, 3, math.MaxInt) },
		"rows that overflow":          func() { EveryNth(m, 0, 5, 1<<62) },
		"one row behind the last":     func() { EveryNth(m, 4, 1, 1) },
		"signs of rows before":        func() { (*Threads)(nil).ReLUSigns(m, m, new(Signs), -1, 2) },
		"signs of rows behind":        func() { (*Threads)(nil).ReLUSigns(m, m, new(Signs), 3, math.MaxInt) },
		"signs that are not there":    func() { (*Threads)(nil).ReLUSignsDeriv(m, m, &Signs{Rows: 4, Cols: 5}, nil) },
		"sums that are too few":       func() { (*Threads)(nil).ReLUSignsDeriv(m, m, signs, make([]float64, 4)) },
		"a row that is not there":     func() { copyRows(m, m, []int32{0, 1, 2, 4}) },
		"rows that are not there":     func() { AddRowRanges(m, 1, m, [][2]int32{{0, math.MaxInt32}, {}, {}, {}}) },
		"no weights":                  func() { MulSegments([]Segment{{X: m}}, Epilogue{}, m) },
		"too few elements":            product(func(a *Strided) { a.First++ }),
		"elements before the first":   product(func(a *Strided) { a.First-- }),
		"rows before the first":       product(func(a *Strided) { a.Row = -5 }),
		"columns before the first":    product(func(a *Strided) { a.Col = -1 }),
		"float64 rows that overflow":  product(func(a *Strided) { a.Row = 1 << 62 }),
		"the least distance of rows":  product(func(a *Strided) { a.Row = math.MinInt }),
		"columns that overflow":       product(func(a *Strided) { a.Col = 1<<62 + 1 }),
		"-4 rows of float64s":         product(func(a *Strided) { a.Rows = -4 }),
		"a product without a factor":  product(func(a *Strided) { a.Data = nil }),
		"a product of other columns":  product(func(a *Strided) { a.Cols = 4 }),
		"a sum that begins too early": func() { (*Threads)(nil).DGemm(1, plain, plain.transposed(), make([]float64, 16), -4) },
	} {
		if text, ok := panicOf(f).(string); !ok || !strings.HasPrefix(text, "kernel: ") {
			t.Errorf("%s: %v", what, panicOf(f))
		}
	}
}

// panicOf returns the panic value of f, or nil.
func panicOf(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}
