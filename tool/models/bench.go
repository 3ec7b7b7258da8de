package models

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
)

// A run is repeated at least so often, and for so long, but no further run begins after longest.
const (
	leastRuns = 15
	leastTime = time.Second
	longest   = 20 * time.Second
)

func (o Options) benchVerb() tool.Verb {
	return tool.Verb{
		Name:     "bench",
		Before:   "version",
		Args:     "onnx",
		Synopsis: "the speed of an ONNX model",
		Of:       aModel,
		Detail: `
"bench onnx --model MODEL.onnx" lowers an ONNX model for inputs like those of "$0 eval", optimizes it and runs it. It reports the best
and the median of at least fifteen runs, the memory that a run needs for what it computes, and how long the first result took: to select passes, to read
the model, to lower and optimize it, and to run it for the first time, when weights are prepared. With --profile it says for each op what it takes, in runs of
their own, and with several threads how many worked on average. With --steps or --sizes it reports the time of each of many calls whose sizes differ,
and how many functions were made for them.`,
		Examples: `$0 bench onnx --model model.onnx --shape x=2x3`,
		Claims:   func(arg string) bool { return arg == "onnx" },
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			passes := declarePasses(cfg, fs)
			arguments := declareArguments(fs)
			model := fs.String("model", "", "or an ONNX model")
			asJSON := fs.Bool("json", false, "Print a JSON object")
			threads := tool.DeclareThreads(fs)
			byOp := fs.Bool("profile", false, "Report times by op")
			steps := declareSteps(fs)
			return tool.Taking(1, 1, `"onnx"`, func(ctx context.Context, c *tool.Console, args []string) error {
				if *model == "" {
					return tool.Usagef("--model expected")
				}
				start := time.Now()
				query, opt, err := passes.Build()
				if err != nil {
					return err
				}
				selected := time.Since(start)
				start = time.Now()
				m, _, err := arguments.read(*model)
				if err != nil {
					return err
				}
				options := o.lowering(filepath.Dir(*model), opt)
				options.Threads = threads.Of(1)
				if steps.asked() {
					return o.benchSteps(ctx, c, steps, *model, m, options, arguments, *asJSON)
				}
				r := &benchReport{Model: *model, Query: query, Threads: threads.Of(1), SelectSeconds: selected.Seconds(), ReadSeconds: time.Since(start).Seconds()}
				inputs, _, err := o.arguments(arguments, m)
				if err != nil {
					return err
				}
				start = time.Now()
				f, err := lowered(ctx, m, options, inputs)
				if err != nil {
					return err
				}
				r.LowerSeconds, r.Applies = time.Since(start).Seconds(), f.Graph().NumApplies()
				if err := r.measure(ctx, f, inputs); err != nil {
					return err
				}
				if *byOp {
					p, err := profiled(ctx, m, options, inputs, leastRuns)
					if err != nil {
						return err
					}
					r.ByOp = p.Execution
				}
				if *asJSON {
					return tool.WriteJSON(c.Stdout, r)
				}
				return r.print(c)
			})
		},
	}
}

// A benchReport is the output of bench onnx --json.
type benchReport struct {
	Model   string `json:"model"`
	Query   string `json:"query"`
	Applies int    `json:"applies"` // of the optimized graph of tensors
	// RunSeconds is the time of the best run.
	RunSeconds       float64 `json:"run_seconds"`
	RunSecondsMedian float64 `json:"run_seconds_median"`
	Runs             int     `json:"runs"`
	// FirstSeconds is the time of the first result: of the four parts.
	FirstSeconds    float64 `json:"first_seconds"`
	SelectSeconds   float64 `json:"select_seconds"` // passes
	ReadSeconds     float64 `json:"read_seconds"`
	LowerSeconds    float64 `json:"lower_seconds"` // to make and optimize the graph
	FirstRunSeconds float64 `json:"first_run_seconds"`
	// Memory is planned before the first run, and PeakBytes counted in all of them, with what ops need
	// until they end.
	Memory    exec.Memory `json:"memory"`
	PeakBytes int64       `json:"peak_bytes"`
	Threads   int         `json:"threads"` // that a computation uses
	// ByOp is of runs of its own.
	ByOp []profile.OpCost `json:"by_op,omitempty"`
}

// profiled runs a model so many times, and returns what that takes.
func profiled(ctx context.Context, m *onnx.Model, options session.Options, inputs map[string]*array.Array, runs int) (*profile.Function, error) {
	options.Profile = true
	f, err := session.Model(ctx, m, options, inputs)
	if err != nil {
		return nil, err
	}
	return f.Profile(ctx, inputs, runs)
}

// measure runs a function and keeps the times.
func (r *benchReport) measure(ctx context.Context, f *session.Function, inputs map[string]*array.Array) error {
	runner := f.NewRunner()
	var times []float64
	begin := time.Now()
	for {
		if took := time.Since(begin); len(times) >= leastRuns && took >= leastTime || len(times) > 0 && took >= longest {
			break
		}
		start := time.Now()
		if _, err := runner.Run(ctx, inputs); err != nil {
			return err
		}
		times = append(times, time.Since(start).Seconds())
	}
	r.FirstRunSeconds = times[0]
	r.FirstSeconds = r.SelectSeconds + r.ReadSeconds + r.LowerSeconds + r.FirstRunSeconds
	r.Memory, r.PeakBytes = f.Memory(), runner.Peak()
	slices.Sort(times)
	r.RunSeconds, r.RunSecondsMedian, r.Runs = times[0], times[len(times)/2], len(times)
	return nil
}

// print prints the report for people.
func (r *benchReport) print(c *tool.Console) error {
	c.Print("%-16s %14s\n", r.Model, r.Query)
	c.Print("%-16s %14d\n", "applies", r.Applies)
	c.Print("%-16s %14s\n", "run, quickest", duration(r.RunSeconds))
	c.Print("%-16s %14s\n", "run, median", duration(r.RunSecondsMedian))
	c.Print("%-16s %14d\n", "peak bytes", r.PeakBytes)
	m := r.Memory
	c.Print("planned before the first run: %d bytes for %d values and results, of which %d are live at once; %d depend on the run\n", m.Peak(), m.Values, m.Live+m.Results, m.Unknown)
	c.Print("first result after %s: passes selected in %s, read in %s, lowered and optimized in %s, run in %s; %d threads\n",
		duration(r.FirstSeconds), duration(r.SelectSeconds), duration(r.ReadSeconds), duration(r.LowerSeconds), duration(r.FirstRunSeconds), r.Threads)
	if r.ByOp == nil {
		return nil
	}
	c.Print("\n")
	return (&profile.Function{Execution: r.ByOp}).WriteExecution(c.Stdout)
}
