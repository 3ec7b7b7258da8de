//go:build amd64 || arm64

package kernel

// Functions of whole blocks of float32s, written by internal/gen, for AVX2 or NEON. AVX-512 has some
// of its own.

//go:noescape
func expBlocks(dst, src *float32, blocks int, shift float32, sums *[16]float64)

//go:noescape
func expSumBlocks(src *float32, blocks int, shift float32, sums *[16]float64)

//go:noescape
func logSoftmaxDerivBlocks(dst, y, dy *float32, blocks int, sum float32)

//go:noescape
func sigmoidBlocks(dst, src *float32, blocks int)

//go:noescape
func tanhBlocks(dst, src *float32, blocks int)

//go:noescape
func addBlocks(dst, x *float32, blocks int)

//go:noescape
func addScaledBlocks(dst, x *float32, blocks int, alpha float32)

//go:noescape
func addNumberBlocks(dst, x *float32, blocks int, alpha float32)

//go:noescape
func fmaBlocks(dst, x *float32, blocks int, alpha float32)

//go:noescape
func scaleBlocks(dst, x *float32, blocks int, alpha float32)

//go:noescape
func scaleFloorBlocks(dst, x *float32, blocks int, alpha float32, floor float32)

//go:noescape
func mulBlocks(dst, x, y *float32, blocks int)

//go:noescape
func addMulBlocks(dst, x, y *float32, blocks int)

//go:noescape
func addScaledMulBlocks(dst, x, y *float32, blocks int, alpha float32)

//go:noescape
func mulAddBlocks(dst, x, y, z *float32, blocks int)

//go:noescape
func subMulBlocks(dst, x, y, z *float32, blocks int)

//go:noescape
func centreDerivBlocks(dst, dy, y, mean, scale, slope *float32, blocks int)

//go:noescape
func reluSignsBlocks(dst, x *float32, signs *uint16, blocks int)

//go:noescape
func signsDerivBlocks(dst, dy *float32, signs *uint16, blocks int)

//go:noescape
func reluBlocks(dst, x *float32, blocks int)

//go:noescape
func reluDerivBlocks(dst, y, dy *float32, blocks int)

//go:noescape
func sigmoidDerivBlocks(dst, y, dy *float32, blocks int)

//go:noescape
func tanhDerivBlocks(dst, y, dy *float32, blocks int)

//go:noescape
func colSumsBlocks(dst *float32, alpha float32, x *float32, stride uintptr, rows, groups int)

//go:noescape
func colProductsBlocks(dst *float64, x, y *float32, strideX, strideY uintptr, pairs int)

//go:noescape
func firstMomentsBlocks(sum *float32, product *float64, x0, x1, y0, y1 *float32, blocks int)

//go:noescape
func nextMomentsBlocks(sum *float32, product *float64, x0, x1, y0, y1 *float32, blocks int)

//go:noescape
func sumsBlocks(sum *float64, x *float32, blocks int)

//go:noescape
func squaresBlocks(sum *float64, x *float32, blocks int)

//go:noescape
func dotBlocks(x, y *float32, blocks int, sums *[16]float32)

//go:noescape
func maxBlocks(x *float32, blocks int, sums *[16]float32)

// Functions of whole blocks of float64s.

func dAddBlocks(dst, x, y *float64, blocks int)
func dSubBlocks(dst, x, y *float64, blocks int)
func dMulBlocks(dst, x, y *float64, blocks int)
func dDivBlocks(dst, x, y *float64, blocks int)
func dSqrtBlocks(dst, x *float64, blocks int)
func dAbsBlocks(dst, x *float64, blocks int)
func dNegBlocks(dst, x *float64, blocks int)
func dExpBlocks(dst, x *float64, blocks int)
func dExpm1Blocks(dst, x *float64, blocks int)
func dSigmoidBlocks(dst, x *float64, blocks int)
func dTanhBlocks(dst, x *float64, blocks int)
func dLogBlocks(dst, x *float64, blocks int)
func dLog1pBlocks(dst, x *float64, blocks int)
func dSinBlocks(dst, x *float64, blocks int)
func dCosBlocks(dst, x *float64, blocks int)
