// Package limit lets tests write models that are too large without 2 GiB.
package limit

import "sync/atomic"

// Lower is the limit of a test, in bytes; 0 is none.
var Lower atomic.Int64

// Model returns the size of a model from which on other readers refuse it: a limit of protobuf.
func Model() int64 {
	if n := Lower.Load(); n > 0 {
		return n
	}
	return 1<<31 - 1
}
