package tune

import (
	"syscall"
	"time"
)

// threadTime returns how long the thread that calls it has computed.
func threadTime() (time.Duration, bool) {
	const thisThread = 1 // RUSAGE_THREAD
	var r syscall.Rusage
	if err := syscall.Getrusage(thisThread, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}
