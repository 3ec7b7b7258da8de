// Package proctest helps tests that start programs.
package proctest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// NeedsPrograms skips a test where the system can't start programs for the
// processor that it emulates, as under qemu's user mode.
func NeedsPrograms(t testing.TB) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	if err := exec.Command(self, "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip(err)
	}
}
