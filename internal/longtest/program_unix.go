//go:build unix

package longtest

import (
	"runtime"
	"runtime/debug"
)

// AsProgram gives the collector the pace that it has in programs, for a process that is to be one.
func AsProgram() {
	debug.SetGCPercent(100)
	runtime.KeepAlive(untouched) // until here
	untouched = nil
}
