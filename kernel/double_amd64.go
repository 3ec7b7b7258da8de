package kernel

// Functions of whole blocks of float64s, written by internal/gen.

func dAddAVX2(dst, x, y *float64, blocks int)
func dSubAVX2(dst, x, y *float64, blocks int)
func dMulAVX2(dst, x, y *float64, blocks int)
func dDivAVX2(dst, x, y *float64, blocks int)
func dSqrtAVX2(dst, x *float64, blocks int)
func dAbsAVX2(dst, x *float64, blocks int)
func dNegAVX2(dst, x *float64, blocks int)
func dExpAVX2(dst, x *float64, blocks int)
func dExpm1AVX2(dst, x *float64, blocks int)
func dSigmoidAVX2(dst, x *float64, blocks int)
func dTanhAVX2(dst, x *float64, blocks int)
func dLogAVX2(dst, x *float64, blocks int)
func dLog1pAVX2(dst, x *float64, blocks int)
func dSinAVX2(dst, x *float64, blocks int)
func dCosAVX2(dst, x *float64, blocks int)

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

// dTileAVX2 adds alpha·a·b to a tile of c. a and b are packed.
//
//go:noescape
func dTileAVX2(a, b *float64, k int, c *float64, stride uintptr, alpha float64)

//go:noescape
func dTileAVX512(a, b *float64, k int, c *float64, stride uintptr, alpha float64)
