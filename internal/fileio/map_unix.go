//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package fileio

import (
	"errors"
	"os"
	"syscall"
)

// openWithoutWaiting is a flag for opening a file: the open of a FIFO does not wait for a writer.
const openWithoutWaiting = syscall.O_NONBLOCK

// mapped maps the first n bytes of a file. ok is false if its file system has no maps.
func mapped(f *os.File, n int) (data []byte, ok bool, err error) {
	data, err = syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_SHARED)
	if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EACCES) {
		return nil, false, nil
	}
	return data, err == nil, os.NewSyscallError("mmap of "+f.Name(), err)
}

func unmap(data []byte) error { return os.NewSyscallError("munmap", syscall.Munmap(data)) }
