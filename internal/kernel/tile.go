package kernel

// What a tile does to its sums before it stores them, in this order.
const (
	tileMul      = 1 << iota // multiply by mul
	tileAdd                  // add q
	tileBias                 // add bias
	tileReLU                 // raise to zero
	tileScale                // multiply by scale and add offset, with one rounding
	tileResidual             // add alpha·r, with one rounding
	tileLastReLU             // raise to zero
)

// tile is the argument of a kernel, which computes some rows of y, panels·vecs vectors wide.
// Distances are in bytes. Kernels don't change it.
type tile struct {
	rows, vecs int
	panels     int
	tiles      int // of as many rows, one below the other; none is one
	k          int
	x          *float32
	xRow       uintptr // from a row to the next
	xStep      uintptr // from an element of a row to the next
	runs       *runs   // where the rows of x are if they are patches, or nil
	runsEnd    uintptr // where the runs end
	run        int     // elements of a run, of which there are k in all
	move       uintptr // is added to the places of runs
	moveTile   uintptr // is added to move for the next tile
	w          *float32
	wStep      uintptr  // from a step of a panel to the next
	wSkip      uintptr  // from the end of the used part of a panel to its beginning in the next
	wPanel     uintptr  // from a panel to the next one of a wide tile, which has several beside each other
	p          *float32 // sums to continue, or nil
	pRow       uintptr
	q          *float32
	qRow       uintptr
	r          *float32
	rRow       uintptr
	y          *float32
	yRow       uintptr
	bias       *float32
	scale      *float32
	offset     *float32
	ahead      uintptr // what to fetch; any address if aheadStep is zero
	aheadStep  uintptr // from a fetch to the next
	aheadTile  uintptr // from the first fetch of a tile to that of the next
	mul        float32
	alpha      float32
	flags      uint
	tail       int    // elements of the last vector of a row, 1 to the number of lanes
	mask       uint32 // the same as bits
}

// lastFlags says what is done to the last sum, after the bias.
func (ep *Epilogue) lastFlags() (flags uint) {
	if ep.ReLU {
		flags |= tileReLU
	}
	if ep.Scale != nil {
		flags |= tileScale
	}
	if ep.Alpha != 0 {
		flags |= tileResidual
	}
	if ep.LastReLU {
		flags |= tileLastReLU
	}
	return flags
}

// pointAt points at what an epilogue needs for column j, as the flags say.
func (t *tile) pointAt(ep *Epilogue, j int) {
	t.alpha = ep.Alpha
	if t.flags&tileBias != 0 {
		t.bias = &ep.Bias[j]
	}
	if t.flags&tileScale != 0 {
		t.scale, t.offset = &ep.Scale[j], &ep.Offset[j]
	}
	t.rRow = uintptr(ep.Residual.Stride) * 4
}

// pointAtResidual points at the residual of element (i, j), if there is one.
func (t *tile) pointAtResidual(ep *Epilogue, i, j int) {
	if t.flags&tileResidual != 0 {
		t.r = &ep.Residual.Data[i*ep.Residual.Stride+j]
	}
}

// span makes the tile one of some panels of a width.
func (t *tile) span(set kernelSet, panels, width int) {
	lanes := set.lanes()
	t.panels = panels
	t.vecs = (width + lanes - 1) / lanes
	// Panels that follow each other are whole, so the tail and the mask, which hold for each of
	// them, matter for the last panel of a row only.
	t.tail = width - (t.vecs-1)*lanes
	t.mask = 1<<t.tail - 1
}

// advance moves the tile to the rows below.
func (t *tile) advance() {
	n := uintptr(t.rows)
	if t.runs == nil {
		t.x = elem(t.x, n*t.xRow)
	}
	if t.p != nil {
		t.p = elem(t.p, n*t.pRow)
	}
	if t.flags&tileAdd != 0 {
		t.q = elem(t.q, n*t.qRow)
	}
	if t.flags&tileResidual != 0 {
		t.r = elem(t.r, n*t.rRow)
	}
	t.y = elem(t.y, n*t.yRow)
	t.move += t.moveTile
	t.ahead += t.aheadTile
}
