package array

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// Softmax sets dst to exp(src) divided by its sum over the last dimension, or to the logarithm of
// that. Both have the same shape and are floats of the same type. Dst is contiguous and may be src.
func (ws *Workspace) Softmax(dst, src *Array, logarithm bool) {
	if src.Len() > 0 {
		ws.eachRows(softened, dst, src, nil, logarithm, softmaxOf)
	}
}

// softened is what an element of a softmax takes, in picoseconds.
const softened = 1500

func softmaxOf(dst, src, _ *Array, logarithm bool) {
	n := src.shape[src.ndim-1]
	if dst != src && !(dst.dtype == Float32 && src.Contiguous()) {
		CopyTo(dst, src)
		src = dst
	}
	switch {
	case dst.dtype == Float64:
		softmaxRows(Slice[float64](dst), n, logarithm)
	// Only sums need double precision. Without it, rows take a quarter of the time.
	case logarithm:
		kernel.LogSoftmaxRows(Slice[float32](dst), Slice[float32](src), n)
	default:
		kernel.SoftmaxRows(Slice[float32](dst), Slice[float32](src), n, 0)
	}
}

// softmaxRows works on rows of n elements in place.
func softmaxRows(data []float64, n int, logarithm bool) {
	buf := wideBlocks.Get().(*[blockSize]float64)
	defer wideBlocks.Put(buf)
	for ; len(data) > 0; data = data[n:] {
		row := data[:n]
		// Less the largest element, all exponents are 0 or below: exp can't overflow, and the factor drops out
		// of the quotient.
		most := math.Inf(-1)
		for _, v := range row {
			most = max(most, v) // NaN stays
		}
		sum := 0.0
		for rest := row; len(rest) > 0; {
			e := buf[:min(len(rest), blockSize)]
			for j := range e {
				e[j] = rest[j] - most
			}
			expBlock(e, e, nil)
			for j, v := range e {
				sum += v
				if !logarithm {
					rest[j] = v
				}
			}
			rest = rest[len(e):]
		}
		log := elementary.Log(sum) // most + log may round to most
		for j, v := range row {
			if logarithm {
				row[j] = v - most - log
			} else {
				row[j] = v / sum
			}
		}
	}
}

// SoftmaxGrad sets dx to the gradient with respect to x of y = softmax(x), given the gradient dy
// with respect to y: y·(dy - Σ y·dy). For the logarithm of a softmax that is dy - exp(y)·Σ dy. All
// have the same shape and are floats of the same type. Dx is contiguous and may be dy.
func (ws *Workspace) SoftmaxGrad(dx, dy, y *Array, logarithm bool) {
	if y.Len() > 0 {
		ws.eachRows(softened, dx, dy, y, logarithm, softmaxGradOf)
	}
}

func softmaxGradOf(dx, dy, y *Array, logarithm bool) {
	CopyTo(dx, dy)
	y = y.inRows()
	n := y.shape[y.ndim-1]
	if y.dtype == Float32 {
		softmaxGradRows(Slice[float32](dx), Slice[float32](y), n, logarithm)
	} else {
		softmaxGradRows(Slice[float64](dx), Slice[float64](y), n, logarithm)
	}
}

func softmaxGradRows[T float](dx, y []T, n int, logarithm bool) {
	for ; len(dx) > 0; dx, y = dx[n:], y[n:] {
		sum := 0.0
		for j, d := range dx[:n] {
			if logarithm {
				sum += float64(d)
			} else {
				// The conversion keeps the compiler from fusing the product with the sum, so all machines round
				// alike.
				sum += float64(float64(d) * float64(y[j]))
			}
		}
		for j, d := range dx[:n] {
			if logarithm {
				dx[j] = T(float64(d) - float64(elementary.Exp(float64(y[j]))*sum))
			} else {
				dx[j] = T(float64(y[j]) * (float64(d) - sum))
			}
		}
	}
}

// LayerNorm sets y, which is contiguous, to x with each row along the last dimension standardized: see
// kernel.LayerNormRows. Gain and bias have a number for each column, and may be nil. All are float32s. The
// bits are those of the steps one by one.
func (ws *Workspace) LayerNorm(y, x, gain, bias *Array, divisor, eps float32) error {
	if y.Len() == 0 {
		return nil
	}
	n := y.shape[y.ndim-1]
	for _, a := range []**Array{&x, &gain, &bias} {
		if *a == nil {
			continue
		}
		t, release, err := ws.contiguous(*a)
		if err != nil {
			return err
		}
		defer release()
		*a = t
	}
	p := normArgs{y: Slice[float32](y), x: Slice[float32](x), n: n, divisor: divisor, eps: eps}
	if gain != nil {
		// The kernel takes both. What is added to leave a number as it is, is -0.
		p.gain, p.bias = Slice[float32](gain), ws.negativeZeros(n)
		if bias != nil {
			p.bias = Slice[float32](bias)
		}
	}
	rows := y.Len() / n
	if parts := ws.partsOf(y.Len()*normed, rows, 1); parts > 1 {
		return ws.crewOf().norm.run(ws, parts, rows, 1, p, normRows)
	}
	return normRows(ws, &p, 0, rows)
}

// normed is what an element takes, in picoseconds.
const normed = 300

// normArgs are those of a LayerNorm of which some rows are computed at a time.
type normArgs struct {
	y, x, gain, bias []float32
	n                int
	divisor, eps     float32
}

// normRows computes some rows.
func normRows(_ *Workspace, p *normArgs, first, next int) error {
	kernel.LayerNormRows(p.y[first*p.n:next*p.n], p.x[first*p.n:next*p.n], p.n, p.gain, p.bias, p.divisor, p.eps)
	return nil
}
