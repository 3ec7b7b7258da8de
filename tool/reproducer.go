package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// Fields of reproducers that say what the case needs from outside.
const (
	fieldNetwork = "network"   // a file with the network
	fieldMode    = "test-mode" // what is in test mode, unlike in that file
	fieldRules   = "rules"     // rules that join the database
	fieldCommand = "command"   // the command line that failed
	fieldStack   = "stack"     // of a panic
)

// The modes of networks.
const (
	modeAll      = "all"
	modeNotBatch = "all but batch normalization"
)

// readCase reads a reproducer.
func readCase(c *Console, name string) (*repro.Case, error) {
	text, head, err := readText(c, name)
	if err != nil {
		return nil, err
	}
	nn, err := networkOf(c, name, head)
	if err != nil {
		return nil, err
	}
	world := c.cfg.world(nn)
	f, err := graphfile.Parse(name, text, world.Dialect())
	if err != nil {
		return nil, err
	}
	if n := len(f.Graphs()); n > 1 {
		return nil, fmt.Errorf("%s: %d graphs; a reproducer has one", name, n)
	}
	db := c.cfg.Database()
	if rules := f.Field(fieldRules); rules != "" {
		if err := addRules(db, c.cfg.vocabularyFor(nn), name, rules); err != nil {
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
	return taking(1, 1, "FILE", func(ctx context.Context, c *Console, args []string) error {
		cas, err := readCase(c, args[0])
		if err != nil {
			return err
		}
		return act(ctx, c, cas, args[0])
	})
}

// world returns the world of graphs of a network, or of tensors if it is nil.
func (cfg *Config) world(nn *nnet3.Nnet) repro.World {
	if nn == nil {
		return tensors.World(cfg.tensorDialect())
	}
	return networks.World(nn, cfg.networkDialect(nn))
}

// setMode puts components into test mode.
func setMode(nn *nnet3.Nnet, mode string) error {
	switch mode {
	case "":
		return nil
	case modeAll, modeNotBatch:
	default:
		return fmt.Errorf("%s: %q; want %q or %q", fieldMode, fileio.Excerpt(mode, 0), modeAll, modeNotBatch)
	}
	nn.SetTestMode(true)
	for _, c := range nn.Components {
		if bn, ok := c.(component.BatchNorm); ok && mode == modeNotBatch {
			bn.SetTestMode(false)
		}
	}
	return nil
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

// setNote sets a field of a case.
func setNote(c *repro.Case, name, text string) {
	c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(n graphfile.Field) bool { return n.Name == name })
	if text != "" {
		c.Notes = append(c.Notes, graphfile.Field{Name: name, Text: text})
	}
}

// note returns a field of a case.
func note(c *repro.Case, name string) string {
	for _, n := range c.Notes {
		if n.Name == name {
			return n.Text
		}
	}
	return ""
}

// reproducing returns the error of an optimizer with the name of a reproducer that it writes. The
// reproducer goes to the working directory or, if that can't be written to, to the directory for
// temporary files. A case that does not fail leaves no file.
func reproducing(ctx context.Context, c *Console, err error, cas *repro.Case) error {
	if ctx.Err() != nil {
		return err
	}
	return &reproducedError{writeReproducer(ctx, c, err, cas)}
}

// A reproducedError is an error that says where its reproducer is, or why there is none.
type reproducedError struct{ err error }

func (e *reproducedError) Error() string { return e.err.Error() }
func (e *reproducedError) Unwrap() error { return e.err }

// writeReproducer is reproducing with an error that does not tell that it has been here.
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
	setNote(cas, fieldCommand, strings.TrimSpace(quoted(append([]string{c.cfg.Name}, c.args...))))
	if p := (*rewrite.PanicError)(nil); errors.As(failure.Err, &p) {
		setNote(cas, fieldStack, "\n"+strings.TrimSpace(string(p.Stack)))
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
			err = absoluteNetwork(cas)
		}
		if err == nil {
			err = besideNetwork(ctx, cas, name)
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

// networkWorld is a world whose network has to be written beside the reproducer.
type networkWorld struct {
	repro.World
	nn *nnet3.Nnet
}

// besideNetwork writes the network beside a reproducer if it has no file of its own.
func besideNetwork(ctx context.Context, cas *repro.Case, name string) error {
	w, ok := cas.World.(networkWorld)
	if !ok || note(cas, fieldNetwork) != "" {
		return nil
	}
	file := strings.TrimSuffix(name, filepath.Ext(name)) + ".raw"
	setNote(cas, fieldNetwork, filepath.Base(file))
	return fileio.Write(ctx, file, func(out io.Writer) error { return pipeline.Save(out, w.nn, true) })
}

// absoluteNetwork makes the name of the network absolute.
func absoluteNetwork(cas *repro.Case) error {
	file := note(cas, fieldNetwork)
	if file == "" {
		return nil
	}
	file, err := filepath.Abs(file)
	setNote(cas, fieldNetwork, file)
	return err
}

// networkFailed is reproducing for an error of package pipeline. It returns any other error as it
// is. model is the file that the network was read from, budget the most rewrites, or negative, and
// added what flags add to the database.
func networkFailed(ctx context.Context, c *Console, err error, model string, budget int, added *addedRules) error {
	var failed *pipeline.FailedError
	var again *reproducedError
	if !errors.As(err, &failed) || errors.As(err, &again) || ctx.Err() != nil {
		return err
	}
	chain, fault := lower.LowerChain(failed.Compiled, failed.Net)
	if fault != nil {
		return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
	}
	db := c.cfg.Database()
	if _, fault := added.join(db, c.cfg.networkVocabulary(), failed.Query); fault != nil {
		return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
	}
	base := repro.Case{
		World: networkWorld{networks.World(failed.Net, lower.Dialect{Network: failed.Net}), failed.Net},
		Build: db.Build, Query: failed.Query,
	}
	added.note(&base)
	if budget >= 0 {
		base.Budget = &budget
	}
	if mode, ok := sameNetwork(c, model, failed.Net); ok {
		setNote(&base, fieldNetwork, model)
		setNote(&base, fieldMode, mode)
	}
	// The segment that fails is the first that fails by itself.
	// Segments of a looped computation are graphs of their own, and a case has one. An error does
	// not say in which it happened, so each is tried. If none fails by itself, the first one is the
	// case, and will be reported as not failing.
	chosen := base
	for _, p := range chain.Programs {
		one := base
		one.Graph = p.Graph
		if chosen.Graph == nil {
			chosen = one
		}
		if f, fault := repro.Check(rewrite.WithOptions(ctx, rewrite.Options{}), &one); fault == nil && f.Kind != repro.None {
			chosen = one
			break
		}
	}
	return reproducing(ctx, c, err, &chosen)
}

// sameNetwork reports whether a file has a network, up to test mode, and that mode.
func sameNetwork(c *Console, file string, nn *nnet3.Nnet) (mode string, ok bool) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	loaded, fromConfig, err := loadNetwork(c, file, 0)
	if err != nil || fromConfig {
		return "", false
	}
	var want bytes.Buffer
	if pipeline.Save(&want, nn, true) != nil {
		return "", false
	}
	// The network in memory may be in test mode, and may have been changed in other ways. Only if
	// writing it gives the bytes of the file in some mode, the reproducer names the file; otherwise
	// it gets a copy.
	for _, mode := range []string{"", modeAll, modeNotBatch} {
		var have bytes.Buffer
		if setMode(loaded, mode) == nil && pipeline.Save(&have, loaded, true) == nil && bytes.Equal(have.Bytes(), want.Bytes()) {
			return mode, true
		}
	}
	return "", false
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
