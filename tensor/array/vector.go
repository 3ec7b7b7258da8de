package array

import (
	"math"
	"sync"

	"github.com/nnopt/nnopt/internal/kernel"
)

// wideBlocks has blocks to compute in. Variables would be on the heap: functions of the tables may keep what
// they are given, as far as the compiler knows.
var wideBlocks = sync.Pool{New: func() any { return new([blockSize]float64) }}

// useVectors puts the vector code of package kernel into the tables of float64 and float32.
// Functions that it lacks for float32 are computed in float64.
func useVectors(d *[NumOpcodes]blockFunc[float64], f *[NumOpcodes]blockFunc[float32]) {
	for _, o := range []Opcode{Add, Sub, Mul, Abs, Neg, Sqrt, Exp, Expm1, Sigmoid, Tanh, Log, Log1p, Sin, Cos} {
		d[o] = kernel.Float64Map(o.String())
	}
	d[TrueDiv], d[Softplus] = kernel.Float64Map("div"), softplusBlock
	mul := kernel.Float64Map("mul")
	d[Sqr] = func(dst, a, _ []float64) { mul(dst, a, a) }
	for _, o := range []Opcode{Log, Log1p, Sin, Cos, Softplus} {
		fn := d[o]
		f[o] = func(dst, a, _ []float32) {
			a = a[:len(dst)]
			buf := wideBlocks.Get().(*[blockSize]float64)
			defer wideBlocks.Put(buf)
			for len(dst) > 0 {
				wide := buf[:min(len(dst), blockSize)]
				for i := range wide {
					wide[i] = float64(a[i])
				}
				fn(wide, wide, nil)
				for i, v := range wide {
					dst[i] = float32(v)
				}
				dst, a = dst[len(wide):], a[len(wide):]
			}
		}
	}
	f[Tanh] = func(dst, a, _ []float32) { kernel.TanhVec(dst, a[:len(dst)]) }
	f[Sigmoid] = func(dst, a, _ []float32) { kernel.SigmoidVec(dst, a[:len(dst)]) }
	f[Exp] = func(dst, a, _ []float32) { kernel.ExpVec(dst, a[:len(dst)], 0) }
	for o, name := range map[Opcode]string{Add: "add", Sub: "sub", Mul: "mul", TrueDiv: "div", Maximum: "max", Minimum: "min", Abs: "abs", Neg: "neg", Round: "round", Floor: "floor", Ceil: "ceil", Trunc: "trunc", Sqrt: "sqrt", Erf: "erf", Erfc: "erfc", Expm1: "expm1"} {
		f[o] = kernel.Float32Map(name)
	}
	d[Inv], f[Inv] = inverse(d[TrueDiv]), inverse(f[TrueDiv])
	f[Sgn] = func(dst, a, _ []float32) {
		a = a[:len(dst)]
		for i, v := range a {
			// Without a branch for its sign, which no processor foresees for random numbers. Zeros get no sign, and NaN
			// stays.
			if v == 0 || v != v {
				dst[i] = v + 0
			} else {
				dst[i] = math.Float32frombits(math.Float32bits(v)&(1<<31) | math.Float32bits(1))
			}
		}
	}
	f[Sqr] = func(dst, a, _ []float32) { kernel.MulVec(dst, a[:len(dst)], a) }
}

// inverse returns the function that divides 1 by vectors.
func inverse[T float](divide blockFunc[T]) blockFunc[T] {
	var ones [blockSize]T
	fill(ones[:], 1)
	return func(dst, a, _ []T) {
		for len(dst) > 0 {
			n := min(len(dst), len(ones))
			divide(dst[:n], ones[:n], a[:n])
			dst, a = dst[n:], a[n:]
		}
	}
}

// rowSums32 is sums of float32s in float64.
func rowSums32() folder[float32, float64] {
	f := sums[float32, float64]()
	f.rows, f.join = kernel.AddVecToDoubles, addDoubles
	return f
}

func rowSums64() folder[float64, float64] {
	f := sums[float64, float64]()
	f.rows, f.join = addDoubles, addDoubles
	return f
}

func addDoubles(acc, x []float64) { addBlock(acc, acc, x) }

// Functions of vectors of float64s.
var (
	addBlock    = kernel.Float64Map("add")
	divideBlock = kernel.Float64Map("div")
	expBlock    = kernel.Float64Map("exp")
	log1pBlock  = kernel.Float64Map("log1p")
)

// softplusBlock is softplus for a block.
func softplusBlock(dst, x, _ []float64) {
	x = x[:len(dst)]
	buf := wideBlocks.Get().(*[blockSize]float64)
	defer wideBlocks.Put(buf)
	for len(dst) > 0 {
		// log(1+exp(x)) = max(x, 0) + log1p(exp(-|x|)), in which exp can't overflow and log1p keeps small
		// terms.
		t := buf[:min(len(dst), blockSize)]
		for i := range t {
			t[i] = -math.Abs(x[i])
		}
		expBlock(t, t, nil)
		log1pBlock(t, t, nil)
		for i, v := range t {
			dst[i] = max(x[i], 0) + v
		}
		dst, x = dst[len(t):], x[len(t):]
	}
}
