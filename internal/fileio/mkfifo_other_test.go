//go:build !unix

package fileio_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
