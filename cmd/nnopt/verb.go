package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/nnopt/nnopt/nnet3/descriptor"
)

// A verb is what the first argument of nnopt names. It lives in a file of its own; a line in verbs adds it.
type verb struct {
	name     string
	args     string // what follows the flags, as help shows it
	synopsis string // half a line for the list of verbs
	detail   string // what else there is to say
	minus    bool   // an argument may begin with a minus, and is no flag then
	// setup declares the flags. What it returns runs the verb when they have been parsed.
	setup func(fs *flag.FlagSet) action
}

// An action runs a verb on the arguments that are not flags.
type action func(ctx context.Context, c *console, args []string) error

// flags returns the flags of the verb and the action that reads them.
func (v verb) flags() (*flag.FlagSet, action) {
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	act := v.setup(fs)
	bound(fs)
	return fs, act
}

// A usageError is a fault of the command line. run adds where to read more.
type usageError struct {
	verb string
	err  error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef returns a usageError.
func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// wantArgs complains unless there are between least and most arguments.
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
	return verb{}, usagef("there is no verb %q%s", name, meant(descriptor.Nearest(name, names)))
}

// meant asks whether the nearest name is meant.
func meant(nearest string) string {
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("; is %q meant?", nearest)
}

// errHelp says that help is asked for.
var errHelp = errors.New("help is asked for")

// parseFlags sets the flags that it finds among args and returns the other arguments. Flags may stand anywhere before an
// argument "--". As in Kaldi they are written --name=value, and a dash in a name may be written as an underscore; a single
// dash and "--name value" do as well. Of a boolean flag the value may be left out. With minus, what has a single dash and resembles no flag is
// an argument.
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
			return nil, usagef("there is no flag --%s%s", name, meant(nearestFlag(fs, name)))
		}
		switch {
		case hasValue:
		case isBoolean(f):
			value = "true"
		case len(args) == 0:
			return nil, usagef("--%s wants a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := fs.Set(name, value); err != nil {
			return nil, usagef("--%s=%s: %v", name, value, err)
		}
	}
	return rest, nil
}

// looksLikeFlag reports whether what begins with a dash may be a flag: an expression such as -(x + y) or -1 is none.
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

// help is the verb help.
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

// help explains the verb.
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
		c.print("\nKaldi's flags --%[1]s… are there too, such as --%[1]smax-deriv-time; --%[1]spropagate-in-place=false leaves out the pass\npropagate_in_place, and so for every pass.\n", optimizationPrefix)
	}
}
