//go:build !amd64

package kernel

func (s kernelSet) haveRowChains() bool { return false }

func rowChainsBlocks(x *float32, lines int, w *float32, wRow uintptr, blocks int, y *float32) {
	panic(errNoAssembly)
}
