package networks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/repro"
)

// Fields of files whose graphs belong to a network.
const (
	fieldNetwork = "network"   // a file with the network
	fieldMode    = "test-mode" // what is in test mode, unlike in that file
	fieldSeed    = "srand"     // of random parameters, for a network from config lines
)

// aNetwork is what a network is called in errors.
const aNetwork = "a network"

// isFile reports whether an argument is a file, which a directory that is named like a variable is
// not, or standard input.
func isFile(arg string) bool {
	info, err := os.Stat(arg)
	return arg == "-" || err == nil && !info.IsDir()
}

// Options say what networks a program has.
type Options struct {
	// Components makes the components of networks that are read. The default has Kaldi's types,
	// see component.Kaldi.
	Components *component.Registry
	// Sections read the features that graph files hold in sections of these names, in addition to
	// those of this module; see graphfile.WithSections.
	Sections map[string]graphfile.SectionReader
}

// Dialect returns the dialect of graphs of networks. Its subjects are files of models and of config
// lines, and it brings the verbs that only networks have.
func Dialect(options Options) *tool.Dialect {
	o := &options
	return &tool.Dialect{
		Name:       "nnet3",
		Fields:     []string{fieldNetwork, fieldMode, fieldSeed},
		Files:      []string{fieldNetwork},
		Vocabulary: o.vocabulary,
		Domain:     o.domain,
		Subjects: func(flags *tool.SubjectFlags, fs *flag.FlagSet) *tool.Source {
			f := &networkFlags{Options: o, passes: flags.Passes, watch: flags.Watch}
			f.declareRequest(fs)
			return &tool.Source{What: aNetwork, Flags: append([]string{"request", "srand"}, chunkFlags...), Claims: isFile, Open: f.subject, Record: f.record, Profile: f.profile, Tune: f.tune}
		},
		Open: func(c *tool.Console, name string, head *graphfile.File) (repro.World, error) {
			nn, err := o.networkOf(c, name, head)
			if err != nil {
				return nil, err
			}
			return World(nn, o.dialect(nn)), nil
		},
		Switches:    declareSwitches,
		SwitchesDoc: "Kaldi's flags --optimization.… are accepted too, such as --optimization.max-deriv-time and --optimization.propagate-in-place=false,\nand ",
		Ranges:      ranges,
		Verbs: []tool.Verb{
			o.demoVerb(), o.runVerb(), o.compileVerb(), ablatingVerb(),
			o.initVerb(), o.infoVerb(), o.copyVerb(), o.exportVerb(), o.verifyVerb(), o.benchVerb(),
		},
		Failed: func(ctx context.Context, c *tool.Console, err error) error {
			return o.failed(ctx, c, err, "", -1, new(tool.AddedRules))
		},
	}
}

// vocabulary returns the meaning of the names in rules.
func (o *Options) vocabulary() pattern.Vocabulary {
	return nnet3pass.VocabularyOf(cmp.Or(o.Components, component.Kaldi()))
}

// dialect returns how graphs of a network are written.
func (o *Options) dialect(nn *nnet3.Nnet) graphfile.Dialect {
	return graphfile.WithSections(lower.Dialect{Network: nn}, o.Sections)
}

// networkOf reads the network that a graph file names, relative to its folder.
func (o *Options) networkOf(c *tool.Console, name string, head *graphfile.File) (*nnet3.Nnet, error) {
	network := head.Field(fieldNetwork)
	if !filepath.IsAbs(network) && network != "-" {
		network = filepath.Join(filepath.Dir(name), network)
	}
	seed := uint64(0)
	if text := head.Field(fieldSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: field %s: %q is not a number", name, fieldSeed, fileio.Excerpt(text, 0))
		}
	}
	nn, _, err := o.network(c, network, seed)
	if err != nil {
		return nil, fmt.Errorf("%s: the network: %w", name, err)
	}
	if err := setMode(nn, head.Field(fieldMode)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return nn, nil
}

// The modes of networks.
const (
	modeAll      = "all"
	modeNotBatch = "all but batch normalization"
)

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

// networkWorld is a world whose network has to be written beside the reproducer.
type networkWorld struct {
	repro.World
	nn *nnet3.Nnet
}

// Unwrap returns the world that knows how the graphs are run.
func (w networkWorld) Unwrap() repro.World { return w.World }

// Keep writes the network beside a reproducer if it has no file of its own.
func (w networkWorld) Keep(ctx context.Context, cas *repro.Case, name string) error {
	if tool.Note(cas, fieldNetwork) != "" {
		return nil
	}
	file := strings.TrimSuffix(name, filepath.Ext(name)) + ".raw"
	tool.SetNote(cas, fieldNetwork, filepath.Base(file))
	return fileio.Write(ctx, file, func(out io.Writer) error { return pipeline.Save(out, w.nn, true) })
}

// failed is tool.Reproducing for an error of package pipeline. It returns any other error as it
// is. model is the file that the network was read from, budget the most rewrites, or negative, and
// added what flags add to the database.
func (o *Options) failed(ctx context.Context, c *tool.Console, err error, model string, budget int, added *tool.AddedRules) error {
	var failed *pipeline.FailedError
	if !errors.As(err, &failed) || tool.Reproduced(err) || ctx.Err() != nil {
		return err
	}
	chain, fault := lower.LowerChain(failed.Compiled, failed.Net)
	if fault != nil {
		return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
	}
	db, fault := c.Config().Database()
	if fault == nil {
		_, fault = added.Join(db, o.vocabulary(), failed.Query)
	}
	if fault != nil {
		return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
	}
	base := repro.Case{
		World: networkWorld{World(failed.Net, lower.Dialect{Network: failed.Net}), failed.Net},
		Build: db.Build, Query: failed.Query,
	}
	added.Note(&base)
	if budget >= 0 {
		base.Budget = &budget
	}
	if mode, ok := o.sameNetwork(c, model, failed.Net); ok {
		tool.SetNote(&base, fieldNetwork, model)
		tool.SetNote(&base, fieldMode, mode)
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
		if f, fault := repro.Debug(rewrite.WithOptions(ctx, rewrite.Options{}), &one, repro.Draws{}); fault == nil && f.Kind != repro.None {
			chosen = one
			break
		}
	}
	return tool.Reproducing(ctx, c, err, &chosen)
}

// sameNetwork reports whether a file has a network, up to test mode, and that mode.
func (o *Options) sameNetwork(c *tool.Console, file string, nn *nnet3.Nnet) (mode string, ok bool) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	loaded, fromConfig, err := o.network(c, file, 0)
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

// subject compiles a request to a network.
func (f *networkFlags) subject(ctx context.Context, c *tool.Console, arg string) (*tool.Subject, error) {
	_, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return nil, err
	}
	nn, req, err := f.load(c, arg)
	if err != nil {
		return nil, err
	}
	comp, err := compile.CompileContext(ctx, nn, req, compile.Options{DebugInfo: passes.NeedsDebugInfo(opt)})
	if err != nil {
		return nil, err
	}
	chain, err := lower.LowerChain(comp, nn)
	if err != nil {
		return nil, err
	}
	s := &tool.Subject{Dialect: f.dialect(nn), Optimizer: opt, World: World(nn, f.dialect(nn))}
	s.SetGraphs(chain.Graphs())
	s.File.Set(fieldNetwork, arg)
	if f.seed != 0 {
		s.File.Set(fieldSeed, strconv.FormatUint(f.seed, 10))
	}
	s.File.Set(fieldMode, prepare(nn, req))
	// The optimizer changes the graphs, so a reproducer is made from the computation, which
	// lowering gives again.
	s.Failed = func(ctx context.Context, err error, _ int) error {
		return f.failed(ctx, c, &pipeline.FailedError{Err: err, Net: nn, Request: req, Compiled: comp, Query: opt.Query()}, arg, f.watch.Most, f.passes.Added())
	}
	return s, nil
}

// record optimizes a request to a network for a page.
func (f *networkFlags) record(ctx context.Context, c *tool.Console, model string, in *view.Input) (*view.Subject, error) {
	query, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return nil, err
	}
	in.Query, in.Rules = query, f.passes.Added().Text()
	r := view.NewRecorder()
	f.observe = r.Watch
	query, p, err := f.build(ctx, c, model, pipeline.Options{Record: true})
	if err != nil {
		return nil, err
	}
	s, err := networkSubject(r, opt, p, model)
	if err != nil {
		return nil, err
	}
	s.Recording.Query = query
	return s, nil
}

// networkSubject returns the subject of a plan that was recorded. The optimizer must be built from
// the query of the plan.
func networkSubject(r *view.Recorder, opt *optdb.Optimizer, p *pipeline.Plan, model string) (*view.Subject, error) {
	if p.Profile == nil {
		return nil, tool.ErrNotOptimized
	}
	s := &view.Subject{Optimizer: opt}
	s.Recording = r.Recording(opt, p.Profile, Code(p.Compiled, p.Optimized, p.Info(p.Optimized)))
	s.Recording.Title, s.Recording.Subject = model, model
	s.Run = func(ctx context.Context) error {
		_, err := passes.Optimize(ctx, p.Compiled, p.Net, opt, nil)
		return err
	}
	return s, s.Recording.AddProfile(newFunctionProfile(model, p))
}
