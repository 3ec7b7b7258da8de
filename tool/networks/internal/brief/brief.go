// Package brief lets tests take measurements that say little and take little time.
package brief

import "sync/atomic"

// Always makes a benchmark run what it measures once or twice. Tests set it.
var Always atomic.Bool
