package kernel

// Functions of whole blocks with AVX-512, written by internal/gen.

//go:noescape
func expAVX512(dst, src *float32, blocks int, shift float32, sums *[16]float64)

//go:noescape
func expSumAVX512(src *float32, blocks int, shift float32, sums *[16]float64)

//go:noescape
func logSoftmaxDerivAVX512(dst, y, dy *float32, blocks int, sum float32)

//go:noescape
func sigmoidAVX512(dst, src *float32, blocks int)

//go:noescape
func tanhAVX512(dst, src *float32, blocks int)

func dAddAVX512(dst, x, y *float64, blocks int)
func dSubAVX512(dst, x, y *float64, blocks int)
func dMulAVX512(dst, x, y *float64, blocks int)
func dDivAVX512(dst, x, y *float64, blocks int)
func dSqrtAVX512(dst, x *float64, blocks int)
func dAbsAVX512(dst, x *float64, blocks int)
func dNegAVX512(dst, x *float64, blocks int)
func dExpAVX512(dst, x *float64, blocks int)
func dExpm1AVX512(dst, x *float64, blocks int)
func dSigmoidAVX512(dst, x *float64, blocks int)
func dTanhAVX512(dst, x *float64, blocks int)
func dLogAVX512(dst, x *float64, blocks int)
func dLog1pAVX512(dst, x *float64, blocks int)
func dSinAVX512(dst, x *float64, blocks int)
func dCosAVX512(dst, x *float64, blocks int)
