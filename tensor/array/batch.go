package array

import "fmt"

// BatchMatMul sets c, which is contiguous, to the products of the matrices that the last two
// dimensions of a and b are. The other dimensions are broadcast. All three have one element type
// and one number of dimensions, at least two. Each product has the bits that MatMul gives it. A
// single right-hand matrix may have been prepared; otherwise prepared is nil. The
// epilogue, if there is one, completes c; its other inputs are args.
func (ws *Workspace) BatchMatMul(c, a, b *Array, prepared *Factor, e *Epilogue, args []*Array) error {
	m := &ws.matrices // since their own headers would be on the heap
	var ok bool
	m[1], ok = a.asRows()
	if ok = ok && b.oneMatrix() && c.Len() > 0 && a.shape[a.ndim-1] > 0 && a.shape[a.ndim-1] == b.shape[b.ndim-2]; !ok || a.shape[a.ndim-1] == 1 {
		prepared = nil
	}
	var done completion
	if err := ws.complete(&done, e, c, args, prepared != nil); err != nil {
		return err
	}
	defer done.end()
	if ok {
		// One right-hand factor for all: the left-hand ones, one below the other, make a single
		// product, which packs b once. Each element is the same chain of multiply-adds as alone.
		m[2] = b.matrixAt(b.offset)
		c.ReshapeTo(&m[0], m[1].shape[0], m[2].shape[1])
		return ws.rowBlocks(&done, &m[0], &m[1], &m[2], prepared)
	}
	if err := ws.batchMatMul(c, a, b); err != nil {
		return err
	}
	done.run(0, c.Len())
	return nil
}

// batchMatMul is BatchMatMul for products of their own.
func (ws *Workspace) batchMatMul(c, a, b *Array) error {
	d := int(c.ndim) - 2
	if a.shape[d+1] != b.shape[d] || a.shape[d] != c.shape[d] || b.shape[d+1] != c.shape[d+1] {
		return fmt.Errorf("array: products of shapes %v and %v into %v", a.Shape(), b.Shape(), c.Shape())
	}
	switch {
	case c.Len() == 0:
		return nil
	case a.shape[d+1] == 0: // sums of nothing
		ws.Copy(c, Full(c.dtype, 0))
		return nil
	}
	// Copies that each product would make of its factors are made once for all of them,
	// beforehand.
	a, releaseA, err := ws.forProducts(a)
	if err != nil {
		return err
	}
	defer releaseA()
	b, releaseB, err := ws.forProducts(b)
	if err != nil {
		return err
	}
	defer releaseB()
	return ws.sharedProducts(c, a, b)
}

// stacked returns the matrices of a, one below the other, if memory has them like that.
func (a *Array) stacked() (Array, bool) {
	var rows Array
	d := int(a.ndim) - 2
	ok := a.ReshapeTo(&rows, product(a.shape[:d+1]), a.shape[d+1])
	return rows, ok
}

// oneMatrix reports whether all dimensions but the last two have size 1.
func (a *Array) oneMatrix() bool {
	for _, n := range a.shape[:a.ndim-2] {
		if n != 1 {
			return false
		}
	}
	return true
}

// matrixAt returns the matrix of the last two dimensions whose first element has an offset.
func (a *Array) matrixAt(offset int) Array {
	d := int(a.ndim) - 2
	m := Array{dtype: a.dtype, ndim: 2, offset: offset, data: a.data}
	copy(m.shape[:2], a.shape[d:a.ndim])
	copy(m.strides[:2], a.strides[d:a.ndim])
	return m
}

// forProducts returns a, or a contiguous copy if asFactor would copy each of its matrices. The
// function releases the copy.
func (ws *Workspace) forProducts(a *Array) (*Array, func(), error) {
	first := a.matrixAt(a.offset)
	if !a.dtype.IsFloat() || first.fitsFactor() {
		return a, func() {}, nil
	}
	return ws.copied(a)
}

// fitsFactor reports whether the rows of a matrix or of its transpose are contiguous.
func (a *Array) fitsFactor() bool {
	rows, cols, down, right := a.shape[0], a.shape[1], a.strides[0], a.strides[1]
	return rowsFit(rows, cols, down, right) || rowsFit(cols, rows, right, down)
}

// products computes products [first, next), each by itself. It allocates nothing for it.
func (ws *Workspace) products(c, a, b *Array, first, next int) error {
	d := int(c.ndim) - 2
	var stepsA, stepsB [MaxDims]int
	for k, n := range c.shape[:d] {
		// A dimension that is broadcast has a step of zero: the same matrix again.
		if a.shape[k] == n {
			stepsA[k] = a.strides[k]
		}
		if b.shape[k] == n {
			stepsB[k] = b.strides[k]
		}
	}
	walkA := walk(a.offset, c.shape[:d], stepsA[:d], first)
	walkB := walk(b.offset, c.shape[:d], stepsB[:d], first)
	size := c.shape[d] * c.shape[d+1]
	m := &ws.matrices
	m[0], m[1], m[2] = c.matrixAt(c.offset), a.matrixAt(a.offset), b.matrixAt(b.offset)
	for n := first; n < next; n++ {
		m[0].offset, m[1].offset, m[2].offset = c.offset+n*size, walkA.at, walkB.at
		if err := ws.MatMul(&m[0], &m[1], &m[2]); err != nil {
			return err
		}
		walkA.advance(1)
		walkB.advance(1)
	}
	return nil
}
