package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
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
as optimized and as compiled: the quickest and the median of at least seven runs. Where the gradient is wanted, parameters
change between runs, and preparing them anew for products is part of each. Operations are those of products of matrices, a
multiply-add counts two; the time of each type of component is taken in runs of its own. Compiling and optimizing are repeated as well.

"bench nnet3 --request FILE" without a model does this for every member of the JSON object in FILE and prints a table in Markdown.
Each member has a "config" (a network, beside FILE), a "request", and Kaldi's times if there are any. Times are medians over
seven rounds of the quickest run of a round, in milliseconds and, with --unit, in multiples of what PROGRAM prints, which runs in each round.

"bench compile --request FILE" measures compiling alone, for every member of such a FILE. The table has three groups of columns: as compiled without the
shortcut for sequences that are alike, with it, and with it and optimized by the query. Times are milliseconds, or multiples of what
PROGRAM of --unit prints, which is run before each request; its smallest answer counts.`,
		setup: func(fs *flag.FlagSet) action {
			net := declareNetwork(fs)
			model := fs.String("model", "", "Kaldi nnet3 model, or config lines (which are given random parameters)")
			asJSON := fs.Bool("json", false, "Print a JSON object")
			unit := fs.String("unit", "", "Program that prints how many seconds the unit of a table takes, such as a product of matrices")
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
				case *model == "" && net.request == "":
					return usagef("--model expected, or --request with networks in it")
				case *model == "":
					return benchNetworks(ctx, c, net, net.request, *unit, *asJSON)
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

// A benchReport is what bench nnet3 --json prints.
type benchReport struct {
	Model string `json:"model"`
	Query string `json:"query"`
	runFigures
	Unoptimized           runFigures `json:"unoptimized"`
	CompileSeconds        float64    `json:"compile_seconds"`
	OptimizeSeconds       float64    `json:"optimize_seconds"`
	RunSecondsUnoptimized *float64   `json:"run_seconds_unoptimized,omitempty"`
	Threads               int        `json:"threads"`
}

// runFigures are the figures of one computation.
type runFigures struct {
	counts
	Operations int64 `json:"operations,omitempty"` // floating-point operations of products, a multiply-add counts two
	// RunSeconds is the time of the quickest run, GFlops the operations a nanosecond in it.
	RunSeconds       *float64 `json:"run_seconds,omitempty"`
	RunSecondsMedian *float64 `json:"run_seconds_median,omitempty"`
	GFlops           float64  `json:"gflops,omitempty"`
	// RenewSeconds is what preparing new parameters takes of a run that computes the gradient.
	RenewSeconds float64       `json:"renew_seconds,omitempty"`
	Runs         int           `json:"runs,omitempty"`
	ByType       []typeFigures `json:"by_type,omitempty"`
}

// typeFigures are the time and the operations of the components of a type, or of the commands of another type, in one run.
type typeFigures struct {
	Type       string  `json:"type"`
	Commands   int     `json:"commands"`
	Seconds    float64 `json:"seconds"`
	Share      float64 `json:"share"`
	Operations int64   `json:"operations,omitempty"`
	GFlops     float64 `json:"gflops,omitempty"`
}

// measure makes the report on a request.
func measure(ctx context.Context, c *console, net *networkFlags, model string, countOnly bool) (*benchReport, error) {
	query, p, err := net.build(ctx, c, model, pipeline.Options{})
	if err != nil {
		return nil, err
	}
	r := &benchReport{
		Model: model, Query: query, CompileSeconds: p.CompileTime.Seconds(), OptimizeSeconds: p.OptimizeTime.Seconds(),
		Threads: runtime.GOMAXPROCS(0),
	}
	r.counts, r.Unoptimized.counts = countsOf(p.Optimized), countsOf(p.Compiled)
	if countOnly {
		return r, nil
	}
	if err := r.timeBuild(ctx, net, p); err != nil {
		return nil, err
	}
	in, err := pipeline.RandomValues(p.Net, p.Request, net.seed)
	if err != nil {
		return nil, err
	}
	if err := r.timeRuns(ctx, p.Net, p.Optimized, in); err != nil {
		return nil, err
	}
	if p.Compiled == p.Optimized {
		r.Unoptimized = r.runFigures
	} else if err := r.Unoptimized.timeRuns(ctx, p.Net, p.Compiled, in); err != nil {
		return nil, err
	}
	r.RunSecondsUnoptimized = r.Unoptimized.RunSeconds
	return r, nil
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

// timeRuns runs a computation, first for the time of the whole and then for that of its parts.
func (r *runFigures) timeRuns(ctx context.Context, nn *nnet3.Nnet, c *computation.Computation, in pipeline.Values) error {
	pipeline.Prepare(nn, c)
	program, err := exec.NewProgram(c, nn)
	if err != nil {
		return err
	}
	times, err := pipeline.Measure(ctx, program, nn, in, patience, nil)
	if err != nil {
		return err
	}
	best, median := times.Best.Seconds(), times.Median.Seconds()
	r.RunSeconds, r.RunSecondsMedian, r.RenewSeconds, r.Runs = &best, &median, times.Renew.Seconds(), times.Runs
	r.Operations = program.Operations()
	r.GFlops = gflops(r.Operations, best)
	timing := program.NewTiming()
	times, err = pipeline.Measure(ctx, program, nn, in, pipeline.Patience{Runs: patience.Runs}, timing)
	if err != nil {
		return err
	}
	for _, row := range timing.ByComponentType() {
		f := typeFigures{
			Type: row.Name, Commands: row.Commands, Seconds: row.Time.Seconds() / float64(times.Runs),
			Share: float64(row.Time) / float64(max(timing.Total(), 1)), Operations: row.Operations / int64(times.Runs),
		}
		f.GFlops = gflops(f.Operations, f.Seconds)
		r.ByType = append(r.ByType, f)
	}
	return nil
}

func gflops(operations int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(operations) / seconds / 1e9
}

// print prints the report for people.
func (r *benchReport) print(c *console) {
	seconds := func(s *float64) string {
		if s == nil {
			return "-"
		}
		return duration(time.Duration(*s * 1e9))
	}
	row := func(label, before, after string) { c.print("%-16s %14s %14s\n", label, before, after) }
	before, after := &r.Unoptimized, &r.runFigures
	row(r.Model, "as compiled", r.Query)
	row("commands", thousands(before.Commands), thousands(after.Commands))
	row("matrices", thousands(before.Matrices), thousands(after.Matrices))
	row("peak bytes", thousands(before.MaxMemoryBytes), thousands(after.MaxMemoryBytes))
	row("run, quickest", seconds(before.RunSeconds), seconds(after.RunSeconds))
	row("run, median", seconds(before.RunSecondsMedian), seconds(after.RunSecondsMedian))
	if after.RenewSeconds > 0 {
		row("  new parameters", seconds(&before.RenewSeconds), seconds(&after.RenewSeconds))
	}
	if after.RunSeconds != nil {
		row("operations", fmt.Sprintf("%.3f G", float64(before.Operations)/1e9), fmt.Sprintf("%.3f G", float64(after.Operations)/1e9))
		row("GFLOP/s", fmt.Sprintf("%.1f", before.GFlops), fmt.Sprintf("%.1f", after.GFlops))
	}
	c.print("compiled in %s, optimized in %s, %d threads\n", seconds(&r.CompileSeconds), seconds(&r.OptimizeSeconds), r.Threads)
	if len(r.ByType) == 0 {
		return
	}
	c.print("\n%10s %6s %9s %9s  %s\n", "time", "%", "GFLOP/s", "commands", "type, as optimized")
	for _, f := range r.ByType {
		rate := "-"
		if f.Operations > 0 {
			rate = fmt.Sprintf("%.1f", f.GFlops)
		}
		c.print("%10s %6.1f %9s %9s  %s\n", duration(time.Duration(f.Seconds*1e9)), 100*f.Share, rate, thousands(f.Commands), f.Type)
	}
}
