// Package tool is the command line of nnopt: verbs, their flags, and what they print.
//
// Every verb is thin: it reads its arguments, calls the library and prints. The command
// line can be built by other programs, over passes of their own.
package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/nnopt/nnopt/fileio"
)

// Main runs the command line of the process and exits.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), endingSignals()...)
	// A write to a pipe without a reader is an error and does not end the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the program at once
		time.Sleep(patienceAtEnd)
		go fmt.Fprintf(os.Stderr, "nnopt: %v\n", context.Cause(ctx)) // it may block as well
		time.Sleep(patienceAtEnd / 10)
		os.Exit(statusFault)
	})
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	os.Exit(status)
}

// patienceAtEnd is the time that a verb has to end by itself after a signal. Its files
// are complete before that: see fileio.Write and kaldiio.TableWriter.
const patienceAtEnd = 500 * time.Millisecond

// endingSignals returns the signals that end the program, without those that its
// parent, such as nohup, has it ignore.
func endingSignals() (signals []os.Signal) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// verbs lists the verbs in the order of help.
func verbs() []verb {
	return []verb{
		demoVerb(),
		runVerb(),
		compileVerb(),
		profileVerb(),
		passesVerb(),
		exprVerb(),
		ruleVerb(),
		initVerb(),
		infoVerb(),
		copyVerb(),
		verifyVerb(),
		benchVerb(),
		versionVerb(),
	}
}

// Exit statuses.
const (
	statusOK    = 0
	statusFault = 1
	statusUsage = 2
)

// A console is the input and output of a verb.
type console struct {
	stdin  io.Reader
	stdout *bufio.Writer // text, made safe for a terminal by plain; run flushes both
	plain  io.WriteCloser
	raw    io.Writer // text that is safe already
	data   io.Writer // standard output for anything else
	stderr io.Writer
	args   []string // the command line
	colors bool     // standard output is a terminal
}

// newConsole returns a console whose reads and writes end with ctx.
func newConsole(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) *console {
	c := &console{stdin: fileio.Reader(ctx, stdin), stderr: stderr, args: args, colors: isTerminal(stdout)}
	c.raw = &textOutput{fileio.Writer(ctx, stdout)}
	c.plain = fileio.NewPlainWriter(c.raw)
	c.stdout = bufio.NewWriter(c.plain)
	switch {
	case c.colors:
		c.data = c.plain
	case isClosed(stdout):
		c.data = closedOutput{}
	default:
		c.data = stdout
	}
	return c
}

// errGone means that nobody reads standard output any more.
var errGone = errors.New("nobody reads standard output")

// A textOutput writes text to standard output.
type textOutput struct{ w io.Writer }

func (t *textOutput) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errGone
	}
	return n, err
}

// A closedOutput stands for standard output that is closed.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, errors.New("standard output is closed (or is " + os.DevNull + " opened for reading, too; write to the file " + os.DevNull + " to discard data)")
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
	_, err := f.Read(make([]byte, 1))
	return err == io.EOF
}

// isNull reports whether a file is the null device.
func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// say writes a message.
func (c *console) say(format string, args ...any) {
	fmt.Fprintln(c.stderr, fileio.Plain(fmt.Sprintf(format, args...)))
}

// shortened cuts the middle out of a long message.
func shortened(s string) string {
	const side = 600
	if len(s) <= 2*side {
		return s
	}
	return strings.ToValidUTF8(s[:side], "") + " … " + strings.ToValidUTF8(s[len(s)-side:], "")
}

// print writes text to standard output.
func (c *console) print(format string, args ...any) { fmt.Fprintf(c.stdout, format, args...) }

// run runs the verb that args name and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := newConsole(ctx, args, stdin, stdout, stderr)
	name, err := dispatch(ctx, c, args)
	for _, flush := range []func() error{c.stdout.Flush, c.plain.Close} {
		if flushErr := flush(); err == nil {
			err = flushErr
		}
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	var usage *usageError
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, errSilent), errors.Is(err, errGone):
		return statusFault
	case errors.As(err, &usage):
		c.say("%s: %s", name, shortened(err.Error()))
		c.say(`"%s" tells more.`, helpCommand(usage.verb))
		return statusUsage
	}
	c.say("%s: %v", name, err)
	return statusFault
}

// errSilent is the error of a verb that has already reported it.
var errSilent = errors.New("failed")

// dispatch parses the flags of a verb and runs it. It returns the name that errors
// begin with.
func dispatch(ctx context.Context, c *console, args []string) (string, error) {
	if len(args) == 0 {
		return "nnopt", &usageError{err: errors.New("no verb given")}
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return "nnopt help", help(c, args)
	}
	v, err := findVerb(name)
	if err != nil {
		return "nnopt", err
	}
	full := "nnopt " + name
	flags, act := v.flags()
	args, err = parseFlags(flags, args, v.minus)
	if errors.Is(err, errHelp) {
		v.help(c)
		return full, nil
	}
	if err == nil {
		err = guard(ctx, c, args, act)
	}
	var usage *usageError
	if errors.As(err, &usage) {
		usage.verb = name
	}
	return full, err
}

// errInternal marks a panic: always a fault of this program, never of its input.
var errInternal = errors.New("internal error, please report it")

// guard runs an action and turns a panic into an error that carries the stack.
func guard(ctx context.Context, c *console, args []string, act action) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errInternal, p, debug.Stack())
		}
	}()
	return act(ctx, c, args)
}
