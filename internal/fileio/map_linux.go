package fileio

import (
	"os"
	"syscall"
)

// forget takes the memory of whole pages. What is in them is read from the file again.
func forget(pages []byte) error {
	return os.NewSyscallError("madvise", syscall.Madvise(pages, syscall.MADV_DONTNEED))
}
