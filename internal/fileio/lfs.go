package fileio

import (
	"bytes"
	"errors"
)

// ErrLFS means that a file was not fetched: Git LFS has left a few lines of text in its place.
var ErrLFS = errors.New("it is not the file itself but a pointer to it, which Git LFS left; \"git lfs pull\" fetches it")

// CheckLFS returns ErrLFS for the beginning of such a pointer.
func CheckLFS(head []byte) error {
	if bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/")) {
		return ErrLFS
	}
	return nil
}
