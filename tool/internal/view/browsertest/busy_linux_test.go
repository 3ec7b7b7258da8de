package browsertest

import (
	"runtime"
	"syscall"
	"time"
)

// busy returns how many times as long a thread takes now as on an idle machine: it computes until it
// has had a processor for some time, and looks at the clock.
func busy() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thread, enough = 1, 60 * time.Millisecond
	had := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(thread, &u); err != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin, first := time.Now(), had()
	for had()-first < enough && time.Since(begin) < 10*time.Second {
	}
	return max(1, float64(time.Since(begin))/float64(enough))
}
