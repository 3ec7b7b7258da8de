package kernel

// For whole blocks of float64s. internal/gen writes them.

//go:noescape
func dAddAVX2(dst, x, y *float64, blocks int)

//go:noescape
func dSubAVX2(dst, x, y *float64, blocks int)

//go:noescape
func dMulAVX2(dst, x, y *float64, blocks int)

//go:noescape
func dDivAVX2(dst, x, y *float64, blocks int)

//go:noescape
func dSqrtAVX2(dst, x *float64, blocks int)

//go:noescape
func dAbsAVX2(dst, x *float64, blocks int)

//go:noescape
func dNegAVX2(dst, x *float64, blocks int)

//go:noescape
func dExpAVX2(dst, x *float64, blocks int)

//go:noescape
func dExpm1AVX2(dst, x *float64, blocks int)

//go:noescape
func dSigmoidAVX2(dst, x *float64, blocks int)

//go:noescape
func dTanhAVX2(dst, x *float64, blocks int)

//go:noescape
func dLogAVX2(dst, x *float64, blocks int)

//go:noescape
func dLog1pAVX2(dst, x *float64, blocks int)

//go:noescape
func dSinAVX2(dst, x *float64, blocks int)

//go:noescape
func dCosAVX2(dst, x *float64, blocks int)

//go:noescape
func dAddAVX512(dst, x, y *float64, blocks int)

//go:noescape
func dSubAVX512(dst, x, y *float64, blocks int)

//go:noescape
func dMulAVX512(dst, x, y *float64, blocks int)

//go:noescape
func dDivAVX512(dst, x, y *float64, blocks int)

//go:noescape
func dSqrtAVX512(dst, x *float64, blocks int)

//go:noescape
func dAbsAVX512(dst, x *float64, blocks int)

//go:noescape
func dNegAVX512(dst, x *float64, blocks int)

//go:noescape
func dExpAVX512(dst, x *float64, blocks int)

//go:noescape
func dExpm1AVX512(dst, x *float64, blocks int)

//go:noescape
func dSigmoidAVX512(dst, x *float64, blocks int)

//go:noescape
func dTanhAVX512(dst, x *float64, blocks int)

//go:noescape
func dLogAVX512(dst, x *float64, blocks int)

//go:noescape
func dLog1pAVX512(dst, x *float64, blocks int)

//go:noescape
func dSinAVX512(dst, x *float64, blocks int)

//go:noescape
func dCosAVX512(dst, x *float64, blocks int)

// Tiles of products.

//go:noescape
func dTileAVX2(a, b *float64, k int, c *float64, stride uintptr, alpha float64)

//go:noescape
func dTileAVX512(a, b *float64, k int, c *float64, stride uintptr, alpha float64)
