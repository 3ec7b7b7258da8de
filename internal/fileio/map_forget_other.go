//go:build !linux

package fileio

// forget does nothing: the system takes the memory back when it is short of it.
func forget([]byte) error { return nil }

// ForgetProgram does nothing either.
func ForgetProgram() {}
