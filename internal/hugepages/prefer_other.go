//go:build !linux

package hugepages

import "unsafe"

// prefer does nothing here.
func prefer(unsafe.Pointer, uintptr) {}
