//go:build !unix

package tool

import "os"

// hangUp is a signal that there is: this system has none for a terminal that is gone.
var hangUp = os.Interrupt

func keepBrokenPipes() {}
