// Command nnopt optimizes the computations of Kaldi nnet3 networks, and shows how.
//
//	nnopt VERB [flags] [arguments]
//
// "nnopt help" lists the verbs, "nnopt help VERB" explains one. Data goes to standard output, talk to standard error. The exit
// status is 1 for a fault, also for the end by a signal, and 2 for wrong usage.
package main

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

func main() {
	useBLAS()
	ctx, stop := signal.NotifyContext(context.Background(), endingSignals()...)
	// A write to a pipe without a reader is an error like others, and not the end.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	context.AfterFunc(ctx, func() {
		stop() // a second signal needs no more patience
		time.Sleep(patienceAtEnd)
		go fmt.Fprintf(os.Stderr, "nnopt: %v\n", context.Cause(ctx)) // it too may find nobody who reads
		time.Sleep(patienceAtEnd / 10)
		os.Exit(statusFault)
	})
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	os.Exit(status)
}

// patienceAtEnd is how long a verb has to end by itself after a signal. What it writes is whole before that: see fileio.Write and
// kaldiio.TableWriter.
const patienceAtEnd = 500 * time.Millisecond

// endingSignals are those that end the program, without those that its parent has it ignore, as nohup does.
func endingSignals() (signals []os.Signal) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// verbs lists the verbs in the order in which help shows them.
func verbs() []verb {
	return []verb{
		demoVerb(),
		runVerb(),
		compileVerb(),
		profileVerb(),
		passesVerb(),
		exprVerb(),
		initVerb(),
		infoVerb(),
		copyVerb(),
		verifyVerb(),
		benchVerb(),
		versionVerb(),
	}
}

// The exit statuses.
const (
	statusOK    = 0
	statusFault = 1
	statusUsage = 2
)

// A console is what a verb talks to.
type console struct {
	stdin  io.Reader
	stdout *bufio.Writer // for text, which plain makes fit for a terminal; run flushes both at the end
	plain  *fileio.PlainWriter
	raw    io.Writer // for text that is fit already
	data   io.Writer // standard output for what is not text, or not for people
	stderr io.Writer
	args   []string // the command line
	colors bool     // standard output is a terminal
}

// newConsole returns a console whose waiting ends with ctx.
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

// errGone means that nobody reads the text on standard output any more, who may have seen enough.
var errGone = errors.New("nobody reads standard output")

// textOutput is standard output for text.
type textOutput struct{ w io.Writer }

func (t *textOutput) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errGone
	}
	return n, err
}

// closedOutput is standard output that is not there.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, errors.New("standard output is closed (or is " + os.DevNull + " opened for reading, too; write to the file " + os.DevNull + " to discard data)")
}

// isClosed reports whether standard output was closed when the program began: the Go runtime then has opened the null device in its place, for reading and
// writing. Where output is thrown away on purpose it is open for writing alone, as a rule.
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

// say writes a line of talk.
func (c *console) say(format string, args ...any) {
	fmt.Fprintln(c.stderr, fileio.Plain(fmt.Sprintf(format, args...)))
}

// shortened leaves out the middle of a message that quotes a long argument.
func shortened(s string) string {
	const side = 600
	if len(s) <= 2*side {
		return s
	}
	return strings.ToValidUTF8(s[:side], "") + " … " + strings.ToValidUTF8(s[len(s)-side:], "")
}

// print writes data.
func (c *console) print(format string, args ...any) { fmt.Fprintf(c.stdout, format, args...) }

// run is main without the process: it runs the verb that args name and returns the exit status.
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

// errSilent is the error of a verb that has told already what is wrong.
var errSilent = errors.New("failed")

// dispatch finds the verb, parses its flags and runs it. It returns the name to put before errors.
func dispatch(ctx context.Context, c *console, args []string) (string, error) {
	if len(args) == 0 {
		return "nnopt", &usageError{err: errors.New("no verb is given")}
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

// errInternal marks a panic, which is a fault of this program and never of its input.
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
