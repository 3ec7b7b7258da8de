// Package tool is the command line of nnopt as a library: verbs, their flags, and what
// they print.
//
// [Main] runs a program that a [Config] describes: a name, a database of passes, dialects, and verbs of
// its own. A [Dialect] is a world of graphs, such as those of tensors. The verbs here know graphs only
// through dialects, so they work on the graphs of any program that brings one. Package standard puts
// nnopt together. [Config.Run] is the same without the process, for tests and for programs that have a
// command line already.
//
// Every verb is thin: it reads its arguments, calls the library and prints. A [Verb] of a caller is like
// those of this package: it declares flags, and its action reads and writes by a [Console].
package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Main runs the command line of the process and exits. The exit status is 1 after a fault
// or a signal, and 2 after wrong usage.
func Main(cfg Config) {
	cfg = cfg.complete()
	status, done := supervise(cfg.Name)
	if done {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), endingSignals()...)
	keepBrokenPipes()
	context.AfterFunc(ctx, func() {
		time.Sleep(patienceAtEnd / 10) // a process that supervises this one passes on what both have got
		stop()                         // a second signal ends the program at once
		time.Sleep(patienceAtEnd)
		go fmt.Fprintf(os.Stderr, "%s: %v\n", cfg.Name, context.Cause(ctx)) // it may block as well
		time.Sleep(patienceAtEnd / 10)
		os.Exit(statusFault)
	})
	os.Exit(cfg.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// patienceAtEnd is the time that a verb has to end by itself after a signal. Its files
// are complete before that: see fileio.Write and kaldiio.TableWriter.
const patienceAtEnd = 500 * time.Millisecond

// endingSignals returns the signals that end the program, without those that its
// parent, such as nohup, has it ignore.
func endingSignals() []os.Signal {
	return slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, hangUp}, signal.Ignored)
}

// Exit statuses.
const (
	statusOK    = 0
	statusFault = 1
	statusUsage = 2
	statusOther = 3 // of reproduce
)

// Run runs the verb that args name, args[0], and returns the exit status: 0, 1 after a
// fault or when ctx is canceled, 2 after wrong usage. The verb reproduce has one more. Stdin
// may be nil.
func (cfg Config) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cfg = cfg.complete()
	c := newConsole(ctx, &cfg, args, stdin, stdout, stderr)
	// Verbs that know which file their subject came from have added a reproducer to the error of a
	// pass. For the others it is done here, with the subject in a file of its own.
	name, err := dispatch(ctx, c, args)
	for _, d := range cfg.Dialects {
		if err != nil && d.Failed != nil {
			err = d.Failed(ctx, c, err)
		}
	}
	// What was printed before an error is still shown. A failing flush counts only if nothing else
	// failed: it is mostly the consequence, such as a pipe without a reader.
	for _, flush := range []func() error{c.Stdout.Flush, c.plain.Close} {
		if flushErr := flush(); err == nil {
			err = flushErr
		}
	}
	// "context canceled" tells a user nothing. The cause names the signal.
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	var usage *usageError
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, ErrSilent), errors.Is(err, errGone):
		return statusFault
	case errors.Is(err, errOther):
		return statusOther
	case errors.Is(err, errNoVerb):
		fmt.Fprint(stderr, cfg.overview())
		return statusUsage
	case errors.As(err, &usage):
		c.Say("%s: %s", name, shortLines(err.Error()))
		c.Say(`"%s" tells more.`, cfg.helpCommand(usage.verb))
		return statusUsage
	}
	c.Say("%s: %s", name, shortLines(strings.TrimRight(err.Error(), "\n")))
	return statusFault
}

// shortLines cuts the middle out of long lines of a message, which quote names of files, above all.
func shortLines(s string) string {
	const side = 600
	if len(s) <= 2*side {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		if len(line) > 2*side {
			line = strings.ToValidUTF8(line[:side], "") + " … " + strings.ToValidUTF8(line[len(line)-side:], "")
		}
		b.WriteString(line)
	}
	return b.String()
}

// ErrSilent is the error of a verb that has already reported it.
var ErrSilent = errors.New("failed")

// errNoVerb is the error of a command line without a verb. The list of verbs takes its place.
var errNoVerb = errors.New("no verb given")

// errOther is the error of reproduce for a case that fails in another way than it should.
var errOther = errors.New("failed in another way")

// dispatch parses the flags of a verb and runs it. It returns the name that errors
// begin with.
func dispatch(ctx context.Context, c *Console, args []string) (string, error) {
	if len(args) == 0 {
		return c.cfg.Name, errNoVerb
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return c.cfg.Name + " help", help(c, args)
	}
	v, err := c.cfg.verb(name)
	if err != nil {
		return c.cfg.Name, err
	}
	full := c.cfg.Name + " " + name
	flags, act := v.flags(c.cfg)
	args, err = parseFlags(flags, args, v.Minus)
	if errors.Is(err, errHelp) {
		v.help(c)
		return full, nil
	}
	if err == nil {
		c.set = flags
		err = guard(ctx, c, args, act)
	}
	var usage *usageError
	if errors.As(err, &usage) {
		usage.verb = name
		// Without a database there are no flags for its passes.
		if _, fault := c.cfg.Database(); fault != nil {
			return full, fault
		}
	}
	return full, err
}

// errInternal marks a panic: always a fault of this program, never of its input.
var errInternal = errors.New("internal error, please report it")

// guard runs an action and turns a panic into an error that carries the stack.
func guard(ctx context.Context, c *Console, args []string, act Action) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errInternal, p, debug.Stack())
		}
	}()
	return act(ctx, c, args)
}
