package kernel

// Weights is the factor W of products y = x·Wᵀ (W has a row per column of y), packed for the
// kernels. Pack a W once that is used again and again. Any number of goroutines may then multiply
// with it.
type Weights struct {
	w       Matrix
	tall    bool // w is the transpose of W
	inPlace bool // panels are read in w, which is tall
	set     kernelSet
	panels  []float32 // see pack
	lanes   []float32 // see laneShape
}

// NewWeights packs w, which is W. The result keeps w; call [Threads.Renew] when elements of w have changed.
func NewWeights(w Matrix) *Weights { return newWeights(currentSet(), w, false) }

func newWeights(set kernelSet, w Matrix, tall bool) *Weights {
	p := new(Weights)
	p.become(set, nil, w, tall, nil)
	return p
}

// Set packs w, which is W, into p, which may be zero; its memory is used again if it is large enough. No
// product may use p meanwhile.
func (t *Threads) Set(p *Weights, w Matrix) { p.become(currentSet(), t, w, false, nil) }

// Renew packs p again after elements of its matrix have changed. No product may use p
// meanwhile.
func (t *Threads) Renew(p *Weights) { p.become(p.current(), t, p.Matrix(), p.tall, nil) }

// SetTransposed packs w, the transpose of W, into p, so that products are y = x·w: those of a
// backward pass. p may be zero; its memory is used again if it is large enough. No product may use
// p meanwhile.
func (t *Threads) SetTransposed(p *Weights, w Matrix) { t.SetOnce(p, w, true, nil) }

// SetOnce is Set, or SetTransposed for a tall matrix, of memory that a caller may give back part by part: once rows of
// w have been packed, read is told of the first and their number. It may be nil.
func (t *Threads) SetOnce(p *Weights, w Matrix, tall bool, read func(first, n int)) {
	n, _ := shape(&w, tall)
	p.become(setFor(n, tall), t, w, tall, read)
}

// SetWindows packs weights of convolutions whose channels come first, for patches in which they come last:
// w is W, but its column c·window + e, of element e of the window and channel c, is step e·channels + c of
// the sums. Products are those after [Threads.SetTransposed] with the transpose in that order, which need not exist; p
// keeps nothing but panels. Threads share the work, unless t is nil. p may be zero; its memory is used again
// if it is large enough. No product may use p meanwhile.
func (p *Weights) SetWindows(t *Threads, w Matrix, window int) {
	checkApart(&w)
	if window < 1 || w.Cols%window != 0 {
		panic(errShape)
	}
	set := setFor(w.Rows, true)
	if set == blasSet {
		p.become(set, t, windowsLast(w, window), true, nil)
		return
	}
	*p = Weights{w: Matrix{Rows: w.Cols, Cols: w.Rows, Stride: w.Rows}, tall: true, set: set, panels: p.panels}
	p.reserve()
	part := func(j *matrixJob, first, n int) { j.packed.packWindows(&j.x, first, n, j.window) }
	if !t.divide(&w, w.Rows, set.panelCols(), moved, part, args{packed: p, x: w, window: window}) {
		p.packWindows(&w, 0, w.Rows, window)
	}
}

// become packs w into p, see SetOnce.
func (p *Weights) become(set kernelSet, t *Threads, w Matrix, tall bool, read func(first, n int)) {
	checkApart(&w)
	p.w, p.tall, p.set = w, tall, set
	// A foreign BLAS reads the matrix itself.
	if set == blasSet {
		return
	}
	p.reserve()
	p.pack(t, read)
}

// reserve makes room for all forms.
func (p *Weights) reserve() {
	n := p.size()
	// Weights of a backward pass are packed anew whenever parameters have changed, into the same
	// memory.
	if cap(p.panels) < n {
		p.panels = alignedFloats(n)
	}
	p.place(p.panels[:n])
}

// shape returns the number of columns of y, and the length of the sums.
func (p *Weights) shape() (n, k int) { return shape(&p.w, p.tall) }

// Mul computes y = ep(x·Wᵀ).
func (p *Weights) Mul(x Matrix, ep Epilogue, y Matrix) { ep.Mul(&x, p, &y) }

// Epilogue is what a product does to the elements of its result before it stores them. With all
// fields set,
//
//	v = sum + y (Accumulate) + Bias[j]
//	v = max(v, 0) (ReLU)
//	v = v·Scale[j] + Offset[j]
//	v = v + Alpha·Residual[i,j]
//	y = max(v, 0) (LastReLU)
//
// where every product and every sum is rounded by itself, so that the bits are those of separate
// steps. The zero value stores the sum. Scale and Offset go together. Residual may be y itself, but
// must not overlap it otherwise.
type Epilogue struct {
	Accumulate    bool
	ReLU          bool
	LastReLU      bool
	BiasFirst     bool // the first of several segments gets the bias; otherwise the last one
	Bias          []float32
	Scale, Offset []float32
	Alpha         float32
	Residual      Matrix
	// Next are the weights of the segments of the product that probably follows. Their beginning is
	// fetched to the cache meanwhile. It changes no result.
	Next []*Weights
	// Threads compute the product together, if it is worth it. They change no result, either.
	Threads *Threads
}

// Mul is Weights.Mul. It copies neither the epilogue nor headers, which takes as long as a small product.
func (ep *Epilogue) Mul(x *Matrix, w *Weights, y *Matrix) {
	checkApart(y)
	w.checkFactor(x, y)
	checkEpilogue(ep, y)
	if w.mulLow(x, ep, y) {
		return
	}
	ws := getWorkspace()
	defer ws.put()
	ws.segs[0] = Segment{X: *x, W: w}
	mulSegments(ws, ws.segs[:], ep, *y)
}

// Segment is a term x·Wᵀ of a sum of products. X may have any stride. With a stride of 0 all its
// rows are the same.
type Segment struct {
	X Matrix
	W *Weights
	// Continue makes the term continue the sums of the segment before, as if both were one product
	// with a longer k, instead of adding sums of its own to them. The bits differ. The first
	// segment continues the contents of y, which Accumulate then does not add again.
	Continue bool

	transposed bool // the term is Xᵀ·Wᵀ
}

// k is the length of the sums.
func (s *Segment) k() int {
	_, k := s.W.shape()
	return k
}

// distances returns the distances of rows and of columns of x, in bytes.
func (s *Segment) distances() (row, step uintptr) {
	if s.transposed {
		return 4, uintptr(s.X.Stride) * 4
	}
	return uintptr(s.X.Stride) * 4, 4
}

// at returns the address of element l of row i of x.
func (s *Segment) at(i, l int) *float32 {
	if s.transposed {
		return &s.X.Data[l*s.X.Stride+i]
	}
	return &s.X.Data[i*s.X.Stride+l]
}

// Mul computes y = ep(x·Wᵀ) with a factor that is not packed.
func Mul(x, w Matrix, ep Epilogue, y Matrix) { mulWith(currentSet(), x, w, ep, y) }

func mulWith(set kernelSet, x, w Matrix, ep Epilogue, y Matrix) {
	ws := getWorkspace()
	defer ws.put()
	ws.weights = Weights{w: w}
	ws.segs[0] = Segment{X: x, W: &ws.weights}
	checkApart(&w)
	checkProduct(ws.segs[:], &ep, y)
	if set != blasSet {
		ws.prepare(set, ep.Threads, w, false, x.Rows)
	}
	multiply(set, ws, ws.segs[:], &ep, 1, y)
}

// MulSegments computes y = ep(Σ_s x_s·W_sᵀ). The terms are added one after the other: the first one
// to y (Accumulate) and the bias (BiasFirst), the others to the sum of those before. The rest of ep
// applies to the last sum. BiasFirst is the order of Kaldi's TDNN with a bias, which starts with
// rows that hold it.
func MulSegments(segs []Segment, ep Epilogue, y Matrix) {
	ws := getWorkspace()
	defer ws.put()
	mulSegments(ws, segs, &ep, y)
}

func mulSegments(ws *workspace, segs []Segment, ep *Epilogue, y Matrix) {
	checkProduct(segs, ep, y)
	set := currentSet()
	if set != blasSet {
		// Weights know for which kernels they were packed. They differ from each other, or are not
		// packed at all, only if the program has registered another BLAS meanwhile.
		set = segs[0].W.set
		for i := range segs {
			if segs[i].W.set != set || set == blasSet {
				segs, set = prepared(segs), bestSet
				break
			}
		}
	}
	multiply(set, ws, segs, ep, 1, y)
}

// prepared returns segs, with weights packed that were made while another BLAS was in use.
func prepared(segs []Segment) []Segment {
	p := append([]Segment(nil), segs...)
	for i := range p {
		if p[i].W.set != bestSet {
			p[i].W = newWeights(bestSet, p[i].W.Matrix(), p[i].W.tall)
		}
	}
	return p
}

// multiply computes y = ep(mul·Σ_s x_s·W_sᵀ). Everything must fit.
func multiply(set kernelSet, ws *workspace, segs []Segment, ep *Epilogue, mul float32, y Matrix) {
	switch {
	case y.Rows == 0 || y.Cols == 0:
	case set == blasSet:
		multiplyBLAS(ws, segs, ep, y)
	default:
		ws.begin(set, segs, ep, mul, &y).compute(ws)
	}
}

// checkProduct panics unless the terms, the epilogue and y fit together.
func checkProduct(segs []Segment, ep *Epilogue, y Matrix) {
	if len(segs) == 0 {
		panic(errShape)
	}
	checkApart(&y)
	for i := range segs {
		if segs[i].W == nil {
			panic(errShape)
		}
		segs[i].W.checkFactor(&segs[i].X, &y)
	}
	checkEpilogue(ep, &y)
}

// checkFactor panics unless the product of x and the weights is like y.
func (p *Weights) checkFactor(x, y *Matrix) {
	n, k := p.shape()
	if x.Rows != y.Rows || x.Cols != k || n != y.Cols {
		panic(errShape)
	}
	checkData(x)
}

// checkEpilogue panics unless the epilogue fits y.
func checkEpilogue(ep *Epilogue, y *Matrix) {
	n := y.Cols
	if ep.Bias != nil && len(ep.Bias) != n || ep.Scale != nil && len(ep.Scale) != n || len(ep.Scale) != len(ep.Offset) {
		panic(errShape)
	}
	if ep.Alpha != 0 {
		onto(y, &ep.Residual)
	}
}
