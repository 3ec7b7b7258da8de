//go:build !amd64

package kernel

func dAddAVX2(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dSubAVX2(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dMulAVX2(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dDivAVX2(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dSqrtAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dAbsAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dNegAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dExpAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dExpm1AVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dSigmoidAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dTanhAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dLogAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dLog1pAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dSinAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dCosAVX2(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dAddAVX512(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dSubAVX512(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dMulAVX512(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dDivAVX512(dst, x, y *float64, blocks int) { panic(errNoAssembly) }

func dSqrtAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dAbsAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dNegAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dExpAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dExpm1AVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dSigmoidAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dTanhAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dLogAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dLog1pAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dSinAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dCosAVX512(dst, x *float64, blocks int) { panic(errNoAssembly) }

func dTileAVX2(a, b *float64, k int, c *float64, stride uintptr, alpha float64) { panic(errNoAssembly) }

func dTileAVX512(a, b *float64, k int, c *float64, stride uintptr, alpha float64) {
	panic(errNoAssembly)
}
