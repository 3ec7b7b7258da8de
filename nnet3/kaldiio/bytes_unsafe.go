//go:build (amd64 || arm64 || 386 || arm || riscv64 || loong64 || mips64le || mipsle || ppc64le || wasm) && !purego

package kaldiio

import "unsafe"

// bytesOf returns the memory of v as bytes. These machines are little-endian, as Kaldi's files are.
func bytesOf[T real](v []T) []byte {
	if len(v) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}
