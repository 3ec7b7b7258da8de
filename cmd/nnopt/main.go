// Command nnopt optimizes the computations of Kaldi nnet3 networks, and shows how.
//
//	nnopt VERB [flags] [arguments]
//
// "nnopt help" lists the verbs, "nnopt help VERB" explains one. Data goes to standard output, talk to standard error. The exit
// status is 1 for a fault and 2 for wrong usage.
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
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

func main() {
	useBLAS()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
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

// A console is what a verb talks to. Stdout is buffered; run flushes it at the end.
type console struct {
	stdin  io.Reader
	stdout *bufio.Writer
	stderr io.Writer
	args   []string // the command line
	colors bool     // standard output is a terminal
}

// say writes a line of talk.
func (c *console) say(format string, args ...any) {
	fmt.Fprintln(c.stderr, harmless(fmt.Sprintf(format, args...)))
}

// harmless writes control characters as Go does. Errors quote what stands in files, which is not to steer the terminal.
func harmless(s string) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, control) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case control(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(r)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
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
	c := &console{stdin: stdin, stdout: bufio.NewWriter(stdout), stderr: stderr, args: args, colors: isTerminal(stdout)}
	name, err := dispatch(ctx, c, args)
	if flushErr := c.stdout.Flush(); err == nil {
		err = flushErr
	}
	var usage *usageError
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, syscall.EPIPE):
		return statusFault // the reader has seen enough
	case errors.Is(err, errSilent):
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
