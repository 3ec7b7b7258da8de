package standard_test

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
)

// limitedShell runs a program with a limited address space. It is enough for what Go itself needs,
// which is much of it for each thread.
const limitedShell = `ulimit -v 6000000 && exec "$0" "$@"`

// TestOutOfMemory: a program that gets no memory says so on one line, and ends with status 1.
// Others say what they say without the limit.
func TestOutOfMemory(t *testing.T) {
	longtest.Only(t)
	proctest.NeedsPrograms(t)
	run := func(args ...string) (status int, stdout, stderr string) {
		cmd := program(limitedShell, args...)
		var out, err bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &err
		_ = cmd.Run() // the status says it
		return cmd.ProcessState.ExitCode(), out.String(), err.String()
	}
	if status, stdout, stderr := run("expr", "x + y"); status != statusOK || stdout != "[add(x, y)]\n" || stderr != "1 ops, 1 as typed\n" {
		t.Skipf("it can't run with so little: status %d, %.300s", status, stderr) // the race detector takes more
	}
	status, _, stderr := run("expr", "--vars=x: float64[30000, 30000]", "--eval=random", "x + 1")
	if status != statusFault || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d: %.500s", status, stderr)
	}
	contains(t, stderr, "nnopt: out of memory: ", " bytes more were asked for", "6144000000 bytes (ulimit -v)")
	if status, _, stderr := run("nosuch"); status != statusUsage || !strings.Contains(stderr, "unknown verb") {
		t.Errorf("status %d: %.500s", status, stderr)
	}
}

// TestLimitedSignals: a signal reaches the verb in the process that does the work, and both end.
func TestLimitedSignals(t *testing.T) {
	t.Parallel()
	proctest.NeedsPrograms(t)
	if err := program(limitedShell, "version").Run(); err != nil {
		t.Skip(err)
	}
	pipe := fifo(t)
	cmd := program(limitedShell, "copy", "ark:"+pipe, "ark:-")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr // which ends when no process has it any more
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Once the program waits for what comes through the pipe, it has begun.
	var writer *os.File
	for start := time.Now(); writer == nil && time.Since(start) < longEnough; time.Sleep(10 * time.Millisecond) {
		writer, _ = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	}
	defer writer.Close()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		if status := cmd.ProcessState.ExitCode(); status != statusFault || !strings.Contains(stderr.String(), "terminated") {
			t.Errorf("status %d: %s", status, stderr.String())
		}
	case <-time.After(longEnough):
		_ = cmd.Process.Kill()
		t.Fatal("it goes on after the signal")
	}
}
