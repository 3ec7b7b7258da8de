//go:build !amd64 && !arm64

package kernel

import "runtime"

func pause() { runtime.Gosched() }
