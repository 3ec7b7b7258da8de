package tune

import "time"

// A clock tells the time, by which tuning ends, and how long the thread has computed, by which sides are
// measured: what other programs take of the processor is not a part of that, but for what they evict from
// caches.
type clock struct {
	now   func() time.Time
	spent func() time.Duration
}

// systemClock is the clock of the system. Where that does not tell how long a thread has computed, the
// time that has passed stands for it.
func systemClock() *clock {
	begin := time.Now()
	return &clock{now: time.Now, spent: func() time.Duration {
		if d, ok := threadTime(); ok {
			return d
		}
		return time.Since(begin)
	}}
}
