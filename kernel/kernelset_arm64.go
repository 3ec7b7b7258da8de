package kernel

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet { return []kernelSet{blasSet, goSet, neonSet} }

//go:noescape
func tileNEON(t *tile)

// tile runs a kernel.
func (s kernelSet) tile(t *tile) {
	switch {
	case s != neonSet:
		s.tileGo(t)
	case t.tail == s.lanes():
		tileNEON(t)
	default:
		s.partialTile(t)
	}
}

// partialTile runs a kernel whose last vector is partial, which NEON can't load or store. Such a
// tile has one panel. Its sums are whole vectors of scratch memory.
func (s kernelSet) partialTile(t *tile) {
	var sums [maxTileRows * 16]float32
	cols := t.vecs * s.lanes()
	stored := cols - s.lanes() + t.tail
	if t.p != nil {
		for i := range t.rows {
			for j := range stored {
				sums[i*cols+j] = t.begun(uintptr(i), uintptr(j)*4)
			}
		}
	}
	whole := *t
	whole.flags = 0
	whole.p, whole.pRow = &sums[0], uintptr(cols)*4
	whole.y, whole.yRow = whole.p, whole.pRow
	tileNEON(&whole)
	for i := range t.rows {
		for j := range stored {
			*elem(t.y, uintptr(i)*t.yRow+uintptr(j)*4) = t.finish(sums[i*cols+j], uintptr(i), uintptr(j)*4)
		}
	}
}

//go:noescape
func dotLanesNEON(t *laneTile)

// dotLanes runs a kernel of narrow products, for at most laneRows rows.
func (s kernelSet) dotLanes(t *laneTile) {
	if s == neonSet {
		dotLanesNEON(t)
	} else {
		dotLanesGo(t)
	}
}

// dTileNEON adds alpha·a·b to a tile of c. a and b are packed.
//
//go:noescape
func dTileNEON(a, b *float64, k int, c *float64, stride uintptr, alpha float64)

// dTile adds alpha·a·b to a whole tile of c.
func (s kernelSet) dTile(alpha float64, a, b []float64, depth int, c []float64, stride int) {
	s.checkTile(a, b, depth, c, stride)
	if s == neonSet {
		dTileNEON(&a[0], &b[0], depth, &c[0], uintptr(8*stride), alpha)
	} else {
		s.dTileGo(alpha, a, b, depth, c, stride)
	}
}
