package main

import (
	"context"
	"flag"
	"runtime"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// patience is how long bench runs each computation: at least seven times, and at least for a second.
var patience = pipeline.Patience{Runs: 7, Time: time.Second}

func benchVerb() verb {
	return verb{
		name:     "bench",
		args:     "nnet3|compile",
		synopsis: "measure how large and how fast the computation for a request is",
		detail: `
"bench nnet3 --model CONFIG_OR_MODEL --request FILE" compiles the request, optimizes the computation and runs it on random inputs,
as optimized and as compiled. Times are those of the quickest of at least seven runs. Compiling and optimizing are repeated
as well.

"bench compile --request FILE" measures compiling alone, for every member of the JSON object in FILE: each has a "config" (a network, beside
FILE), a "request", and Kaldi's times if there are any. The table has three groups of columns: as compiled without the
shortcut for sequences that are alike, with it, and with it and optimized by the query. Times are milliseconds, or multiples of what
PROGRAM of --unit prints, which is run before each request; its smallest answer counts.`,
		setup: func(fs *flag.FlagSet) action {
			net := declareNetwork(fs)
			model := fs.String("model", "", "Kaldi nnet3 model, or config lines (which are given random parameters)")
			asJSON := fs.Bool("json", false, "Print a JSON object")
			unit := fs.String("unit", "", "Program that prints how many seconds the unit of bench compile takes, such as a product of matrices")
			countOnly := fs.Bool("count-only", false, "Compile and optimize once, and don't run")
			return func(ctx context.Context, c *console, args []string) error {
				if err := wantArgs(args, 1, 1, `what to measure ("nnet3" or "compile")`); err != nil {
					return err
				}
				switch {
				case args[0] == "compile" && net.request == "":
					return usagef("--request expected")
				case args[0] == "compile":
					return benchCompile(ctx, c, net, net.request, *unit, *asJSON)
				case args[0] != "nnet3":
					return usagef("there is no benchmark %q, only nnet3 and compile", args[0])
				case *model == "":
					return usagef("--model expected")
				}
				r, err := measure(ctx, c, net, *model, *countOnly)
				if err != nil {
					return err
				}
				if *asJSON {
					return writeJSON(c.stdout, r)
				}
				r.print(c)
				return nil
			}
		},
	}
}

// A benchReport is what bench --json prints.
type benchReport struct {
	Model string `json:"model"`
	Query string `json:"query"`
	counts
	Unoptimized           counts   `json:"unoptimized"`
	CompileSeconds        float64  `json:"compile_seconds"`
	OptimizeSeconds       float64  `json:"optimize_seconds"`
	RunSeconds            *float64 `json:"run_seconds,omitempty"`
	RunSecondsUnoptimized *float64 `json:"run_seconds_unoptimized,omitempty"`
	Runs                  int      `json:"runs,omitempty"`
	Threads               int      `json:"threads"`
}

// measure makes the report on a request.
func measure(ctx context.Context, c *console, net *networkFlags, model string, countOnly bool) (*benchReport, error) {
	query, p, err := net.build(ctx, c, model, pipeline.Options{})
	if err != nil {
		return nil, err
	}
	r := &benchReport{
		Model: model, Query: query, counts: countsOf(p.Optimized), Unoptimized: countsOf(p.Compiled),
		CompileSeconds: p.CompileTime.Seconds(), OptimizeSeconds: p.OptimizeTime.Seconds(), Threads: runtime.GOMAXPROCS(0),
	}
	if countOnly {
		return r, nil
	}
	if err := r.timeBuild(ctx, net, p); err != nil {
		return nil, err
	}
	return r, r.timeRuns(ctx, net, p)
}

// timeBuild compiles and optimizes again, for the best times.
func (r *benchReport) timeBuild(ctx context.Context, net *networkFlags, p *pipeline.Plan) error {
	_, opt, err := net.passes.build()
	if err != nil {
		return err
	}
	start := time.Now()
	for n := 1; n < patience.Runs && time.Since(start) < patience.Time; n++ {
		again, err := pipeline.Build(ctx, p.Net, p.Request, pipeline.Options{Optimizer: opt})
		if err != nil {
			return err
		}
		r.CompileSeconds = min(r.CompileSeconds, again.CompileTime.Seconds())
		r.OptimizeSeconds = min(r.OptimizeSeconds, again.OptimizeTime.Seconds())
	}
	return nil
}

// timeRuns runs the computation as optimized and as compiled.
func (r *benchReport) timeRuns(ctx context.Context, net *networkFlags, p *pipeline.Plan) error {
	in, err := pipeline.RandomValues(p.Net, p.Request, net.seed)
	if err != nil {
		return err
	}
	run := func(c *computation.Computation) (*float64, error) {
		pipeline.Prepare(p.Net, c)
		program, err := exec.NewProgram(c, p.Net)
		if err != nil {
			return nil, err
		}
		best, runs, err := pipeline.Measure(ctx, program, p.Net, in, patience, nil)
		seconds := best.Seconds()
		r.Runs = runs
		return &seconds, err
	}
	if r.RunSeconds, err = run(p.Optimized); err != nil {
		return err
	}
	r.RunSecondsUnoptimized = r.RunSeconds
	if p.Compiled != p.Optimized {
		r.RunSecondsUnoptimized, err = run(p.Compiled)
	}
	return err
}

// print prints the report for people.
func (r *benchReport) print(c *console) {
	seconds := func(s *float64) string {
		if s == nil {
			return "-"
		}
		return duration(time.Duration(*s * 1e9))
	}
	c.print("%-12s %14s %14s\n", r.Model, "as compiled", r.Query)
	c.print("%-12s %14s %14s\n", "commands", thousands(r.Unoptimized.Commands), thousands(r.Commands))
	c.print("%-12s %14s %14s\n", "matrices", thousands(r.Unoptimized.Matrices), thousands(r.Matrices))
	c.print("%-12s %14s %14s\n", "peak bytes", thousands(r.Unoptimized.MaxMemoryBytes), thousands(r.MaxMemoryBytes))
	c.print("%-12s %14s %14s\n", "run", seconds(r.RunSecondsUnoptimized), seconds(r.RunSeconds))
	c.print("compiled in %s, optimized in %s, %d threads\n", seconds(&r.CompileSeconds), seconds(&r.OptimizeSeconds), r.Threads)
}
