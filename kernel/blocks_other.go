//go:build !amd64 && !arm64

package kernel

func expBlocks(dst, src *float32, blocks int, shift float32, sums *[16]float64) { panic(errNoAssembly) }
func expSumBlocks(src *float32, blocks int, shift float32, sums *[16]float64)   { panic(errNoAssembly) }
func logSoftmaxDerivBlocks(dst, y, dy *float32, blocks int, sum float32)        { panic(errNoAssembly) }
func sigmoidBlocks(dst, src *float32, blocks int)                               { panic(errNoAssembly) }
func tanhBlocks(dst, src *float32, blocks int)                                  { panic(errNoAssembly) }
func addBlocks(dst, x *float32, blocks int)                                     { panic(errNoAssembly) }
func addScaledBlocks(dst, x *float32, blocks int, alpha float32)                { panic(errNoAssembly) }
func addNumberBlocks(dst, x *float32, blocks int, alpha float32)                { panic(errNoAssembly) }
func fmaBlocks(dst, x *float32, blocks int, alpha float32)                      { panic(errNoAssembly) }
func scaleBlocks(dst, x *float32, blocks int, alpha float32)                    { panic(errNoAssembly) }
func scaleFloorBlocks(dst, x *float32, blocks int, alpha float32, floor float32) {
	panic(errNoAssembly)
}
func mulBlocks(dst, x, y *float32, blocks int)                              { panic(errNoAssembly) }
func addMulBlocks(dst, x, y *float32, blocks int)                           { panic(errNoAssembly) }
func addScaledMulBlocks(dst, x, y *float32, blocks int, alpha float32)      { panic(errNoAssembly) }
func mulAddBlocks(dst, x, y, z *float32, blocks int)                        { panic(errNoAssembly) }
func subMulBlocks(dst, x, y, z *float32, blocks int)                        { panic(errNoAssembly) }
func centreDerivBlocks(dst, dy, y, mean, scale, slope *float32, blocks int) { panic(errNoAssembly) }
func reluSignsBlocks(dst, x *float32, signs *uint16, blocks int)            { panic(errNoAssembly) }
func signsDerivBlocks(dst, dy *float32, signs *uint16, blocks int)          { panic(errNoAssembly) }
func reluBlocks(dst, x *float32, blocks int)                                { panic(errNoAssembly) }
func reluDerivBlocks(dst, y, dy *float32, blocks int)                       { panic(errNoAssembly) }
func sigmoidDerivBlocks(dst, y, dy *float32, blocks int)                    { panic(errNoAssembly) }
func tanhDerivBlocks(dst, y, dy *float32, blocks int)                       { panic(errNoAssembly) }
func colSumsBlocks(dst *float32, alpha float32, x *float32, stride uintptr, rows, groups int) {
	panic(errNoAssembly)
}
func colProductsBlocks(dst *float64, x, y *float32, strideX, strideY uintptr, pairs int) {
	panic(errNoAssembly)
}
func firstMomentsBlocks(sum *float32, product *float64, x0, x1, y0, y1 *float32, blocks int) {
	panic(errNoAssembly)
}
func nextMomentsBlocks(sum *float32, product *float64, x0, x1, y0, y1 *float32, blocks int) {
	panic(errNoAssembly)
}
func sumsBlocks(sum *float64, x *float32, blocks int)        { panic(errNoAssembly) }
func squaresBlocks(sum *float64, x *float32, blocks int)     { panic(errNoAssembly) }
func dotBlocks(x, y *float32, blocks int, sums *[16]float32) { panic(errNoAssembly) }
func maxBlocks(x *float32, blocks int, sums *[16]float32)    { panic(errNoAssembly) }

var (
	dAddBlocks, dSubBlocks, dMulBlocks, dDivBlocks func(dst, x, y *float64, blocks int)
	dSqrtBlocks, dAbsBlocks, dNegBlocks, dExpBlocks, dExpm1Blocks, dSigmoidBlocks,
	dTanhBlocks, dLogBlocks, dLog1pBlocks, dSinBlocks, dCosBlocks func(dst, x *float64, blocks int)
)
