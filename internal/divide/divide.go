// Package divide lets tests divide work among threads that is too small for it.
package divide

import "sync/atomic"

// Always makes package kernel divide all work that can be divided, however small it is. Tests set
// it.
var Always atomic.Bool
