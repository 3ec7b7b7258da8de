package networks

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/brief"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// patience bounds how long bench runs a computation: at least seven times and for
// at least a second.
func patience() measure.Patience {
	if brief.Always.Load() {
		return measure.Patience{Runs: 2}
	}
	return measure.Patience{Runs: 7, Time: time.Second}
}

func (o *Options) benchVerb() tool.Verb {
	return tool.Verb{
		Name:     "bench",
		Before:   "version",
		Of:       "a network",
		Args:     "nnet3|compile|stream",
		Synopsis: "measure the size and the speed of the computation for a request, or live streams",
		Detail: `
"bench nnet3 --model CONFIG_OR_MODEL --request FILE" compiles and optimizes a request and runs it on random inputs, as compiled
and as optimized. It reports the best and the median of at least seven runs. For a request with a gradient, parameters change
between runs, and the time to prepare them for products is part of each run. Operations are those of matrix products, two for a
multiply-add. Times by type of component come from separate runs.

"bench nnet3 --request FILE" without a model does so for every member of the JSON object in FILE, and prints a table in Markdown.
A member has a "config" (a network, in the folder of FILE), a "request", and optionally Kaldi's times. A time is the median over
seven rounds of the best run in a round, in milliseconds and, with --unit, in multiples of the seconds that PROGRAM prints. PROGRAM
runs once a round.

"bench compile --request FILE" measures compile times for every member of such a FILE. The table has three groups of columns:
compiled without the shortcut for equal sequences, compiled with it, and compiled with it and optimized. Times are in milliseconds,
or in multiples of the smallest number that the PROGRAM of --unit prints.

"bench stream --model CONFIG_OR_MODEL" runs live streams of random frames through a batcher, by a real clock: --streams at a time, each with
--seconds of audio, at --rate times real time. It reports the processor time for a frame, how long after the frames the rows come, and the
memory of a stream. A frame arrives when it is due, also if its stream still waits for earlier rows. With --find it looks for the most
streams for which 99 of 100 rows come within the time of a chunk and 50 ms, and tries each number for --seconds.`,
		Examples: `
$0 bench nnet3 --query='+fast_run +int8' --model final.mdl
$0 bench stream --model final.mdl --streams=4 --seconds=1 --rate=0`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			net := o.declareNetwork(cfg, fs)
			stream := declareStream(fs)
			model := fs.String("model", "", "Kaldi nnet3 model, or config lines (with random parameters)")
			asJSON := fs.Bool("json", false, "Print a JSON object")
			unit := fs.String("unit", "", "Program that prints the seconds of one unit, such as a matrix product")
			countOnly := fs.Bool("count-only", false, "Compile and optimize once; don't run")
			threads := tool.DeclareThreads(fs)
			return func(ctx context.Context, c *tool.Console, args []string) error {
				if err := tool.WantArgs(args, 1, 1, `what to measure ("nnet3", "compile" or "stream")`); err != nil {
					return err
				}
				if err := benchFlags(c, args[0], *model); err != nil {
					return err
				}
				net.random = !*countOnly
				switch {
				case args[0] == "stream":
					return benchStream(ctx, c, net, stream, *model, threads.Of(stream.workers), *asJSON)
				case args[0] == "compile" && net.request == "":
					return tool.Usagef("--request expected")
				case args[0] == "compile":
					return benchCompile(ctx, c, net, net.request, *unit, *asJSON)
				case args[0] != "nnet3":
					return tool.Usagef("there is no benchmark %q of networks, only nnet3, compile and stream", fileio.Excerpt(args[0], 0))
				case *model == "" && net.request == "":
					return tool.Usagef("--model expected, or --request with networks in it")
				case *model == "":
					return benchNetworks(ctx, c, net, net.request, *unit, threads.Of(1), *asJSON)
				}
				r, err := benchmark(ctx, c, net, *model, threads.Of(1), *countOnly)
				if err != nil {
					return err
				}
				if *asJSON {
					return tool.WriteJSON(c.Stdout, r)
				}
				r.print(c)
				return nil
			}
		},
	}
}

// benchFlags returns an error for flags that have no meaning for a benchmark.
func benchFlags(c *tool.Console, what, model string) error {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	declareStream(fs)
	var ofStreams []string
	fs.VisitAll(func(f *flag.Flag) { ofStreams = append(ofStreams, f.Name) })
	table := append(ofStreams, append([]string{"count-only"}, chunkFlags...)...)
	switch {
	case what == "stream":
		return c.InVain("for streams", "unit", "count-only", "extra-left-context", "extra-right-context", "num-sequences", "need-model-derivative", "outputs")
	case what == "compile":
		return c.InVain("for compile, which measures the networks of --request", append(table, "model")...)
	case model == "":
		return c.InVain("without --model, for the networks of --request", table...)
	}
	return c.InVain("for one network", append(ofStreams, "unit")...)
}

// A benchReport is the output of bench nnet3 --json.
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
	Operations int64 `json:"operations,omitempty"` // floating-point operations of products, two for a multiply-add
	// RunSeconds is the time of the best run, GFlops its operations per nanosecond.
	RunSeconds       *float64 `json:"run_seconds,omitempty"`
	RunSecondsMedian *float64 `json:"run_seconds_median,omitempty"`
	GFlops           float64  `json:"gflops,omitempty"`
	// RenewSeconds is the part of a training run that prepares new parameters.
	RenewSeconds float64       `json:"renew_seconds,omitempty"`
	Runs         int           `json:"runs,omitempty"`
	ByType       []typeFigures `json:"by_type,omitempty"`
}

// typeFigures are the time and the operations of one type of component, or of other
// commands, in one run.
type typeFigures struct {
	Type       string  `json:"type"`
	Commands   int     `json:"commands"`
	Seconds    float64 `json:"seconds"`
	Share      float64 `json:"share"`
	Operations int64   `json:"operations,omitempty"`
	GFlops     float64 `json:"gflops,omitempty"`
	// Cores is how many cores worked on average, and WaitedSeconds how long the first of them waited
	// for the others.
	Cores         float64 `json:"cores,omitempty"`
	WaitedSeconds float64 `json:"waited_seconds,omitempty"`
}

// benchmark returns the report on a request.
func benchmark(ctx context.Context, c *tool.Console, net *networkFlags, model string, threads int, countOnly bool) (*benchReport, error) {
	query, p, err := net.build(ctx, c, model, pipeline.Options{})
	if err != nil {
		return nil, err
	}
	r := &benchReport{
		Model: model, Query: query, CompileSeconds: p.CompileTime.Seconds(), OptimizeSeconds: p.OptimizeTime.Seconds(),
		Threads: threads,
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
	if err := r.timeRuns(ctx, p.Net, p.Optimized, in, threads); err != nil {
		return nil, err
	}
	if p.Compiled == p.Optimized {
		r.Unoptimized = r.runFigures
	} else if err := r.Unoptimized.timeRuns(ctx, p.Net, p.Compiled, in, threads); err != nil {
		return nil, err
	}
	r.RunSecondsUnoptimized = r.Unoptimized.RunSeconds
	return r, nil
}

// timeBuild repeats compiling and optimizing and keeps the best times.
func (r *benchReport) timeBuild(ctx context.Context, net *networkFlags, p *pipeline.Plan) error {
	_, opt, err := net.passes.BuildFor(net.vocabulary())
	if err != nil {
		return err
	}
	start := time.Now()
	for n := 1; n < patience().Runs && time.Since(start) < patience().Time; n++ {
		again, err := pipeline.Build(ctx, p.Net, p.Request, pipeline.Options{Optimizer: opt})
		if err != nil {
			return err
		}
		r.CompileSeconds = min(r.CompileSeconds, again.CompileTime.Seconds())
		r.OptimizeSeconds = min(r.OptimizeSeconds, again.OptimizeTime.Seconds())
	}
	return nil
}

// timeRuns times a computation as a whole, and then its parts.
func (r *runFigures) timeRuns(ctx context.Context, nn *nnet3.Nnet, c *computation.Computation, in pipeline.Values, threads int) error {
	pipeline.Prepare(c, nn)
	program, err := exec.NewProgram(c, nn)
	if err != nil {
		return err
	}
	times, err := measure.Runs(ctx, program, nn, in, patience(), exec.ComputerOptions{Threads: threads})
	if err != nil {
		return err
	}
	best, median := times.Best.Seconds(), times.Median.Seconds()
	r.RunSeconds, r.RunSecondsMedian, r.RenewSeconds, r.Runs = &best, &median, times.Renew.Seconds(), times.Runs
	r.Operations = program.Operations()
	r.GFlops = gflops(r.Operations, best)
	// Reading the clock after every command takes time, so the parts are measured in runs of their
	// own.
	timing := new(exec.Timing)
	times, err = measure.Runs(ctx, program, nn, in, measure.Patience{Runs: patience().Runs}, exec.ComputerOptions{Threads: threads, Timing: timing})
	if err != nil {
		return err
	}
	for _, row := range timing.ByComponentType() {
		f := typeFigures{
			Type: row.Name, Commands: row.Commands, Seconds: row.Time.Seconds() / float64(times.Runs),
			Share: float64(row.Time) / float64(max(timing.Total(), 1)), Operations: row.Operations / int64(times.Runs),
		}
		f.GFlops = gflops(f.Operations, f.Seconds)
		if threads > 1 {
			f.Cores = float64(row.Time+row.Helped-row.Waited) / float64(max(row.Time, 1))
			f.WaitedSeconds = row.Waited.Seconds() / float64(times.Runs)
		}
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
func (r *benchReport) print(c *tool.Console) {
	seconds := func(s *float64) string {
		if s == nil {
			return "-"
		}
		return display.Duration(time.Duration(*s * 1e9))
	}
	row := func(label, before, after string) { c.Print("%-16s %14s %14s\n", label, before, after) }
	before, after := &r.Unoptimized, &r.runFigures
	row(r.Model, "as compiled", r.Query)
	row("commands", display.Thousands(before.Commands), display.Thousands(after.Commands))
	row("matrices", display.Thousands(before.Matrices), display.Thousands(after.Matrices))
	row("peak bytes", display.Thousands(before.MaxMemoryBytes), display.Thousands(after.MaxMemoryBytes))
	row("run, quickest", seconds(before.RunSeconds), seconds(after.RunSeconds))
	row("run, median", seconds(before.RunSecondsMedian), seconds(after.RunSecondsMedian))
	if after.RenewSeconds > 0 {
		row("  new parameters", seconds(&before.RenewSeconds), seconds(&after.RenewSeconds))
	}
	if after.RunSeconds != nil {
		row("operations", fmt.Sprintf("%.3f G", float64(before.Operations)/1e9), fmt.Sprintf("%.3f G", float64(after.Operations)/1e9))
		row("GFLOP/s", fmt.Sprintf("%.1f", before.GFlops), fmt.Sprintf("%.1f", after.GFlops))
	}
	c.Print("compiled in %s, optimized in %s, %d threads\n", seconds(&r.CompileSeconds), seconds(&r.OptimizeSeconds), r.Threads)
	if len(r.ByType) == 0 {
		return
	}
	cores := func(n, waited string) string {
		if r.Threads == 1 {
			return ""
		}
		return fmt.Sprintf(" %6s %9s", n, waited)
	}
	c.Print("\n%10s %6s %9s%s %9s  %s\n", "time", "%", "GFLOP/s", cores("cores", "waited"), "commands", "type, as optimized")
	for _, f := range r.ByType {
		rate := "-"
		if f.Operations > 0 {
			rate = fmt.Sprintf("%.1f", f.GFlops)
		}
		c.Print("%10s %6.1f %9s%s %9s  %s\n", display.Duration(time.Duration(f.Seconds*1e9)), 100*f.Share, rate,
			cores(fmt.Sprintf("%.2f", f.Cores), display.Duration(time.Duration(f.WaitedSeconds*1e9))), display.Thousands(f.Commands), f.Type)
	}
}
