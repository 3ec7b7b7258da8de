package fileio

import (
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"
)

// maxStream limits what Map reads of a file without a size, such as a pipe: 2 GiB.
const maxStream = 1 << 31

// A Mapping is the content of a file. Where the system can map files, it is read from the disk when
// it is first looked at, and the system takes the memory back when it is short of it.
type Mapping struct {
	data  []byte
	unmap func([]byte) error // nil if data are ordinary memory
}

// Map returns the content of f, from its beginning if it is a regular file. f may be closed then. A
// file that can't be mapped is read: one without a size, which ends after 2 GiB at most, or one on a
// system or file system without maps.
func Map(f *os.File) (*Mapping, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if !info.Mode().IsRegular() || size == 0 { // files of /proc have no size, but content
		data, err := ReadAll(f, f.Name(), maxStream)
		return &Mapping{data: data}, err
	}
	if size > math.MaxInt {
		return nil, fmt.Errorf("%s has more than %d bytes, %w of the address space", f.Name(), math.MaxInt, ErrLimit)
	}
	if data, ok, err := mapped(f, int(size)); ok || err != nil {
		return &Mapping{data, unmap}, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), data); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return &Mapping{data: data}, nil
}

// Bytes returns the content, until Close. Writing to it is a fault of memory, which ends the program;
// so is reading it after another program has made the file shorter.
func (m *Mapping) Bytes() []byte { return m.data }

// Forget gives memory back to the system: that of a part of the content, as far as it consists of whole pages. The
// part may be used again, and is read from the file then. It does nothing to other memory.
func (m *Mapping) Forget(part []byte) error {
	if m.unmap == nil || len(m.data) == 0 || len(part) == 0 {
		return nil
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	if at >= uintptr(len(m.data)) || uintptr(len(part)) > uintptr(len(m.data))-at {
		return nil
	}
	page := uintptr(os.Getpagesize()) // at whose multiples the content begins
	first, end := (at+page-1)/page*page, (at+uintptr(len(part)))/page*page
	if at+uintptr(len(part)) == uintptr(len(m.data)) {
		end = uintptr(len(m.data)) // the last page, which may not be whole
	}
	if first >= end {
		return nil
	}
	return forget(m.data[first:end])
}

// Close ends the mapping. No part of its content may be used after that.
func (m *Mapping) Close() error {
	data := m.data
	m.data = nil
	if m.unmap == nil || data == nil {
		return nil
	}
	return m.unmap(data)
}
