package tool

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/nnopt/nnopt/internal/fileio"
)

// A Console is the input and output of a verb. Reads and writes end when the context of
// the verb does.
type Console struct {
	Stdin io.Reader
	// Stdout takes text. It escapes what could steer a terminal. The program flushes it.
	Stdout *bufio.Writer
	// Data is standard output for anything but text, unbuffered and unchanged unless it
	// is a terminal.
	Data   io.Writer
	Stderr io.Writer

	// Safe is standard output for text that is safe already, unbuffered.
	Safe   io.Writer
	Colors bool // standard output is a terminal

	cfg   *Config
	plain io.WriteCloser // below Stdout: makes text safe for a terminal
	args  []string       // the command line
	set   *flag.FlagSet  // the flags of the verb, once they are parsed
}

// newConsole returns a console whose reads and writes end with ctx.
func newConsole(ctx context.Context, cfg *Config, args []string, stdin io.Reader, stdout, stderr io.Writer) *Console {
	c := &Console{Stdin: fileio.Reader(ctx, stdin), Stderr: stderr, cfg: cfg, args: args, Colors: IsTerminal(stdout)}
	c.Safe = &textOutput{fileio.Writer(ctx, stdout)}
	c.plain = fileio.NewPlainWriter(c.Safe)
	c.Stdout = bufio.NewWriter(c.plain)
	switch {
	case c.Colors:
		c.Data = c.plain
	case isClosed(stdout):
		c.Data = closedOutput{}
	default:
		c.Data = stdout
	}
	return c
}

// Config returns the configuration of the program.
func (c *Console) Config() *Config { return c.cfg }

// errGone means that standard output is a pipe that has lost its reader.
var errGone = errors.New("standard output has no reader")

// A textOutput writes text to standard output.
type textOutput struct{ w io.Writer }

func (t *textOutput) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errGone
	}
	return n, err
}

// A closedOutput takes the place of standard output that is closed.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, errors.New("standard output is closed (or is " + os.DevNull + " opened for reading as well; write to the file " + os.DevNull + " to discard data)")
}

// isClosed reports whether standard output was closed when the program began. The Go
// runtime then opens the null device in its place, for reading and writing; a shell
// that discards output opens it for writing only.
func isClosed(stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	if !ok {
		return false
	}
	if info, err := f.Stat(); err != nil || !isNull(info) {
		return false
	}
	// The null device that the runtime opens can be read, and is at its end. One that a shell
	// opened for writing can't be read.
	_, err := f.Read(make([]byte, 1))
	return err == io.EOF
}

// isNull reports whether a file is the null device.
func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !isNull(info)
}

// Say writes a message, a line of its own, to standard error.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintln(c.Stderr, fileio.Plain(fmt.Sprintf(format, args...)))
}

// Print writes text to standard output.
func (c *Console) Print(format string, args ...any) { fmt.Fprintf(c.Stdout, format, args...) }
