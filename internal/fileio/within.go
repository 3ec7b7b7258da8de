package fileio

import (
	"fmt"
	"os"
)

// OpenWithin opens a regular file in a folder for reading. The name comes from untrusted input: it
// can't lead out of the folder, by links either, and what is no regular file is an error, without
// waiting for anybody who writes to it.
func OpenWithin(folder, name string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Opening a device may have effects, so that its kind is asked for before. It may have become
	// another file since, so that it is asked for again.
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if !isRegular(f) {
		f.Close()
		return nil, notRegular(name)
	}
	return f, nil
}

func notRegular(name string) error { return fmt.Errorf("%s is not a regular file", Excerpt(name, 0)) }
