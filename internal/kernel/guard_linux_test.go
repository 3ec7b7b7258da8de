package kernel

import (
	"syscall"
	"testing"
	"unsafe"
)

// guardedBytes returns size bytes, a multiple of pageSize, between unmapped pages.
func guardedBytes(t testing.TB, size int) []byte {
	page := syscall.Getpagesize()
	b, err := syscall.Mmap(-1, 0, page+size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{b[:page], b[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return b[page : page+size : page+size]
}

// guardedFloats returns n elements before an unmapped page.
func guardedFloats(t *testing.T, n int) []float32 {
	if n == 0 {
		return nil
	}
	b := guardedBytes(t, (4*n+pageSize-1)/pageSize*pageSize)
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[len(b)-4*n])), n)
}
