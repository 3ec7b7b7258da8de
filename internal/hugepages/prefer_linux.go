package hugepages

import (
	"syscall"
	"unsafe"
)

const (
	// size is that of a huge page on amd64, and on arm64 with pages of 4 kB.
	size = 2 << 20
	// least is the least number of bytes worth a system call.
	least = 1 << 18
)

// prefer asks the system to put memory on huge pages. It should not have been touched yet. Other values of the heap may
// share the pages, which does no harm. It is only a hint, so errors are ignored.
func prefer(memory unsafe.Pointer, bytes uintptr) {
	if bytes < least {
		return
	}
	first := uintptr(memory)
	last := (first + bytes + size - 1) &^ (size - 1)
	first &^= size - 1
	syscall.Syscall(syscall.SYS_MADVISE, first, last-first, syscall.MADV_HUGEPAGE)
}
