package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/nnopt/nnopt/nnet3/descriptor"
)

// A verb is a subcommand. Each has a file of its own and a line in verbs.
type verb struct {
	name     string
	args     string // the arguments after the flags, as help shows them
	synopsis string // for the list of verbs
	detail   string // the rest of the help
	minus    bool   // arguments may begin with a minus
	// setup declares the flags and returns the action that runs once they are parsed.
	setup func(fs *flag.FlagSet) action
}

// An action runs a verb on its arguments.
type action func(ctx context.Context, c *console, args []string) error

// flags returns the flags of the verb and the action that reads them.
func (v verb) flags() (*flag.FlagSet, action) {
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	act := v.setup(fs)
	bound(fs)
	return fs, act
}

// A usageError is a fault of the command line. run adds a hint at the help.
type usageError struct {
	verb string
	err  error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// wantArgs returns an error unless there are between least and most arguments.
func wantArgs(args []string, least, most int, what string) error {
	switch {
	case len(args) < least:
		return usagef("%s expected", what)
	case len(args) > most:
		return usagef("unexpected argument %q after %s", args[most], what)
	}
	return nil
}

func findVerb(name string) (verb, error) {
	all := verbs()
	names := make([]string, len(all))
	for i, v := range all {
		if v.name == name {
			return v, nil
		}
		names[i] = v.name
	}
	return verb{}, usagef("unknown verb %q%s", name, meant(descriptor.Nearest(name, names)))
}

// meant suggests the nearest name.
func meant(nearest string) string {
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", nearest)
}

// errHelp is returned for --help.
var errHelp = errors.New("help requested")

// parseFlags sets the flags among args and returns the other arguments. Flags may
// stand anywhere before an argument "--". The form is Kaldi's, --name=value, with
// underscores allowed for dashes; -name and "--name value" work too. A boolean flag
// needs no value. With minus, an argument with a single dash that resembles no flag is
// not a flag.
func parseFlags(fs *flag.FlagSet, args []string, minus bool) ([]string, error) {
	var rest []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return append(rest, args...), nil
		}
		if len(arg) < 2 || arg[0] != '-' || !looksLikeFlag(arg) {
			rest = append(rest, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		name = strings.ReplaceAll(name, "_", "-")
		if name == "help" || name == "h" {
			return nil, errHelp
		}
		f := fs.Lookup(name)
		if f == nil && minus && arg[1] != '-' && !hasValue && nearestFlag(fs, name) == "" {
			rest = append(rest, arg)
			continue
		}
		if f == nil {
			return nil, usagef("unknown flag --%s%s", name, meant(nearestFlag(fs, name)))
		}
		switch {
		case hasValue:
		case isBoolean(f):
			value = "true"
		case len(args) == 0:
			return nil, usagef("--%s needs a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := fs.Set(name, value); err != nil {
			return nil, usagef("--%s=%s: %v", name, value, err)
		}
	}
	return rest, nil
}

// looksLikeFlag reports whether an argument with a dash may be a flag, unlike -1 or
// -(x + y).
func looksLikeFlag(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("-_.0123456789", r)) {
			return false
		}
	}
	return name != ""
}

func isBoolean(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func nearestFlag(fs *flag.FlagSet, name string) string {
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if n := descriptor.Nearest(name, names); n != "" {
		return "--" + n
	}
	return ""
}

// help runs the verb help.
func help(c *console, args []string) error {
	if err := wantArgs(args, 0, 1, "a verb"); err != nil {
		return err
	}
	if len(args) == 1 {
		v, err := findVerb(args[0])
		if err != nil {
			return err
		}
		v.help(c)
		return nil
	}
	c.print("nnopt optimizes computation graphs by a database of passes, and runs Kaldi nnet3 networks on them.\n\n")
	c.print("usage: nnopt VERB [flags] [arguments]\n\n")
	for _, v := range verbs() {
		c.print("  %-8s  %s\n", v.name, v.synopsis)
	}
	c.print("\n\"nnopt help VERB\" explains a verb. Try \"nnopt demo\" first.\n")
	return nil
}

func helpCommand(verb string) string {
	if verb == "" {
		return "nnopt help"
	}
	return "nnopt help " + verb
}

// help prints the help of the verb.
func (v verb) help(c *console) {
	fs, _ := v.flags()
	c.print("nnopt %s: %s\n\n", v.name, v.synopsis)
	c.print("%s\n", strings.TrimSpace("usage: nnopt "+v.name+" [flags] "+v.args))
	if v.detail != "" {
		c.print("\n%s\n", strings.TrimSpace(v.detail))
	}
	var flags []*flag.Flag
	width, switches := 0, false
	fs.VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, optimizationPrefix) {
			switches = true
			return
		}
		flags = append(flags, f)
		width = max(width, len(f.Name))
	})
	if len(flags) == 0 {
		return
	}
	c.print("\nflags:\n")
	for _, f := range flags {
		_, usage := flag.UnquoteUsage(f)
		c.print("  --%-*s : %s", width, f.Name, usage)
		if f.DefValue != "" {
			c.print(" (default = %s)", f.DefValue)
		}
		c.print("\n")
	}
	if switches {
		c.print("\nKaldi's flags --%[1]s… are accepted too, such as --%[1]smax-deriv-time and --%[1]spropagate-in-place=false,\nand --%[1]sNAME=false leaves out the pass NAME, whichever it is.\n", optimizationPrefix)
	}
}
