package tune

import "time"

// WithClock returns options with another clock.
func (o Options) WithClock(now func() time.Time) Options {
	o.now = now
	return o
}
