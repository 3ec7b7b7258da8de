//go:build unix

package tool

import (
	"os"
	"os/signal"
	"syscall"
)

// hangUp is the signal that ends the program when its terminal is gone.
var hangUp os.Signal = syscall.SIGHUP

// keepBrokenPipes makes a write to a pipe without a reader an error that does not end the program.
func keepBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
