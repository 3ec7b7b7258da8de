package kernel

// Functions of whole blocks of float32s, written by internal/gen.

//go:noescape
func expAVX2(dst, src *float32, blocks int, shift float32, sums *[16]float64)

//go:noescape
func expSumAVX2(src *float32, blocks int, shift float32, sums *[16]float64)

//go:noescape
func logSoftmaxDerivAVX2(dst, y, dy *float32, blocks int, sum float32)

//go:noescape
func sigmoidAVX2(dst, src *float32, blocks int)

//go:noescape
func tanhAVX2(dst, src *float32, blocks int)

//go:noescape
func addAVX2(dst, x *float32, blocks int)

//go:noescape
func addScaledAVX2(dst, x *float32, blocks int, alpha float32)

//go:noescape
func addNumberAVX2(dst, x *float32, blocks int, alpha float32)

//go:noescape
func fmaAVX2(dst, x *float32, blocks int, alpha float32)

//go:noescape
func scaleAVX2(dst, x *float32, blocks int, alpha float32)

//go:noescape
func scaleFloorAVX2(dst, x *float32, blocks int, alpha float32, floor float32)

//go:noescape
func mulAVX2(dst, x, y *float32, blocks int)

//go:noescape
func addMulAVX2(dst, x, y *float32, blocks int)

//go:noescape
func addScaledMulAVX2(dst, x, y *float32, blocks int, alpha float32)

//go:noescape
func mulAddAVX2(dst, x, y, z *float32, blocks int)

//go:noescape
func subMulAVX2(dst, x, y, z *float32, blocks int)

//go:noescape
func centreDerivAVX2(dst, dy, y, mean, scale, slope *float32, blocks int)

//go:noescape
func reluSignsAVX2(dst, x *float32, signs *uint16, blocks int)

//go:noescape
func signsDerivAVX2(dst, dy *float32, signs *uint16, blocks int)

//go:noescape
func reluAVX2(dst, x *float32, blocks int)

//go:noescape
func reluDerivAVX2(dst, y, dy *float32, blocks int)

//go:noescape
func sigmoidDerivAVX2(dst, y, dy *float32, blocks int)

//go:noescape
func tanhDerivAVX2(dst, y, dy *float32, blocks int)

//go:noescape
func colSumsAVX2(dst *float32, alpha float32, x *float32, stride uintptr, rows, groups int)

//go:noescape
func colProductsAVX2(dst *float64, x, y *float32, strideX, strideY uintptr, pairs int)

//go:noescape
func sumsAVX2(sum *float64, x *float32, blocks int)

//go:noescape
func squaresAVX2(sum *float64, x *float32, blocks int)

//go:noescape
func dotAVX2(x, y *float32, blocks int, sums *[16]float32)

//go:noescape
func maxAVX2(x *float32, blocks int, sums *[16]float32)

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
