package kernel

import "math"

// block is how many elements the assembly for vectors takes at a time. Reductions keep as many
// partial results, one for the elements whose indexes have the same remainder, so that a result
// depends on the length alone.
const block = 16

// The functions below use assembly for whole blocks, and Go for the rest. Both compute the same
// bits: every product and every sum is rounded by itself. Conversions keep compilers from fusing
// them.

// wholeBlocks is how many blocks of n elements the assembly takes.
func wholeBlocks(n int) int {
	if !bestSet.assembly() {
		return 0
	}
	return n / block
}

// wide returns the function for AVX-512, or the one for narrower vectors.
func wide[F any](avx512, narrow F) F {
	if bestSet == avx512Set {
		return avx512
	}
	return narrow
}

// addVec adds x to dst.
func addVec(dst, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		addBlocks(&dst[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += x[j]
	}
}

// addScaled adds alpha·x to dst.
func addScaled(dst, x []float32, alpha float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		addScaledBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += float32(alpha * x[j])
	}
}

// addNumber sets dst to x + alpha.
func addNumber(dst, x []float32, alpha float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		addNumberBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = x[j] + alpha
	}
}

// FMAVec adds alpha·x to dst, with one rounding.
func FMAVec(dst []float32, alpha float32, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		fmaBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = fma32(alpha, x[j], dst[j])
	}
}

// ScaleVec sets dst to alpha·x.
func ScaleVec(dst []float32, alpha float32, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		scaleBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = alpha * x[j]
	}
}

// scaleFloor sets dst to alpha·x, raised to floor. NaN stays.
func scaleFloor(dst, x []float32, alpha, floor float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		scaleFloorBlocks(&dst[0], &x[0], n, alpha, floor)
	}
	for j := n * block; j < len(x); j++ {
		v := alpha * x[j]
		if v < floor {
			v = floor
		}
		dst[j] = v
	}
}

// MulVec sets dst to x·y, element by element.
func MulVec(dst, x, y []float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), wholeBlocks(len(x))
	if n > 0 {
		mulBlocks(&dst[0], &x[0], &y[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = x[j] * y[j]
	}
}

// AddMulVec adds x·y to dst, element by element.
func AddMulVec(dst, x, y []float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), wholeBlocks(len(x))
	if n > 0 {
		addMulBlocks(&dst[0], &x[0], &y[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += float32(x[j] * y[j])
	}
}

// addScaledMul adds alpha·x·y to dst.
func addScaledMul(dst, x, y []float32, alpha float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), wholeBlocks(len(x))
	if n > 0 {
		addScaledMulBlocks(&dst[0], &x[0], &y[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += float32(float32(alpha*x[j]) * y[j])
	}
}

// MulAddVec sets dst to x·y + z, element by element.
func MulAddVec(dst, x, y, z []float32) {
	dst, y, z, n := head(dst, len(x)), head(y, len(x)), head(z, len(x)), wholeBlocks(len(x))
	if n > 0 {
		mulAddBlocks(&dst[0], &x[0], &y[0], &z[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = float32(x[j]*y[j]) + z[j]
	}
}

// SubMulVec sets dst to (x - y)·z, element by element.
func SubMulVec(dst, x, y, z []float32) {
	dst, y, z, n := head(dst, len(x)), head(y, len(x)), head(z, len(x)), wholeBlocks(len(x))
	if n > 0 {
		subMulBlocks(&dst[0], &x[0], &y[0], &z[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = (x[j] - y[j]) * z[j]
	}
}

// centreDeriv sets dst to scale·(dy - mean) + slope·y. The last step is fused.
func centreDeriv(dst, dy, y, mean, scale, slope []float32) {
	k := len(dy)
	dst, y, mean, scale, slope, n := head(dst, k), head(y, k), head(mean, k), head(scale, k), head(slope, k), wholeBlocks(k)
	if n > 0 {
		centreDerivBlocks(&dst[0], &dy[0], &y[0], &mean[0], &scale[0], &slope[0], n)
	}
	for j := n * block; j < k; j++ {
		dst[j] = fma32(y[j], slope[j], float32((dy[j]-mean[j])*scale[j]))
	}
}

// ReLUVec sets dst to max(x, 0). NaN stays NaN. As with all functions of vectors here, dst may be
// x, and is at least as long.
func ReLUVec(dst, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		reluBlocks(&dst[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		v := x[j]
		if v < 0 {
			v = 0
		}
		dst[j] = v
	}
}

// ReLUDerivVec sets dst to dy where y > 0, and to 0 elsewhere.
func ReLUDerivVec(dst, y, dy []float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), wholeBlocks(len(dy))
	if n > 0 {
		reluDerivBlocks(&dst[0], &y[0], &dy[0], n)
	}
	for j := n * block; j < len(dy); j++ {
		v := dy[j]
		if !(y[j] > 0) {
			v = 0
		}
		dst[j] = v
	}
}

// reluSigns sets dst to x, raised to zero, and the bits of signs to whether that is positive. An
// element of signs has block bits.
func reluSigns(dst, x []float32, signs []uint16) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		reluSignsBlocks(&dst[0], &x[0], &signs[0], n)
	}
	clear(signs[n:])
	for j := n * block; j < len(x); j++ {
		v := x[j]
		if v < 0 {
			v = 0
		}
		dst[j] = v
		if v > 0 {
			signs[j/block] |= 1 << (j % block)
		}
	}
}

// signsDeriv sets dst to dy where the bit of signs is set, and to 0 elsewhere.
func signsDeriv(dst, dy []float32, signs []uint16) {
	dst, n := head(dst, len(dy)), wholeBlocks(len(dy))
	if n > 0 {
		signsDerivBlocks(&dst[0], &dy[0], &signs[0], n)
	}
	for j := n * block; j < len(dy); j++ {
		v := dy[j]
		if signs[j/block]>>(j%block)&1 == 0 {
			v = 0
		}
		dst[j] = v
	}
}

// SigmoidDerivVec sets dst to dy·y·(1-y), where y is the sigmoid.
func SigmoidDerivVec(dst, y, dy []float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), wholeBlocks(len(dy))
	if n > 0 {
		sigmoidDerivBlocks(&dst[0], &y[0], &dy[0], n)
	}
	for j := n * block; j < len(dy); j++ {
		dst[j] = float32(dy[j]*y[j]) * (1 - y[j])
	}
}

// TanhDerivVec sets dst to dy·(1-y²), where y is the hyperbolic tangent.
func TanhDerivVec(dst, y, dy []float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), wholeBlocks(len(dy))
	if n > 0 {
		tanhDerivBlocks(&dst[0], &y[0], &dy[0], n)
	}
	for j := n * block; j < len(dy); j++ {
		dst[j] = dy[j] * (1 - float32(y[j]*y[j]))
	}
}

// Dot returns the sum of the products of the elements of x and y. The order of the additions
// depends on the length alone, not on alignment.
func Dot(x, y []float32) (sum float32) {
	y = head(y, len(x))
	for ; len(x) > maxTerms; x, y = x[maxTerms:], y[maxTerms:] {
		sum += shortDot(x[:maxTerms], y)
	}
	return sum + shortDot(x, y)
}

func shortDot(x, y []float32) float32 {
	var sums [block]float32
	n := wholeBlocks(len(x))
	if n > 0 {
		dotBlocks(&x[0], &y[0], n, &sums)
	}
	for j := n * block; j < len(x); j++ {
		sums[j%block] += float32(x[j] * y[j])
	}
	return total(&sums)
}

// AddVecToDoubles adds x to sum.
func AddVecToDoubles(sum []float64, x []float32) {
	sum, n := head(sum, len(x)), wholeBlocks(len(x))
	if n > 0 {
		sumsBlocks(&sum[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		sum[j] += float64(x[j])
	}
}

// addSquares adds the squares of x to sumsq.
func addSquares(sumsq []float64, x []float32) {
	sumsq, n := head(sumsq, len(x)), wholeBlocks(len(x))
	if n > 0 {
		squaresBlocks(&sumsq[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		v := float64(x[j])
		sumsq[j] += float64(v * v)
	}
}

// total returns the sum of partial sums, adding halves until one is left.
func total[T float32 | float64](s *[block]T) T {
	even := ((s[0] + s[8]) + (s[4] + s[12])) + ((s[2] + s[10]) + (s[6] + s[14]))
	odd := ((s[1] + s[9]) + (s[5] + s[13])) + ((s[3] + s[11]) + (s[7] + s[15]))
	return even + odd
}

// maxVec returns the largest element that is not NaN, -Inf if there is none. Zero has no sign: of zeros
// with both, which one is met first depends on the width of vectors.
func maxVec(x []float32) float32 {
	most := [1]float32{float32(math.Inf(-1))}
	n := wholeBlocks(len(x))
	if n > 0 {
		maxBlocks(&x[0], n, &most)
	}
	if n > 0 && n*block < len(x) {
		// The last block begins with elements that have been seen before, which changes nothing.
		var last [1]float32
		maxBlocks(&x[len(x)-block], 1, &last)
		return max(most[0], last[0]) + 0
	}
	for _, v := range x[n*block:] {
		if v > most[0] {
			most[0] = v
		}
	}
	return most[0] + 0
}

// Extremes returns the least and the largest element, and whether all are finite; if not, or if there are
// none, the others mean nothing. Zeros have no sign.
func Extremes(x []float32) (low, high float32, finite bool) {
	low, high = float32(math.Inf(1)), float32(math.Inf(-1))
	strange := float32(0)
	n := wholeBlocks(len(x))
	if n > 0 {
		var ends [3 * block]float32
		extremesBlocks(&x[0], n, &ends)
		for half := block / 2; half > 0; half /= 2 { // comparisons that wait for each other would take twice as long
			for i := range half {
				ends[i], ends[block+i] = min(ends[i], ends[i+half]), max(ends[block+i], ends[block+i+half])
				ends[2*block+i] += ends[2*block+i+half]
			}
		}
		low, high, strange = ends[0], ends[block], ends[2*block]
	}
	for _, v := range x[n*block:] {
		low, high, strange = min(low, v), max(high, v), strange+float32(v*0)
	}
	return low + 0, high + 0, strange == 0
}
