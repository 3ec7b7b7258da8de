package models

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
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
				tellDoubts(c, m, *model)
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
	f, err := lowered(ctx, m, options, inputs)
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

// stepFlags say how the sizes of inputs change from call to call.
type stepFlags struct {
	steps  int
	states []session.State
	grow   []string
	sizes  string
}

func declareSteps(fs *flag.FlagSet) *stepFlags {
	f := new(stepFlags)
	fs.IntVar(&f.steps, "steps", 0, "Run so many times, each with states of the run before, and report the time of each")
	fs.Func("state", "OUT=IN: with --steps, an output that is an input of the next run; may be given more than once", func(text string) error {
		out, in, ok := strings.Cut(text, "=")
		if !ok {
			return tool.Usagef("%s is not OUT=IN", fileio.Excerpt(text, 0))
		}
		f.states = append(f.states, session.State{Output: out, Input: in})
		return nil
	})
	fs.Func("grow", "NAME: with --steps, an input whose last axis gets one element more in each run, the last one again; may be given more than once", func(name string) error {
		f.grow = append(f.grow, name)
		return nil
	})
	fs.StringVar(&f.sizes, "sizes", "", "A file with the sizes of a call on each line, NAME=1x17 NAME=1x17; integers are 1 then, and floats 0.1")
	return f
}

// asked reports whether calls of changing sizes are to be measured.
func (f *stepFlags) asked() bool { return f.steps > 0 || f.sizes != "" }

// A stepsReport is the output of bench onnx --json with --steps or --sizes.
type stepsReport struct {
	StepSeconds []float64 `json:"step_seconds"`
	Functions   int       `json:"functions"` // how many were made
	// Sizes says why no function for any sizes could be made.
	Sizes string `json:"sizes,omitempty"`
}

// run measures the calls.
func (f *stepFlags) run(ctx context.Context, m *onnx.Model, options session.Options, inputs func() (map[string]*array.Array, error)) (*stepsReport, error) {
	options.AnySizes = true
	s := session.New(m, options)
	var err error
	r := &stepsReport{}
	if f.sizes != "" {
		err = f.eachSize(m, func(in map[string]*array.Array) error {
			return r.measure(func() error { _, _, err := s.Run(ctx, in); return err })
		})
	} else {
		err = f.eachStep(ctx, s, r, inputs)
	}
	made, why := s.Functions()
	if r.Functions = made; why != nil {
		r.Sizes = why.Error()
	}
	return r, err
}

func (r *stepsReport) measure(run func() error) error {
	start := time.Now()
	err := run()
	r.StepSeconds = append(r.StepSeconds, time.Since(start).Seconds())
	return err
}

// eachStep runs with the states of the run before.
func (f *stepFlags) eachStep(ctx context.Context, s *session.Session, r *stepsReport, inputs func() (map[string]*array.Array, error)) error {
	in, err := inputs()
	if err != nil {
		return err
	}
	for _, name := range f.grow {
		if in[name] == nil || in[name].NDim() == 0 || in[name].Len() == 0 {
			return tool.Usagef("--grow: there is no input %s with elements", fileio.Excerpt(name, 0))
		}
	}
	run := func(in map[string]*array.Array) error { _, _, err := s.Run(ctx, in); return err }
	if len(f.states) > 0 {
		stateful, err := s.NewStateful(f.states...)
		if err != nil {
			return err
		}
		run = func(in map[string]*array.Array) error { _, err := stateful.Run(ctx, in); return err }
	}
	in = maps.Clone(in)
	for range f.steps {
		if err := r.measure(func() error { return run(in) }); err != nil {
			return err
		}
		for _, s := range f.states {
			delete(in, s.Input)
		}
		for _, name := range f.grow {
			in[name] = grown(in[name])
		}
	}
	return nil
}

// grown returns an array with the last element of each row twice.
func grown(a *array.Array) *array.Array {
	shape := append([]int(nil), a.Shape()...)
	k := len(shape) - 1
	n := shape[k]
	shape[k]++
	b := array.New(a.DType(), shape...)
	for i := range b.Len() {
		row, column := i/(n+1), min(i%(n+1), n-1)
		if a.DType().IsFloat() {
			b.SetFloat(i, a.Float(row*n+column))
		} else {
			b.SetInt(i, a.Int(row*n+column))
		}
	}
	return b
}

// eachSize runs with inputs of the sizes that the lines of a file say.
func (f *stepFlags) eachSize(m *onnx.Model, run func(in map[string]*array.Array) error) error {
	file, err := os.Open(f.sizes)
	if err != nil {
		return err
	}
	defer file.Close()
	types := make(map[string]ir.Type)
	for _, in := range m.Graph.Inputs {
		types[in.Name] = ir.FromProto(in.Type)
	}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		in := make(map[string]*array.Array)
		for _, part := range strings.Fields(lines.Text()) {
			name, text, _ := strings.Cut(part, "=")
			t, known := types[name]
			if !known || !t.IsTensor() {
				return fmt.Errorf("%s:%d: the model has no input %s; it has %s", f.sizes, n, fileio.Excerpt(name, 0), inputNames(m))
			}
			shape, err := parseShape(text)
			if err == nil {
				in[name], err = filled(t.Elem(), shape)
			}
			if err != nil {
				return fmt.Errorf("%s:%d: %s: %w", f.sizes, n, fileio.Excerpt(part, 0), err)
			}
		}
		if len(in) == 0 {
			continue
		}
		if err := run(in); err != nil {
			return fmt.Errorf("%s:%d: %w", f.sizes, n, err)
		}
	}
	return lines.Err()
}

// filled returns an array of ones, or of 0.1 if its elements are floats.
func filled(t onnx.DataType, shape []int) (*array.Array, error) {
	a, err := lower.NewArray(t)
	if err != nil {
		return nil, err
	}
	v := 1.0
	if a.DType().IsFloat() {
		v = 0.1
	}
	n := 1
	for _, k := range shape {
		if k > maxFilled || n*max(k, 1) > maxFilled {
			return nil, fmt.Errorf("%w: more than %d elements", tensor.ErrShape, maxFilled)
		}
		n *= max(k, 1)
	}
	return array.Full(a.DType(), v, shape...), nil
}

// maxFilled bounds the elements of an input that is made of sizes alone.
const maxFilled = 1 << 30

// print prints the report for people.
func (r *stepsReport) print(c *tool.Console) error {
	var sum float64
	for i, s := range r.StepSeconds {
		c.Print("%-16s %14s\n", fmt.Sprintf("call %d", i+1), duration(s))
		sum += s
	}
	c.Print("%d functions for %d calls, %s in all\n", r.Functions, len(r.StepSeconds), duration(sum))
	if r.Sizes != "" {
		c.Print("none is for any sizes: %s\n", r.Sizes)
	}
	return nil
}

// benchSteps measures calls of changing sizes and prints what they took.
func (o Options) benchSteps(ctx context.Context, c *tool.Console, steps *stepFlags, model string, m *onnx.Model, options session.Options, a *argumentFlags, asJSON bool) error {
	r, err := steps.run(ctx, m, options, func() (map[string]*array.Array, error) {
		inputs, _, err := o.arguments(a, m)
		return inputs, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(model), err)
	}
	if asJSON {
		return tool.WriteJSON(c.Stdout, r)
	}
	return r.print(c)
}
