package kernel

import (
	"syscall"
	"unsafe"
)

const (
	// hugePage is the size of a huge page on amd64, and on arm64 with pages of 4 kB.
	hugePage = 2 << 20
	// minHuge is the least number of elements worth a system call.
	minHuge = 1 << 16
)

// preferHugePages asks the system to put v on huge pages. v should not have been touched yet. Other
// values of the heap may share the pages, which does no harm. It is only a hint, so errors are
// ignored.
func preferHugePages(v []float32) {
	if len(v) < minHuge {
		return
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	last := (first + 4*uintptr(len(v)) + hugePage - 1) &^ (hugePage - 1)
	first &^= hugePage - 1
	syscall.Syscall(syscall.SYS_MADVISE, first, last-first, syscall.MADV_HUGEPAGE)
}
