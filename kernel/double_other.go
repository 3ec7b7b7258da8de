//go:build !amd64

package kernel

var (
	dAddAVX2, dSubAVX2, dMulAVX2, dDivAVX2 func(dst, x, y *float64, blocks int)
	dSqrtAVX2, dAbsAVX2, dNegAVX2, dExpAVX2, dExpm1AVX2, dSigmoidAVX2,
	dTanhAVX2, dLogAVX2, dLog1pAVX2, dSinAVX2, dCosAVX2 func(dst, x *float64, blocks int)
	dAddAVX512, dSubAVX512, dMulAVX512, dDivAVX512 func(dst, x, y *float64, blocks int)
	dSqrtAVX512, dAbsAVX512, dNegAVX512, dExpAVX512, dExpm1AVX512, dSigmoidAVX512,
	dTanhAVX512, dLogAVX512, dLog1pAVX512, dSinAVX512, dCosAVX512 func(dst, x *float64, blocks int)
)

func dTileAVX2(a, b *float64, k int, c *float64, stride uintptr, alpha float64) { panic(errNoAssembly) }
func dTileAVX512(a, b *float64, k int, c *float64, stride uintptr, alpha float64) {
	panic(errNoAssembly)
}
