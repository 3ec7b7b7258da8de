//go:build !unix

package decodable

import "time"

// cpuTime returns 0: the system does not tell.
func cpuTime() time.Duration { return 0 }
