package tune

import "time"

// WithClock returns options for which time is what a function says.
func (o Options) WithClock(now func() time.Time) Options {
	o.clock = &clock{now: now, spent: func() time.Duration { return now().Sub(time.Time{}) }}
	return o
}
