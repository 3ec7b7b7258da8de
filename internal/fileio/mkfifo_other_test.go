//go:build !unix

package fileio

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
