package tool

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/view"
)

func viewVerb() Verb {
	return Verb{
		Name:     "view",
		Args:     "FILE|PROFILE",
		Minus:    true,
		Synopsis: "make or serve a page on which to watch the optimizer",
		Detail: `
Optimizes the graphs of FILE, and makes a page of what the optimizer did: the graph after every step, what changed and by which rule, the
passes as a timeline, and why rules did not fire. A PROFILE, a file of "$0 profile --format=json", gives the timeline alone. A page
itself can be served again.

--output writes the page to one file, which needs no network. --listen serves it, until a signal ends it; then the page also optimizes
graphs that are typed there, with the passes that are ticked, checks rules, and says why rules do not fire at any step. The address
is HOST:PORT; the default serves this machine alone, on any free port. With neither, the page goes to standard output.`,
		Examples: `
$0 view --output=page.html my.graph
$0 view --listen my.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			f := &viewFlags{cfg: cfg, SubjectFlags: declareSubject(cfg, fs)}
			fs.StringVar(&f.output, "output", "", "Write the page to this file; \"-\" is standard output")
			fs.Var(&bareFlag{&f.listen, anyPort, isAddress}, "listen", "Serve the page at this address; without a value at "+anyPort)
			return func(ctx context.Context, c *Console, args []string) error {
				args = f.takeAddress(args)
				if err := WantArgs(args, 1, 1, cfg.arguments("view")); err != nil {
					return err
				}
				return f.run(ctx, c, args[0])
			}
		},
	}
}

// anyPort is the address of --listen without a value.
const anyPort = "127.0.0.1:0"

// address is what an address looks like, and no file or expression does.
var address = regexp.MustCompile(`^[^\s/]*:[0-9]+$`)

// takeAddress takes the address of --listen from the arguments, if it is one of them.
func (f *viewFlags) takeAddress(args []string) []string {
	i := slices.IndexFunc(args, address.MatchString)
	if f.listen != anyPort || len(args) != 2 || i < 0 {
		return args
	}
	f.listen = args[i]
	return slices.Delete(slices.Clone(args), i, i+1)
}

// viewFlags are the flags of view.
type viewFlags struct {
	*SubjectFlags
	cfg            *Config
	output, listen string
}

// run runs the verb.
func (f *viewFlags) run(ctx context.Context, c *Console, arg string) error {
	if SameFile(arg, f.output) {
		return Usagef("%s is an input and would be overwritten", arg)
	}
	s, in, err := f.subject(ctx, c, arg)
	if err != nil {
		return err
	}
	if s.Run != nil {
		if err := s.AddMisses(ctx); err != nil {
			return err
		}
	}
	write := func(w io.Writer) error { return view.WritePage(w, s.Recording) }
	switch {
	case f.listen == "" && (f.output == "" || f.output == "-"):
		return write(fileio.Writer(ctx, c.Data))
	case f.output != "":
		if err := WriteTo(ctx, c.Stdout, f.output, write); err != nil {
			return err
		}
	}
	if f.listen == "" {
		return nil
	}
	return f.serve(ctx, c, arg, s, in)
}

// subject records what the argument says, and returns what the page is to ask for again.
func (f *viewFlags) subject(ctx context.Context, c *Console, arg string) (s *view.Subject, in view.Input, err error) {
	// What the argument is decides which flags have a meaning. A page and a profile are recognized by
	// their beginning; anything else is a subject of some dialect.
	var head []byte
	if f.only == nil { // a page may not have any file read by typing its name
		if head, err = headOf(arg); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, in, err
		}
	}
	page, prof := isPage(head), isProfile(head)
	if !page && !prof {
		source, err := f.sourceOf(c, arg)
		if err != nil {
			return nil, in, err
		}
		if source.Record != nil {
			s, err = source.Record(ctx, c, arg, &in)
			return f.repeatable(s), in, err
		}
		subject, err := source.Open(ctx, c, arg)
		if err != nil {
			return nil, in, err
		}
		s, err = subject.record(ctx, c, arg, f.SubjectFlags, &in)
		return f.repeatable(s), in, err
	}
	what := "a profile"
	if page {
		what = "a page"
	}
	if err := c.only("for "+what+", which is finished", "output", "listen"); err != nil {
		return nil, in, err
	}
	s = new(view.Subject)
	if page {
		s.Recording, err = readWith(arg, "the page", view.ReadPage)
		return s, in, err
	}
	p, err := readProfile(arg)
	if err != nil {
		return nil, in, err
	}
	s.Recording, err = view.NewProfile(p)
	return s, in, err
}

func isPage(head []byte) bool    { return bytes.HasPrefix(head, []byte("<!DOCTYPE html>")) }
func isProfile(head []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) }

// headOf returns the first bytes of a file; "-" has none.
func headOf(name string) ([]byte, error) {
	if name == "-" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		if _, statErr := os.Lstat(name); statErr != nil { // a name that no file can have, for example
			err = os.ErrNotExist
		}
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, 64))
}

// repeatable makes a subject keep to --max-rewrites when it is repeated.
func (f *viewFlags) repeatable(s *view.Subject) *view.Subject {
	if s == nil || f.Watch.Most < 0 {
		return s
	}
	// A question about a step repeats the run, which must end where the recorded one did. The
	// question may have a limit of its own, which is lower.
	run := s.Run
	s.Run = func(ctx context.Context) error {
		opts := rewrite.OptionsFrom(ctx)
		if opts.Allow == nil {
			opts.Allow = rewrite.Budget(f.Watch.Most)
			ctx = rewrite.WithOptions(ctx, opts)
		}
		return run(ctx)
	}
	return s
}

// writeProfilePage writes a page with the timeline of a profile.
func writeProfilePage(f *profile.Function, w io.Writer) error {
	r, err := view.NewProfile(f)
	if err != nil {
		return err
	}
	return view.WritePage(w, r)
}
