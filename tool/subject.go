package tool

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor"
)

// A subject is what a verb works on: a network and a request, an expression, or a file of
// graphs.
type subject struct {
	file    graphfile.File // with graphs that no pass has changed
	dialect graphfile.Dialect
	opt     *optdb.Optimizer
	// failed adds a reproducer to an error of the optimizer, about the graph of that number.
	failed func(ctx context.Context, err error, segment int) error
}

// subjectFlags are the flags of compile and of expr, which say what the subject is.
type subjectFlags struct {
	cfg  *Config
	net  *networkFlags
	expr *exprFlags
}

func declareSubject(cfg *Config, fs *flag.FlagSet) *subjectFlags {
	f := &subjectFlags{cfg: cfg, net: declareNetwork(cfg, fs)}
	f.net.watch = declareWatch(fs)
	f.expr = &exprFlags{cfg: cfg, db: f.net.passes.db, watch: f.net.watch}
	f.expr.declareInput(fs)
	return f
}

// load returns the subject that an argument names: a network, if there is such a file, and
// otherwise an expression.
func (f *subjectFlags) load(ctx context.Context, c *Console, arg string) (*subject, error) {
	// A directory may be named like a variable.
	if info, err := os.Stat(arg); arg == "-" || err == nil && !info.IsDir() {
		return f.network(ctx, c, arg)
	}
	if err := missingFile(arg); err != nil {
		return nil, err
	}
	return f.expression(c, arg)
}

// Why a flag has no meaning.
const (
	forNetwork    = "for a network"
	forExpression = "for an expression"
)

// fileName is what files are called that verbs take in place of an expression. No expression looks
// like that.
var fileName = regexp.MustCompile(`^[^\s()]+\.(config|graph|html|json|mdl|raw|txt)$`)

// missingFile returns an error if an argument is the name of a file that there is not, rather than
// an expression.
func missingFile(arg string) error {
	if !fileName.MatchString(arg) {
		return nil
	}
	_, err := os.Stat(arg)
	return err
}

func (f *subjectFlags) network(ctx context.Context, c *Console, arg string) (*subject, error) {
	if err := c.inVain(forNetwork, "vars", "grad"); err != nil {
		return nil, err
	}
	_, opt, err := f.net.passes.build()
	if err != nil {
		return nil, err
	}
	nn, req, err := f.net.load(c, arg)
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
	s := &subject{dialect: f.cfg.networkDialect(nn), opt: opt}
	s.setGraphs(chain.Graphs())
	s.file.Set(fieldNetwork, arg)
	if f.net.seed != 0 {
		s.file.Set(fieldSeed, strconv.FormatUint(f.net.seed, 10))
	}
	s.file.Set(fieldMode, prepare(nn, req))
	// The optimizer changes the graphs, so a reproducer is made from the computation, which
	// lowering gives again.
	s.failed = func(ctx context.Context, err error, _ int) error {
		return networkFailed(ctx, c, &pipeline.FailedError{Err: err, Net: nn, Request: req, Compiled: comp, Query: opt.Query()}, arg, f.net.watch.most, &f.net.passes.added)
	}
	return s, nil
}

func (f *subjectFlags) expression(c *Console, text string) (*subject, error) {
	if err := c.inVain(forExpression, append([]string{"request", "srand", "quantize.error"}, chunkFlags...)...); err != nil {
		return nil, err
	}
	f.net.passes.vocab = f.cfg.vocabulary()
	query, opt, err := f.net.passes.build()
	if err != nil {
		return nil, err
	}
	f.expr.query, f.expr.added = query, f.net.passes.added
	scope, outputs, err := f.expr.parse(text)
	if err != nil {
		return nil, err
	}
	inputs := usedInputs(scope, outputs)
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		return nil, err
	}
	s := &subject{dialect: f.cfg.tensorDialect(), opt: opt}
	s.setGraphs([]*fgraph.FunctionGraph{g})
	s.failed = func(ctx context.Context, err error, _ int) error { return f.expr.failed(ctx, c, err, inputs, outputs) }
	return s, nil
}

func (s *subject) setGraphs(graphs []*fgraph.FunctionGraph) {
	s.file.Graph, s.file.More = graphs[0], graphs[1:]
}

// readText reads a graph file as text. "-" is standard input.
func readText(c *Console, name string) (text string, head *graphfile.File, err error) {
	var data []byte
	if name == "-" {
		data, err = fileio.ReadAll(c.Stdin, "standard input", fileio.MaxText)
	} else {
		data, err = fileio.ReadFile(name, fileio.MaxText)
	}
	if err != nil {
		return "", nil, err
	}
	if head, err = graphfile.ParseHead(name, string(data)); err != nil {
		return "", nil, fmt.Errorf("%s is no graph file: %w", name, err)
	}
	return string(data), head, nil
}
