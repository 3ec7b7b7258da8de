package array

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// useVectors puts the vector code of package kernel into the tables of float64 and float32.
// Functions that it lacks for float32 are computed in float64.
func useVectors(d *[NumOpcodes]blockFunc[float64], f *[NumOpcodes]blockFunc[float32]) {
	for _, o := range []Opcode{Add, Sub, Mul, Abs, Neg, Sqrt, Exp, Expm1, Sigmoid, Tanh, Log, Log1p, Sin, Cos} {
		d[o] = kernel.Float64Map(o.String())
	}
	d[TrueDiv], d[Softplus] = kernel.Float64Map("div"), softplusBlock
	mul := kernel.Float64Map("mul")
	d[Sqr] = func(dst, a, _ []float64) { mul(dst, a, a) }
	for _, o := range []Opcode{Exp, Expm1, Sigmoid, Tanh, Log, Log1p, Sin, Cos, Softplus} {
		fn := d[o]
		f[o] = func(dst, a, _ []float32) {
			a = a[:len(dst)]
			var buf [blockSize]float64
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
	for o, name := range map[Opcode]string{Add: "add", Sub: "sub", Mul: "mul", TrueDiv: "div", Maximum: "max", Minimum: "min", Sqrt: "sqrt"} {
		fn := kernel.Float32Map(name)
		f[o] = func(dst, a, b []float32) { fn(dst, a[:len(dst)], b) }
	}
	f[Sqr] = func(dst, a, _ []float32) { kernel.MulVec(dst, a[:len(dst)], a) }
	f[Erfc] = erfcBlock
}

// rowSums32 is sums of float32s in float64.
func rowSums32() folder[float32, float64] {
	f := sums[float32, float64]()
	f.rows = kernel.AddVecToDoubles
	return f
}

func rowSums64() folder[float64, float64] {
	f := sums[float64, float64]()
	add := kernel.Float64Map("add")
	f.rows = func(acc, x []float64) { add(acc, acc, x) }
	return f
}

// Functions of vectors of float64s.
var (
	expBlock   = kernel.Float64Map("exp")
	log1pBlock = kernel.Float64Map("log1p")
)

// erfcSeries are the coefficients of a polynomial of t = 1/(1 + |x|/2), the lowest first, which is
// erfc(|x|)·exp(x²)/t up to 10.3, where erfc(x) is zero as a float32. Its relative error is 3.6e-9 at
// most; it was fitted to that by least squares with weights that grow with the error (2026-11-25).
var erfcSeries = [...]float64{
	0.2820887530718467, 0.28224698366653533, 0.245233464319286, 0.18528590191526395, 0.05598540545059369, 0.032788193055475534,
	-0.017816207674406392, -0.29394200677503124, 0.3843247311830523, -0.19215064501589815, 0.03595543034736034,
}

// erfcBlock is erfc of float32s. The square of a float32 is exact in double precision, so that tails
// are as precise as the rest.
func erfcBlock(dst, x, _ []float32) {
	x = x[:len(dst)]
	var buf [blockSize]float64
	for len(dst) > 0 {
		e := buf[:min(len(dst), blockSize)]
		for i := range e {
			v := float64(x[i])
			e[i] = -float64(v * v)
		}
		expBlock(e, e, nil)
		for i, e := range e {
			v := float64(x[i])
			t := 1 / (1 + float64(0.5*math.Abs(v)))
			p := erfcSeries[len(erfcSeries)-1]
			for k := len(erfcSeries) - 2; k >= 0; k-- {
				p = float64(p*t) + erfcSeries[k]
			}
			p = float64(float64(p*t) * e)
			if v < 0 {
				p = 2 - p
			}
			dst[i] = float32(p)
		}
		dst, x = dst[len(e):], x[len(e):]
	}
}

// softplusBlock is softplus for a block.
func softplusBlock(dst, x, _ []float64) {
	x = x[:len(dst)]
	var buf [blockSize]float64
	for len(dst) > 0 {
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
