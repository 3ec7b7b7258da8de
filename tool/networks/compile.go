package networks

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"slices"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func (o *Options) compileVerb() tool.Verb {
	return tool.Verb{
		Name:     "compile",
		Before:   "profile",
		Args:     "MODEL",
		Synopsis: "print the computation for a request, before and after the optimizer",
		Detail: `
MODEL is a Kaldi nnet3 model (raw or .mdl, binary or text) or a file of config lines, "-" standard input. The commands that
compute the request go to standard output, their number and the peak of memory to standard error. Peak bytes are counted as in
Kaldi.

Products of integers (+int8, +int16) are also listed there, with the root mean square of the error that each adds, relative to its
result, if the elements of rows are independent normal numbers.

With --diff the two computations are printed side by side, aligned by the components that they run. A mark between them says which
commands are gone, new, moved, or merged into a component that the optimizer made.`,
		Examples: `
$0 compile --diff net.config
$0 compile --query='+fast_run -inplace' --frames-per-chunk=30 final.mdl
$0 compile --why-not=local_overwrite net.config`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			net := o.declareNetwork(cfg, fs)
			net.watch = tool.DeclareWatch(fs)
			before := fs.Bool("before", false, "Print the computation as compiled, not the optimized one")
			diff := fs.Bool("diff", false, "Print both side by side, aligned")
			width := fs.Int("width", 0, "Characters in a line of --diff; 0 takes the variable COLUMNS, or else 160")
			both := fs.Bool("both", false, "Print both, first as compiled")
			matrices := fs.Bool("debug-info", false, "Show the indexes of the rows of each matrix")
			asJSON := fs.Bool("json", false, "Print counts of both as a JSON object instead of commands")
			return tool.Taking(1, 1, "MODEL", func(ctx context.Context, c *tool.Console, args []string) error {
				if err := cmp.Or(
					c.Apart("json", "diff", "before"), c.Apart("json", "diff", "both"), c.Apart("before", "both"),
					c.InVainIf(!*diff, "without --diff", "width"),
					c.InVainIf(*asJSON, "beside --json, which counts commands", "debug-info"),
				); err != nil {
					return err
				}
				query, p, err := net.build(ctx, c, args[0], pipeline.Options{DebugInfo: *matrices})
				if err != nil {
					return err
				}
				if *asJSON {
					return tool.WriteJSON(c.Stdout, newCompileReport(query, p))
				}
				if *diff {
					n := *width
					if n <= 0 {
						n = lineWidth()
					}
					out := bufio.NewWriter(c.Safe)
					if err := printDiff(out, p, n, c.Colors); err != nil {
						return err
					}
					if err := out.Flush(); err != nil {
						return err
					}
				}
				if *before || *both {
					if err := computation.Print(c.Stdout, p.Compiled, p.Info(p.Compiled)); err != nil {
						return err
					}
				}
				if *both {
					c.Print("\n")
				}
				if !*diff && (!*before || *both) {
					if err := computation.Print(c.Stdout, p.Optimized, p.Info(p.Optimized)); err != nil {
						return err
					}
				}
				if err := c.Stdout.Flush(); err != nil {
					return err
				}
				tellCounts(c, p)
				tellPrecisions(c, p)
				return nil
			})
		},
	}
}

// tellPrecisions lists the quantized products, with the errors that are to be expected of them.
func tellPrecisions(c *tool.Console, p *pipeline.Plan) {
	info := p.Info(p.Optimized)
	for i, of := range p.Optimized.Derived {
		q, ok := of.(*component.Product)
		if !ok || q.Precision() == kernel.Float32 {
			continue
		}
		derived := info.Components[len(info.Components)-len(p.Optimized.Derived)+i]
		base := slices.Index(p.Net.Components, q.Base())
		name := q.Base().Type()
		if base >= 0 {
			name = info.Components[base].Name
		}
		c.Say("%s: %s in %s, expected error %.2g %%", derived.Name, name, q.Precision(), 100*q.ExpectedError())
	}
}

// build reads a model, compiles the request and optimizes the computation. It also
// returns the query.
func (f *networkFlags) build(ctx context.Context, c *tool.Console, model string, opts pipeline.Options) (string, *pipeline.Plan, error) {
	query, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return query, nil, err
	}
	nn, req, err := f.load(c, model)
	if err != nil {
		return query, nil, err
	}
	opts.Optimizer = opt
	watched, done := f.watch.Start(ctx, c, opt)
	if f.observe != nil {
		watched = f.observe(watched)
	}
	p, err := pipeline.Build(watched, nn, req, opts)
	if err = f.failed(ctx, c, err, model, f.watch.Budget(), f.passes.Added()); err == nil {
		return query, p, done()
	}
	_ = done() // what failed matters more than a name that there is not
	return query, p, err
}

// A compileReport is the output of compile --json.
type compileReport struct {
	Query           string             `json:"query"`
	Compiled        computation.Counts `json:"compiled"`
	Optimized       computation.Counts `json:"optimized"`
	CompileSeconds  float64            `json:"compile_seconds"`
	OptimizeSeconds float64            `json:"optimize_seconds"`
}

func newCompileReport(query string, p *pipeline.Plan) compileReport {
	return compileReport{
		Query:           query,
		Compiled:        p.Compiled.Counts(),
		Optimized:       p.Optimized.Counts(),
		CompileSeconds:  p.CompileTime.Seconds(),
		OptimizeSeconds: p.OptimizeTime.Seconds(),
	}
}

// tellCounts reports the size of the computation before and after.
func tellCounts(c *tool.Console, p *pipeline.Plan) {
	a, b := p.Compiled.Counts(), p.Optimized.Counts()
	c.Say("as compiled: %s commands, %s matrices, peak %s bytes (%s)", display.Thousands(a.Commands), display.Thousands(a.Matrices), display.Thousands(a.MaxMemoryBytes), display.Duration(p.CompileTime))
	c.Say("optimized:   %s commands, %s matrices, peak %s bytes (%s)", display.Thousands(b.Commands), display.Thousands(b.Matrices), display.Thousands(b.MaxMemoryBytes), display.Duration(p.OptimizeTime))
}
