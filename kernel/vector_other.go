//go:build !amd64

package kernel

const errNoAssembly = "kernel: no assembly for this processor"

func expAVX2(dst, src *float32, blocks int, shift float32, sums *[16]float64)  { panic(errNoAssembly) }
func expSumAVX2(src *float32, blocks int, shift float32, sums *[16]float64)    { panic(errNoAssembly) }
func logSoftmaxDerivAVX2(dst, y, dy *float32, blocks int, sum float32)         { panic(errNoAssembly) }
func sigmoidAVX2(dst, src *float32, blocks int)                                { panic(errNoAssembly) }
func tanhAVX2(dst, src *float32, blocks int)                                   { panic(errNoAssembly) }
func addAVX2(dst, x *float32, blocks int)                                      { panic(errNoAssembly) }
func addScaledAVX2(dst, x *float32, blocks int, alpha float32)                 { panic(errNoAssembly) }
func addNumberAVX2(dst, x *float32, blocks int, alpha float32)                 { panic(errNoAssembly) }
func fmaAVX2(dst, x *float32, blocks int, alpha float32)                       { panic(errNoAssembly) }
func scaleAVX2(dst, x *float32, blocks int, alpha float32)                     { panic(errNoAssembly) }
func scaleFloorAVX2(dst, x *float32, blocks int, alpha float32, floor float32) { panic(errNoAssembly) }
func mulAVX2(dst, x, y *float32, blocks int)                                   { panic(errNoAssembly) }
func addMulAVX2(dst, x, y *float32, blocks int)                                { panic(errNoAssembly) }
func addScaledMulAVX2(dst, x, y *float32, blocks int, alpha float32)           { panic(errNoAssembly) }
func mulAddAVX2(dst, x, y, z *float32, blocks int)                             { panic(errNoAssembly) }
func subMulAVX2(dst, x, y, z *float32, blocks int)                             { panic(errNoAssembly) }
func centreDerivAVX2(dst, dy, y, mean, scale, slope *float32, blocks int)      { panic(errNoAssembly) }
func reluSignsAVX2(dst, x *float32, signs *uint16, blocks int)                 { panic(errNoAssembly) }
func signsDerivAVX2(dst, dy *float32, signs *uint16, blocks int)               { panic(errNoAssembly) }
func reluAVX2(dst, x *float32, blocks int)                                     { panic(errNoAssembly) }
func reluDerivAVX2(dst, y, dy *float32, blocks int)                            { panic(errNoAssembly) }
func sigmoidDerivAVX2(dst, y, dy *float32, blocks int)                         { panic(errNoAssembly) }
func tanhDerivAVX2(dst, y, dy *float32, blocks int)                            { panic(errNoAssembly) }
func colSumsAVX2(dst *float32, alpha float32, x *float32, stride uintptr, rows, groups int) {
	panic(errNoAssembly)
}
func colProductsAVX2(dst *float64, x, y *float32, strideX, strideY uintptr, pairs int) {
	panic(errNoAssembly)
}
func sumsAVX2(sum *float64, x *float32, blocks int)                             { panic(errNoAssembly) }
func squaresAVX2(sum *float64, x *float32, blocks int)                          { panic(errNoAssembly) }
func dotAVX2(x, y *float32, blocks int, sums *[16]float32)                      { panic(errNoAssembly) }
func maxAVX2(x *float32, blocks int, sums *[16]float32)                         { panic(errNoAssembly) }
func expAVX512(dst, src *float32, blocks int, shift float32, sums *[16]float64) { panic(errNoAssembly) }
func expSumAVX512(src *float32, blocks int, shift float32, sums *[16]float64)   { panic(errNoAssembly) }
func logSoftmaxDerivAVX512(dst, y, dy *float32, blocks int, sum float32)        { panic(errNoAssembly) }
func sigmoidAVX512(dst, src *float32, blocks int)                               { panic(errNoAssembly) }
func tanhAVX512(dst, src *float32, blocks int)                                  { panic(errNoAssembly) }
