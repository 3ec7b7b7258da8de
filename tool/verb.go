package tool

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
)

// A Verb is a subcommand. In its texts, and in those of its flags, $0 is replaced by the
// name of the program.
type Verb struct {
	Name     string
	Args     string // the arguments after the flags, as help shows them
	Synopsis string // for the list of verbs
	Detail   string // the rest of the help
	Examples string // command lines, for the help
	Minus    bool   // arguments may begin with a minus
	Before   string // the verb before which help lists it; by default it comes last
	// Claims reports whether an argument is for this verb, where another dialect has one of the same
	// name. The two are then one verb, with the flags of both, and what is not claimed is for the
	// other one. Without it, a verb takes the place of an earlier one of its name.
	Claims func(arg string) bool
	Of     string // what the verb is about, if it shares its name: "an ONNX model"
	// Setup declares the flags and returns the action that runs once they are parsed.
	Setup func(cfg *Config, fs *flag.FlagSet) Action
}

// saying returns the verb with the texts of another one, as far as that has any.
func (v Verb) saying(other Verb) Verb {
	v.Args, v.Synopsis = cmp.Or(other.Args, v.Args), cmp.Or(other.Synopsis, v.Synopsis)
	v.Detail, v.Examples = cmp.Or(other.Detail, v.Detail), cmp.Or(other.Examples, v.Examples)
	return v
}

// An Action runs a verb on the arguments that are no flags. What it returns is printed as
// an error after the names of the program and the verb; see [Usagef].
type Action func(ctx context.Context, c *Console, args []string) error

// Flags returns the flags of the verb in a program. They refuse numbers that [Config.Ranges] excludes.
func (v Verb) Flags(cfg *Config) *flag.FlagSet {
	fs, _ := v.flags(cfg)
	return fs
}

// flags returns the flags of the verb and the action that reads them.
func (v Verb) flags(cfg *Config) (*flag.FlagSet, Action) {
	fs := flag.NewFlagSet(v.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	act := v.Setup(cfg, fs)
	cfg.bound(fs)
	return fs, act
}

// A usageError is a fault of the command line.
type usageError struct {
	verb string
	err  error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef returns an error that is a fault of the command line: the exit status is 2, and
// a hint at the help follows.
func Usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// WantArgs returns an error unless there are between least and most arguments.
func WantArgs(args []string, least, most int, what string) error {
	switch {
	case len(args) < least:
		return Usagef("%s expected", what)
	case len(args) > most && most == 0:
		return Usagef("unexpected argument %q", fileio.Excerpt(args[0], 0))
	case len(args) > most:
		return Usagef("unexpected argument %q after %s", fileio.Excerpt(args[most], 0), what)
	}
	return nil
}

// Taking returns an action that begins with [WantArgs].
func Taking(least, most int, what string, act Action) Action {
	return func(ctx context.Context, c *Console, args []string) error {
		if err := WantArgs(args, least, most, what); err != nil {
			return err
		}
		return act(ctx, c, args)
	}
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
// be anywhere before an argument "--". The form is Kaldi's, --name=value, with
// underscores allowed for dashes; -name and "--name value" work too. A boolean flag
// needs no value. With minus, an argument with a single dash that resembles no flag is
// not a flag.
func parseFlags(fs *flag.FlagSet, args []string, minus bool) ([]string, error) {
	var rest []string
	// Package flag stops at the first argument that is no flag. Kaldi's users write flags after
	// arguments as well, so this loop is our own; values are still set by package flag.
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
		// Of a verb that takes expressions, -x is one. But -trce is a misspelt flag: what resembles
		// a flag is reported, and not optimized.
		if f == nil && minus && arg[1] != '-' && !hasValue && nearestFlag(fs, name) == "" {
			rest = append(rest, arg)
			continue
		}
		if f == nil {
			return nil, Usagef("unknown flag --%s%s", fileio.Excerpt(name, 0), meant(nearestFlag(fs, name)))
		}
		switch {
		case hasValue:
		case isBoolean(f):
			value = "true"
		case len(args) == 0:
			return nil, Usagef("--%s needs a value", name)
		default:
			value, args = args[0], args[1:]
		}
		if err := fs.Set(name, value); err != nil {
			// The error of a flag may quote its value, which may be a megabyte of text.
			short, why := fileio.Excerpt(value, 0), err.Error()
			if short != value {
				why = strings.ReplaceAll(why, value, short)
			}
			return nil, Usagef("--%s=%s: %s", name, short, why)
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
	if n := spell.Nearest(name, names); n != "" {
		return "--" + n
	}
	return ""
}

// help runs the verb help.
func help(c *Console, args []string) error {
	if err := WantArgs(args, 0, 1, "a verb"); err != nil {
		return err
	}
	if len(args) == 1 {
		v, err := c.cfg.verb(args[0])
		if err != nil {
			return err
		}
		v.help(c)
		return nil
	}
	c.Print("%s", c.cfg.overview())
	return nil
}

// overview returns what the program does and the list of its verbs.
func (cfg *Config) overview() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nusage: %s VERB [flags] [arguments]\n\n", cfg.Doc, cfg.Name)
	all := cfg.AllVerbs()
	width, first := 0, ""
	for _, v := range all {
		width = max(width, len(v.Name))
		if v.Name == "demo" {
			first = fmt.Sprintf(" Try \"%s demo\" first.", cfg.Name)
		}
	}
	for _, v := range all {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, v.Name, cfg.named(v.Synopsis))
	}
	fmt.Fprintf(&b, `
"%[1]s help VERB" explains a verb.%[2]s A verb in which a pass fails writes a
reproducer to the working directory, %[1]s-failure-1.graph or the next free number.
`, cfg.Name, first)
	return b.String()
}

func (cfg *Config) helpCommand(verb string) string {
	return strings.TrimSpace(cfg.Name + " help " + verb)
}

// named puts the name of the program into a text.
func (cfg *Config) named(text string) string { return strings.ReplaceAll(text, "$0", cfg.Name) }

// help prints the help of the verb.
func (v Verb) help(c *Console) {
	fs, _ := v.flags(c.cfg)
	c.Print("%s %s: %s\n\n", c.cfg.Name, v.Name, c.cfg.named(v.Synopsis))
	c.Print("%s\n", strings.TrimSpace("usage: "+c.cfg.Name+" "+v.Name+" [flags] "+v.Args))
	if v.Detail != "" {
		c.Print("\n%s\n", strings.TrimSpace(c.cfg.named(v.Detail)))
	}
	if v.Examples != "" {
		c.Print("\nexamples:\n")
		for line := range strings.Lines(strings.TrimSpace(c.cfg.named(v.Examples)) + "\n") {
			c.Print("  %s", line)
		}
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
	c.Print("\nflags:\n")
	for _, f := range flags {
		_, usage := flag.UnquoteUsage(f)
		c.Print("  --%-*s : %s", width, f.Name, c.cfg.named(usage))
		if f.DefValue != "" {
			c.Print(" (default = %s)", f.DefValue)
		}
		c.Print("\n")
	}
	if !switches {
		return
	}
	doc, rest := "", "any pass"
	for _, d := range c.cfg.Dialects {
		if d.SwitchesDoc != "" {
			doc, rest = doc+d.SwitchesDoc, "any other pass"
		}
	}
	c.Print("\n%s--%sNAME=false leaves out %s, NAME.\n", doc, optimizationPrefix, rest)
}

// A bareFlag is a text that has a value of its own if the flag is given without one.
type bareFlag struct {
	Value *string
	Bare  string                  // the value of a flag without one
	Check func(text string) error // nil: any text
}

func (b *bareFlag) String() string   { return "" }
func (b *bareFlag) IsBoolFlag() bool { return true }

// Set takes the text. A flag without a value arrives here as "true".
func (b *bareFlag) Set(text string) error {
	switch *b.Value = text; {
	case text == "true":
		*b.Value = b.Bare
	case text == "false":
		*b.Value = ""
	case b.Check != nil && text != "":
		return b.Check(text)
	}
	return nil
}
