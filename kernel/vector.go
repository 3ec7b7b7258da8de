package kernel

import "math"

// block is how many elements the assembly for vectors takes at a time. Reductions keep as many
// partial results, one for the elements whose indexes have the same remainder, so that a result
// depends on the length alone.
const block = 16

// The functions below use assembly for whole blocks, and Go for the rest. Both compute the same
// bits: every product and every sum is rounded by itself. Conversions keep compilers from fusing
// them.

// blocks is how many blocks of n elements the assembly of s takes.
func (s kernelSet) blocks(n int) int {
	if !s.assembly() {
		return 0
	}
	return n / block
}

// add adds x to dst.
func (s kernelSet) add(dst, x []float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	if n > 0 {
		addBlocks(&dst[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += x[j]
	}
}

// addScaled adds alpha·x to dst.
func (s kernelSet) addScaled(dst, x []float32, alpha float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	if n > 0 {
		addScaledBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += float32(alpha * x[j])
	}
}

// addNumber sets dst to x + alpha.
func (s kernelSet) addNumber(dst, x []float32, alpha float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	if n > 0 {
		addNumberBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = x[j] + alpha
	}
}

// fma adds alpha·x to dst, with one rounding.
func (s kernelSet) fma(dst, x []float32, alpha float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	if n > 0 {
		fmaBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = fma32(alpha, x[j], dst[j])
	}
}

// scale sets dst to alpha·x.
func (s kernelSet) scale(dst, x []float32, alpha float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	if n > 0 {
		scaleBlocks(&dst[0], &x[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = alpha * x[j]
	}
}

// scaleFloor sets dst to alpha·x, raised to floor. NaN stays.
func (s kernelSet) scaleFloor(dst, x []float32, alpha, floor float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
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

// mul sets dst to x·y.
func (s kernelSet) mul(dst, x, y []float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), s.blocks(len(x))
	if n > 0 {
		mulBlocks(&dst[0], &x[0], &y[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = x[j] * y[j]
	}
}

// addMul adds x·y to dst.
func (s kernelSet) addMul(dst, x, y []float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), s.blocks(len(x))
	if n > 0 {
		addMulBlocks(&dst[0], &x[0], &y[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += float32(x[j] * y[j])
	}
}

// addScaledMul adds alpha·x·y to dst.
func (s kernelSet) addScaledMul(dst, x, y []float32, alpha float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), s.blocks(len(x))
	if n > 0 {
		addScaledMulBlocks(&dst[0], &x[0], &y[0], n, alpha)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] += float32(float32(alpha*x[j]) * y[j])
	}
}

// mulAdd sets dst to x·y + z.
func (s kernelSet) mulAdd(dst, x, y, z []float32) {
	dst, y, z, n := head(dst, len(x)), head(y, len(x)), head(z, len(x)), s.blocks(len(x))
	if n > 0 {
		mulAddBlocks(&dst[0], &x[0], &y[0], &z[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = float32(x[j]*y[j]) + z[j]
	}
}

// subMul sets dst to (x - y)·z.
func (s kernelSet) subMul(dst, x, y, z []float32) {
	dst, y, z, n := head(dst, len(x)), head(y, len(x)), head(z, len(x)), s.blocks(len(x))
	if n > 0 {
		subMulBlocks(&dst[0], &x[0], &y[0], &z[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = (x[j] - y[j]) * z[j]
	}
}

// centreDeriv sets dst to scale·(dy - mean) + slope·y. The last step is fused.
func (s kernelSet) centreDeriv(dst, dy, y, mean, scale, slope []float32) {
	k := len(dy)
	dst, y, mean, scale, slope, n := head(dst, k), head(y, k), head(mean, k), head(scale, k), head(slope, k), s.blocks(k)
	if n > 0 {
		centreDerivBlocks(&dst[0], &dy[0], &y[0], &mean[0], &scale[0], &slope[0], n)
	}
	for j := n * block; j < k; j++ {
		dst[j] = fma32(y[j], slope[j], float32((dy[j]-mean[j])*scale[j]))
	}
}

// relu sets dst to x, raised to zero. NaN stays.
func (s kernelSet) relu(dst, x []float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
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

// reluDeriv sets dst to dy where y > 0, and to 0 elsewhere.
func (s kernelSet) reluDeriv(dst, y, dy []float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), s.blocks(len(dy))
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
func (s kernelSet) reluSigns(dst, x []float32, signs []uint16) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
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
func (s kernelSet) signsDeriv(dst, dy []float32, signs []uint16) {
	dst, n := head(dst, len(dy)), s.blocks(len(dy))
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

// sigmoidDeriv sets dst to dy·y·(1-y).
func (s kernelSet) sigmoidDeriv(dst, y, dy []float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), s.blocks(len(dy))
	if n > 0 {
		sigmoidDerivBlocks(&dst[0], &y[0], &dy[0], n)
	}
	for j := n * block; j < len(dy); j++ {
		dst[j] = float32(dy[j]*y[j]) * (1 - y[j])
	}
}

// tanhDeriv sets dst to dy·(1-y²).
func (s kernelSet) tanhDeriv(dst, y, dy []float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), s.blocks(len(dy))
	if n > 0 {
		tanhDerivBlocks(&dst[0], &y[0], &dy[0], n)
	}
	for j := n * block; j < len(dy); j++ {
		dst[j] = dy[j] * (1 - float32(y[j]*y[j]))
	}
}

// dot returns the sum of x·y, of every maxTerms elements by themselves.
func (s kernelSet) dot(x, y []float32) (sum float32) {
	y = head(y, len(x))
	for ; len(x) > maxTerms; x, y = x[maxTerms:], y[maxTerms:] {
		sum += s.shortDot(x[:maxTerms], y)
	}
	return sum + s.shortDot(x, y)
}

func (s kernelSet) shortDot(x, y []float32) float32 {
	var sums [block]float32
	n := s.blocks(len(x))
	if n > 0 {
		dotBlocks(&x[0], &y[0], n, &sums)
	}
	for j := n * block; j < len(x); j++ {
		sums[j%block] += float32(x[j] * y[j])
	}
	return total(&sums)
}

// sums adds x to sum.
func (s kernelSet) sums(sum []float64, x []float32) {
	sum, n := head(sum, len(x)), s.blocks(len(x))
	if n > 0 {
		sumsBlocks(&sum[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		sum[j] += float64(x[j])
	}
}

// squares adds the squares of x to sumsq.
func (s kernelSet) squares(sumsq []float64, x []float32) {
	sumsq, n := head(sumsq, len(x)), s.blocks(len(x))
	if n > 0 {
		squaresBlocks(&sumsq[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		v := float64(x[j])
		sumsq[j] += float64(v * v)
	}
}

// total returns the sum of partial sums, adding halves until one is left.
func total[T float32 | float64](sums *[block]T) T {
	for half := block / 2; half > 0; half /= 2 {
		for i := range half {
			sums[i] += sums[i+half]
		}
	}
	return sums[0]
}

// max returns the largest element that is not NaN, -Inf if there is none.
func (s kernelSet) max(x []float32) float32 {
	most := float32(math.Inf(-1))
	n := s.blocks(len(x))
	if n > 0 {
		var parts [block]float32
		maxBlocks(&x[0], n, &parts)
		most = largest(most, parts[:])
	}
	return largest(most, x[n*block:])
}

func largest(most float32, x []float32) float32 {
	for _, v := range x {
		if v > most {
			most = v
		}
	}
	return most
}

// exp sets dst to e**(x-shift) and returns the sum.
func (s kernelSet) exp(dst, x []float32, shift float32) float64 {
	dst = head(dst, len(x))
	var sums [block]float64
	n := s.blocks(len(x))
	switch {
	case n == 0:
	case s == avx512Set:
		expAVX512(&dst[0], &x[0], n, shift, &sums)
	default:
		expBlocks(&dst[0], &x[0], n, shift, &sums)
	}
	for j := n * block; j < len(x); j++ {
		e := exp(x[j] - shift)
		dst[j] = e
		sums[j%block] += float64(e)
	}
	return total(&sums)
}

// expSum returns the sum of e**(x-shift).
func (s kernelSet) expSum(x []float32, shift float32) float64 {
	var sums [block]float64
	n := s.blocks(len(x))
	switch {
	case n == 0:
	case s == avx512Set:
		expSumAVX512(&x[0], n, shift, &sums)
	default:
		expSumBlocks(&x[0], n, shift, &sums)
	}
	for j := n * block; j < len(x); j++ {
		sums[j%block] += float64(exp(x[j] - shift))
	}
	return total(&sums)
}

// logSoftmaxDeriv sets dst to dy - e**y·sum.
func (s kernelSet) logSoftmaxDeriv(dst, y, dy []float32, sum float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), s.blocks(len(dy))
	switch {
	case n == 0:
	case s == avx512Set:
		logSoftmaxDerivAVX512(&dst[0], &y[0], &dy[0], n, sum)
	default:
		logSoftmaxDerivBlocks(&dst[0], &y[0], &dy[0], n, sum)
	}
	for j := n * block; j < len(dy); j++ {
		dst[j] = dy[j] - float32(exp(y[j])*sum)
	}
}

// sigmoid sets dst to 1/(1+e**-x).
func (s kernelSet) sigmoid(dst, x []float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	switch {
	case n == 0:
	case s == avx512Set:
		sigmoidAVX512(&dst[0], &x[0], n)
	default:
		sigmoidBlocks(&dst[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = sigmoid(x[j])
	}
}

// tanh sets dst to the hyperbolic tangent of x.
func (s kernelSet) tanh(dst, x []float32) {
	dst, n := head(dst, len(x)), s.blocks(len(x))
	switch {
	case n == 0:
	case s == avx512Set:
		tanhAVX512(&dst[0], &x[0], n)
	default:
		tanhBlocks(&dst[0], &x[0], n)
	}
	for j := n * block; j < len(x); j++ {
		dst[j] = tanh(x[j])
	}
}
