package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/repro"
)

// Fields of reproducers, beside those of package repro and of the dialect.
const (
	fieldRules   = "rules"   // rules that join the database
	fieldCommand = "command" // the command line that failed
	fieldStack   = "stack"   // of a panic
)

// readCase reads a reproducer.
func readCase(c *Console, name string) (*repro.Case, error) {
	text, head, err := readText(c, name)
	if err != nil {
		return nil, err
	}
	d, err := c.cfg.dialectOf(name, head)
	if err != nil {
		return nil, err
	}
	world, err := d.Open(c, name, head)
	if err != nil {
		return nil, err
	}
	f, err := graphfile.Parse(name, text, world.Dialect())
	if err != nil {
		return nil, err
	}
	if n := len(f.Graphs()); n > 1 {
		return nil, fmt.Errorf("%s: %d graphs; a reproducer has one", name, n)
	}
	db, err := c.cfg.Database()
	if err != nil {
		return nil, err
	}
	if rules := f.Field(fieldRules); rules != "" {
		if err := addRules(db, d.vocabulary(), ruleSource{name, rules}); err != nil {
			return nil, err
		}
	}
	cas, err := repro.FromFile(f, world, db.Build)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cas, nil
}

// onCase returns the action of a verb on the reproducer in a file, its argument.
func onCase(act func(ctx context.Context, c *Console, cas *repro.Case, file string) error) Action {
	return Taking(1, 1, "FILE", func(ctx context.Context, c *Console, args []string) error {
		cas, err := readCase(c, args[0])
		if err != nil {
			return err
		}
		return act(ctx, c, cas, args[0])
	})
}

// writeCase writes a reproducer to a file.
func writeCase(ctx context.Context, c *repro.Case, name string) error {
	f, err := c.File()
	if err != nil {
		return err
	}
	text, err := graphfile.Format(f, c.World.Dialect())
	if err != nil {
		return err
	}
	return fileio.Write(ctx, name, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// SetNote sets a field of a case.
func SetNote(c *repro.Case, name, text string) {
	c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(n graphfile.Field) bool { return n.Name == name })
	if text != "" {
		c.Notes = append(c.Notes, graphfile.Field{Name: name, Text: text})
	}
}

// Note returns a field of a case.
func Note(c *repro.Case, name string) string {
	for _, n := range c.Notes {
		if n.Name == name {
			return n.Text
		}
	}
	return ""
}

// Reproducing returns the error of an optimizer with the name of a reproducer that it writes. The
// reproducer goes to the working directory or, if that can't be written to, to the directory for
// temporary files. A case that does not fail leaves no file.
func Reproducing(ctx context.Context, c *Console, err error, cas *repro.Case) error {
	if ctx.Err() != nil {
		return err
	}
	return &reproducedError{writeReproducer(ctx, c, err, cas)}
}

// Reproduced reports whether an error says where its reproducer is, or why there is none.
func Reproduced(err error) bool { return errors.As(err, new(*reproducedError)) }

// A reproducedError is an error that says where its reproducer is, or why there is none.
type reproducedError struct{ err error }

func (e *reproducedError) Error() string { return e.err.Error() }
func (e *reproducedError) Unwrap() error { return e.err }

// writeReproducer is Reproducing with an error that does not tell that it has been here.
func writeReproducer(ctx context.Context, c *Console, err error, cas *repro.Case) error {
	// The case is run once more before it is written. A file that does not reproduce the failure
	// would be worse than none; and the second run finds the place of the failure, by which the
	// case is recognized from then on. The options of the first run, such as a trace, must not
	// print everything twice.
	ctx = rewrite.WithOptions(ctx, rewrite.Options{})
	failure, fault := repro.Check(ctx, cas)
	switch {
	case fault != nil:
		return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
	case failure.Kind == repro.None:
		return fmt.Errorf("%w\n(there is no reproducer: it did not fail a second time)", err)
	}
	cas.Failure = failure
	SetNote(cas, fieldCommand, strings.TrimSpace(quoted(append([]string{c.cfg.Name}, c.args...))))
	if p := (*rewrite.PanicError)(nil); errors.As(failure.Err, &p) {
		SetNote(cas, fieldStack, "\n"+strings.TrimSpace(string(p.Stack)))
	}
	name, fault := newReproducer(ctx, c, cas)
	if fault != nil {
		return fmt.Errorf("%w\n(a reproducer could not be written: %v)", err, fault)
	}
	return fmt.Errorf("%w\na reproducer is in %s (%v): \"%s reproduce %s\" repeats it, \"reduce\" makes it smaller, \"bisect\" finds the rewrite to blame",
		err, name, failure, c.cfg.Name, name)
}

// newReproducer writes a case to a new file.
func newReproducer(ctx context.Context, c *Console, cas *repro.Case) (name string, err error) {
	// The working directory is where a user looks, but it may be read-only. From another directory
	// the name of the network has to be absolute.
	for _, dir := range []string{".", os.TempDir()} {
		if name, err = newFile(dir, c.cfg.Name+"-failure-"); err != nil {
			continue
		}
		if dir != "." {
			err = c.cfg.relocate(cas, "")
		}
		if err == nil {
			err = keep(ctx, cas, name)
		}
		if err == nil {
			err = writeCase(ctx, cas, name)
		}
		if err == nil {
			return name, nil
		}
		os.Remove(name)
	}
	return "", err
}

// maxReproducers is the number of reproducers in a directory.
const maxReproducers = 10000

// newFile makes an empty file with the first free number.
func newFile(dir, prefix string) (name string, err error) {
	for n := 1; n <= maxReproducers; n++ {
		var f *os.File
		name = filepath.Join(dir, prefix+strconv.Itoa(n)+".graph")
		// The file is created with the name, so that two programs that fail at once don't get the
		// same one.
		if f, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
			return name, f.Close()
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return "", err
}

// keep writes what only the world of a case has beside it.
func keep(ctx context.Context, cas *repro.Case, name string) error {
	if w, ok := cas.World.(Keeper); ok {
		return w.Keep(ctx, cas, name)
	}
	return nil
}

// quoted quotes arguments for a shell, each after a space.
func quoted(args []string) string {
	var b strings.Builder
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]#~`!{}") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		b.WriteString(" " + a)
	}
	return b.String()
}
