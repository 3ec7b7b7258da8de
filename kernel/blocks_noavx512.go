//go:build !amd64

package kernel

const errNoAssembly = "kernel: no assembly for this processor"

func expAVX512(dst, src *float32, blocks int, shift float32, sums *[16]float64) { panic(errNoAssembly) }
func expSumAVX512(src *float32, blocks int, shift float32, sums *[16]float64)   { panic(errNoAssembly) }
func logSoftmaxDerivAVX512(dst, y, dy *float32, blocks int, sum float32)        { panic(errNoAssembly) }
func sigmoidAVX512(dst, src *float32, blocks int)                               { panic(errNoAssembly) }
func tanhAVX512(dst, src *float32, blocks int)                                  { panic(errNoAssembly) }

var (
	dAddAVX512, dSubAVX512, dMulAVX512, dDivAVX512 func(dst, x, y *float64, blocks int)
	dSqrtAVX512, dAbsAVX512, dNegAVX512, dExpAVX512, dExpm1AVX512, dSigmoidAVX512,
	dTanhAVX512, dLogAVX512, dLog1pAVX512, dSinAVX512, dCosAVX512 func(dst, x *float64, blocks int)
)
