//go:build !linux

package tune

import "time"

// threadTime reports false: the system does not tell.
func threadTime() (time.Duration, bool) { return 0, false }
