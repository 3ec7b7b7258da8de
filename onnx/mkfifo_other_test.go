//go:build !unix

package onnx_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
