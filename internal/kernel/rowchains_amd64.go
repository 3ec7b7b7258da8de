package kernel

// haveRowChains reports whether rowChainsBlocks may be called with a set of kernels.
func (s kernelSet) haveRowChains() bool { return s >= avx2Set }

// rowChainsBlocks sets y to the sums of products of x, some lines of 16 elements, and 16 rows of w, for a
// number of blocks of rows.
//
//go:noescape
func rowChainsBlocks(x *float32, lines int, w *float32, wRow uintptr, blocks int, y *float32)
