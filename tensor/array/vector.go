package array

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// useVectors puts the vector code of package kernel into the tables of float64 and float32.
// Functions that it lacks for float32 are computed in float64.
func useVectors(d *[NumOpcodes]blockFunc[float64], f *[NumOpcodes]blockFunc[float32]) {
	d[Add], d[Sub], d[Mul], d[TrueDiv] = kernel.DAdd, kernel.DSub, kernel.DMul, kernel.DDiv
	d[Abs] = func(dst, a, _ []float64) { kernel.DAbs(dst, a) }
	d[Neg] = func(dst, a, _ []float64) { kernel.DNeg(dst, a) }
	d[Sqr] = func(dst, a, _ []float64) { kernel.DMul(dst, a, a) }
	for o, fn := range map[Opcode]func(dst, x []float64){
		Sqrt: kernel.DSqrt, Exp: kernel.DExp, Expm1: kernel.DExpm1, Sigmoid: kernel.DSigmoid, Tanh: kernel.DTanh,
		Log: kernel.DLog, Log1p: kernel.DLog1p, Sin: kernel.DSin, Cos: kernel.DCos, Softplus: softplusBlock,
	} {
		d[o] = func(dst, a, _ []float64) { fn(dst, a) }
		f[o] = func(dst, a, _ []float32) {
			a = a[:len(dst)]
			var buf [blockSize]float64
			for len(dst) > 0 {
				wide := buf[:min(len(dst), blockSize)]
				for i := range wide {
					wide[i] = float64(a[i])
				}
				fn(wide, wide)
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
	f[Mul] = func(dst, a, b []float32) { kernel.MulVec(dst, a[:len(dst)], b) }
	f[Sqr] = func(dst, a, _ []float32) { kernel.MulVec(dst, a[:len(dst)], a) }
}

// rowSums32 is sums of float32s in float64.
func rowSums32() folder[float32, float64] {
	f := sums[float32, float64]()
	f.rows = kernel.AddVecToDoubles
	return f
}

func rowSums64() folder[float64, float64] {
	f := sums[float64, float64]()
	f.rows = func(acc, x []float64) { kernel.DAdd(acc, acc, x) }
	return f
}

// softplusBlock is softplus for a block.
func softplusBlock(dst, x []float64) {
	x = x[:len(dst)]
	var buf [blockSize]float64
	for len(dst) > 0 {
		t := buf[:min(len(dst), blockSize)]
		for i := range t {
			t[i] = -math.Abs(x[i])
		}
		kernel.DExp(t, t)
		kernel.DLog1p(t, t)
		for i, v := range t {
			dst[i] = max(x[i], 0) + v
		}
		dst, x = dst[len(t):], x[len(t):]
	}
}
