package tool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
)

// stderrVar is set in the environment of a supervised process: the file that is its standard error.
const stderrVar = "NNOPT_STDERR"

// supervise lets another process do the work if the address space is limited, as by ulimit -v, and
// returns its exit status. A process that gets no memory is ended by Go's runtime, which writes the
// stack to standard error, and nothing in that process can keep it from doing so. done is false if
// this process has to do the work.
func supervise(name string) (status int, done bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(rlimitAS, &limit) != nil || limit.Cur == ^uint64(0) {
		return 0, false
	}
	// This is the worker. Its own children must inherit neither the variable nor the file.
	if fd, err := strconv.Atoi(os.Getenv(stderrVar)); err == nil {
		os.Unsetenv(stderrVar)
		syscall.CloseOnExec(fd)
		os.Stderr = os.NewFile(uintptr(fd), os.Stderr.Name())
		return 0, false
	}
	// The worker writes to a duplicate of standard error, so that it still has a terminal if there
	// is one. To its file 2, which is a pipe to this process, only the runtime writes.
	fd, err := syscall.Dup(int(os.Stderr.Fd()))
	self, selfErr := os.Executable()
	if err != nil || selfErr != nil {
		return 0, false
	}
	var fault bytes.Buffer
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stderrVar+"="+strconv.Itoa(fd))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, &fault
	// The worker ends with this process, even if that is killed. The system means the thread.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1) // each thread takes address space, of which this process must need little
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, endingSignals()...)
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	err = cmd.Wait()
	status = cmd.ProcessState.ExitCode()
	if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && state.Signaled() {
		status = 128 + int(state.Signal())
	}
	// A verb that fails writes nothing to file 2. What is there comes from the runtime: shown as it
	// is, unless it is about memory.
	if !errors.As(err, new(*exec.ExitError)) && err != nil || fault.Len() == 0 {
		return status, true
	}
	if noMemory.Match(fault.Bytes()) {
		asked := ""
		if m := askedFor.FindSubmatch(fault.Bytes()); m != nil {
			asked = fmt.Sprintf(": %s bytes more were asked for", m[1])
		}
		fmt.Fprintf(os.Stderr, "%s: out of memory%s; the address space is limited to %d bytes (ulimit -v)\n", name, asked, limit.Cur)
		return statusFault, true
	}
	_, _ = os.Stderr.Write(fault.Bytes())
	return status, true
}

// rlimitAS is RLIMIT_AS, which package syscall lacks on some processors.
const rlimitAS = 9

// What the runtime says when it gets no memory, or no thread for want of memory.
var (
	noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to create new OS thread|cannot map pages|cannot reserve`)
	askedFor = regexp.MustCompile(`cannot allocate (\d+)-byte block`)
)
