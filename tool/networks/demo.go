package networks

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// demoFiles holds the configuration of the network, and a small network with Kaldi's
// answer.
//
//go:embed demo
var demoFiles embed.FS

const (
	demoConfig = "tdnnf.config"
	demoCase   = "tdnnf_infer"
	demoSeed   = 20
)

// demoChunk is a typical request of a decoder: 150 frames, every third one of output.
var demoChunk = pipeline.Chunk{Frames: 150, Subsampling: 3, Sequences: 1, Outputs: []string{"output"}}

func (o *Options) demoVerb() tool.Verb {
	return tool.Verb{
		Name:     "demo",
		Before:   "profile",
		Args:     "",
		Synopsis: "optimize and run a built-in speech network, and show what happens",
		Detail: `
Makes a TDNN-F network of the size that speech recipes use, with random parameters, compiles a decoding request, optimizes the
computation, and runs it both ways. Then runs a small network of the same kind for which Kaldi's answer is known. Needs no files.`,
		Examples: `
$0 demo
$0 demo --html profile.html --svg memory.svg`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			passes := tool.DeclareSelection(cfg, fs)
			full := fs.Bool("profile", false, "Print the whole profile, in Theano's layout")
			html := fs.String("html", "", "Write the page of \"$0 view\" to this file")
			svg := fs.String("svg", "", "Draw the memory in use to this file, as an SVG picture")
			return tool.Taking(0, 0, "the flags", func(ctx context.Context, c *tool.Console, args []string) error {
				query, opt, err := passes.BuildFor(o.vocabulary())
				if err != nil {
					return err
				}
				d := &demo{Console: c, query: query, opt: opt, full: *full, html: *html, svg: *svg}
				return d.run(ctx)
			})
		},
	}
}

// A demo is the state that the parts of the demonstration share.
type demo struct {
	*tool.Console
	query     string
	opt       *optdb.Optimizer
	full      bool
	html, svg string

	nn   *nnet3.Nnet
	req  *computation.Request
	plan *pipeline.Plan
	in   pipeline.Values
}

func (d *demo) run(ctx context.Context) error {
	start := time.Now()
	for _, part := range []func(context.Context) error{d.network, d.optimize, d.execute, d.kaldi} {
		if err := part(ctx); err != nil {
			return err
		}
		if err := d.Stdout.Flush(); err != nil {
			return err
		}
	}
	d.Print("\nAll of this took %s. ", display.Duration(time.Since(start)))
	switch {
	case d.html != "" || d.svg != "":
		d.Print("Written: %s\n", strings.TrimSpace(d.html+" "+d.svg))
	default:
		d.Print("The whole profile: %[1]s demo --profile; as a page: %[1]s demo --html profile.html\n", d.Config().Name)
	}
	return nil
}

// title begins a part.
func (d *demo) title(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.Print("\n%s\n%s\n", text, strings.Repeat("─", len([]rune(text))))
}

// line writes a label and a text.
func (d *demo) line(label, format string, args ...any) {
	d.Print("  %-12s %s\n", label, fmt.Sprintf(format, args...))
}

// network makes the network and describes it.
func (d *demo) network(ctx context.Context) error {
	folder, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return err
	}
	f, err := folder.Open(demoConfig)
	if err != nil {
		return err
	}
	defer f.Close()
	if d.nn, _, err = pipeline.LoadFrom(f, demoConfig, demoSeed); err != nil {
		return err
	}
	if d.req, err = pipeline.NewRequest(d.nn, demoChunk); err != nil {
		return err
	}
	if err := pipeline.Calibrate(ctx, d.nn, d.req, demoSeed); err != nil {
		return err
	}
	d.title("The network")
	layers := 0
	for _, name := range d.nn.ComponentNames {
		if strings.HasPrefix(name, "tdnnf") && strings.HasSuffix(name, ".linear") {
			layers++
		}
	}
	d.line("kind", "TDNN-F, as speech recipes train it: %d factored layers of %d units with bottlenecks of %d",
		layers, d.dim("tdnnf2.affine"), d.dim("tdnnf2.linear"))
	d.line("input", "%d coefficients a frame, and an i-vector of %d for the chunk", d.dim("input"), d.dim("ivector"))
	d.line("output", "%d classes", d.dim("output"))
	d.line("size", "%d components, %s parameters, drawn at random from a fixed seed", len(d.nn.Components), display.Thousands(d.nn.NumParameters()))
	first, last := timesOf(d.req.Inputs, "input")
	d.line("request", "%d frames of speech, every third frame of output; the network looks at frames %d to %d", demoChunk.Frames, first, last)
	return nil
}

func (d *demo) dim(node string) int { return d.nn.OutputDim(d.nn.NodeIndex(node)) }

// timesOf returns the first and the last time of an input.
func timesOf(specs []computation.IoSpecification, name string) (first, last int32) {
	i := slices.IndexFunc(specs, func(s computation.IoSpecification) bool { return s.Name == name })
	if i < 0 {
		return 0, 0
	}
	rows := specs[i].Indexes
	return rows[0].T, rows[len(rows)-1].T
}

// optimize compiles the request, optimizes the computation and shows the profile.
func (d *demo) optimize(ctx context.Context) error {
	for range 5 { // keep the least disturbed one
		p, err := pipeline.Build(ctx, d.nn, d.req, pipeline.Options{Optimizer: d.opt, Record: true})
		if err != nil {
			return err
		}
		if d.plan == nil || p.CompileTime+p.OptimizeTime < d.plan.CompileTime+d.plan.OptimizeTime {
			d.plan = p
		}
	}
	d.title("The optimizer (%s)", d.query)
	d.passes(d.plan.Profile)
	f := newFunctionProfile(d.Config().Name+" demo, "+d.query, d.plan)
	if d.full {
		d.Print("\n")
		if err := link(ctx, f, d.plan, 0, 1, 0); err != nil {
			return err
		}
		if err := f.WriteText(d.Stdout); err != nil {
			return err
		}
	}
	if d.html != "" {
		if err := d.page(ctx); err != nil {
			return err
		}
	}
	if d.svg == "" {
		return nil
	}
	return tool.WriteTo(ctx, d.Stdout, d.svg, func(w io.Writer) error { return writeChart(w, d.plan.Compiled, d.plan.Optimized, d.query) })
}

// page writes a page on which to watch the optimizer, with the times of three runs.
func (d *demo) page(ctx context.Context) error {
	r := view.NewRecorder()
	p, err := pipeline.Build(r.Watch(ctx), d.nn, d.req, pipeline.Options{Optimizer: d.opt, Record: true})
	if err != nil {
		return err
	}
	s, err := networkSubject(r, d.opt, p, d.Config().Name+" demo, "+d.query)
	if err != nil {
		return err
	}
	f := newFunctionProfile(s.Recording.Title, p)
	if err := errors.Join(link(ctx, f, p, 3, 1, demoSeed), s.AddMisses(ctx), s.Recording.AddProfile(f)); err != nil {
		return err
	}
	return tool.WriteTo(ctx, d.Stdout, d.html, func(w io.Writer) error { return view.WritePage(w, s.Recording) })
}

// passes prints the profile of the optimizer, a line per pass in the order in which they ran.
func (d *demo) passes(root *profile.Record) {
	if root == nil || len(root.Children) == 0 {
		d.Print("  no pass was selected\n")
		return
	}
	width := 0
	for _, r := range root.Children {
		width = max(width, len(r.Name))
	}
	row := func(name string, took time.Duration, before, after int, what string) {
		nodes := fmt.Sprintf("%d → %d", before, after)
		if before == after {
			nodes = fmt.Sprint(after)
		}
		d.Print("%s\n", strings.TrimRight(fmt.Sprintf("  %-*s %9s  %11s  %s", width, name, display.Duration(took), nodes, what), " "))
	}
	d.Print("  %-*s %9s  %11s  %s\n", width, "pass", "time", "nodes", "what it did")
	for _, r := range root.Children {
		row(r.Name, r.Time, r.NodesBefore, r.NodesAfter, whatPassDid(r))
	}
	row("in all", root.Time, root.NodesBefore, root.NodesAfter,
		fmt.Sprintf("and %s to turn commands into a graph and the graph into commands", display.Duration(d.plan.OptimizeTime-root.Time)))
}

// whatPassDid summarizes the rules of a pass that fired, and its counters.
func whatPassDid(r *profile.Record) string {
	var parts []string
	used, _ := r.RulesByCost()
	slices.SortFunc(used, func(a, b profile.RuleRecord) int {
		return cmp.Or(cmp.Compare(b.Applied, a.Applied), strings.Compare(a.Name, b.Name))
	})
	for _, u := range used {
		name := u.Name + " "
		if u.Name == r.Name {
			name = ""
		}
		parts = append(parts, fmt.Sprintf("%s%d×", name, u.Applied))
	}
	for _, c := range r.Counters {
		name, isAfter := strings.CutSuffix(c.Name, "_after")
		before, known := r.Counter(name + "_before")
		switch {
		case c.Value == 0 || strings.HasSuffix(c.Name, "_before") || isAfter && known && before == c.Value:
			continue
		case isAfter && known:
			parts = append(parts, fmt.Sprintf("%s %s → %s", name, display.Thousands(int64(before)), display.Thousands(int64(c.Value))))
		case isAfter:
			parts = append(parts, fmt.Sprintf("%s %s", name, display.Thousands(int64(c.Value))))
		case c.Unit == "":
			parts = append(parts, fmt.Sprintf("%s %s", strings.ReplaceAll(strings.TrimPrefix(c.Name, "nb_"), "_", " "), display.Thousands(int64(c.Value))))
		}
	}
	return strings.Join(parts, ", ")
}

// execute runs the computation as compiled and as optimized.
func (d *demo) execute(ctx context.Context) error {
	var err error
	if d.in, err = pipeline.RandomValues(d.nn, d.req, demoSeed); err != nil {
		return err
	}
	both := [2]*computation.Computation{d.plan.Compiled, d.plan.Optimized}
	var outputs [2]kernel.Matrix
	for i, c := range both {
		res, err := pipeline.Run(ctx, c, d.nn, d.req, d.in)
		if err != nil {
			return err
		}
		outputs[i] = res.Outputs[0].Matrix
	}
	times, err := d.race(ctx, both)
	if err != nil {
		return err
	}
	diff, err := pipeline.Compare(outputs[1], outputs[0])
	if err != nil {
		return err
	}
	d.title("What came of it")
	d.table(times)
	d.Print("\n")
	d.line("compile time", "%s, and %s for the optimizer", display.Duration(d.plan.CompileTime), display.Duration(d.plan.OptimizeTime))
	value, difference := largest(outputs[0], outputs[1])
	d.line("difference", "%.1e at most between the two outputs, whose elements go up to %.1f (%.1e of the norm)",
		difference, value, diff.Relative())
	return nil
}

// race times two computations in turns, so that a busy machine slows down both.
func (d *demo) race(ctx context.Context, both [2]*computation.Computation) (best [2]time.Duration, err error) {
	var programs [2]*exec.Program
	for i, c := range both {
		pipeline.Prepare(c, d.nn)
		if programs[i], err = exec.NewProgram(c, d.nn); err != nil {
			return best, err
		}
	}
	// In turns, and the best of all: another program that starts in the middle must not decide
	// which of the two is faster.
	for round := range 6 {
		for i, p := range programs {
			times, err := measure.Runs(ctx, p, d.nn, d.in, measure.Patience{Runs: 2, Time: 100 * time.Millisecond}, exec.ComputerOptions{})
			if err != nil {
				return best, err
			}
			if round == 0 || times.Best < best[i] {
				best[i] = times.Best
			}
		}
	}
	return best, nil
}

// table shows the computation before and after, with a bar for what is left.
func (d *demo) table(times [2]time.Duration) {
	a, b := d.plan.Compiled.Counts(), d.plan.Optimized.Counts()
	row := func(label, before, after string, share float64) {
		bar := strings.Repeat("█", min(24, max(1, int(math.Round(24*share)))))
		d.Print("  %-12s %12s %12s   %3.0f %%  %s\n", label, before, after, 100*share, bar)
	}
	d.Print("  %-12s %12s %12s   %s\n", "", "as compiled", "optimized", "what is left")
	row("commands", display.Thousands(a.Commands), display.Thousands(b.Commands), float64(b.Commands)/float64(a.Commands))
	row("matrices", display.Thousands(a.Matrices), display.Thousands(b.Matrices), float64(b.Matrices)/float64(a.Matrices))
	row("peak bytes", display.Thousands(a.MaxMemoryBytes), display.Thousands(b.MaxMemoryBytes), float64(b.MaxMemoryBytes)/float64(a.MaxMemoryBytes))
	row("run time", display.Duration(times[0]), display.Duration(times[1]), float64(times[1])/float64(times[0]))
}

// largest returns the largest absolute value of the elements of a, and of their differences from
// those of b, which has the same size.
func largest(a, b kernel.Matrix) (value, difference float64) {
	for i := range a.Rows {
		y := kernel.Row(b, i)
		for j, v := range kernel.Row(a, i) {
			value, difference = max(value, math.Abs(float64(v))), max(difference, math.Abs(float64(v)-float64(y[j])))
		}
	}
	return value, difference
}

// kaldi runs the embedded reference case.
func (d *demo) kaldi(ctx context.Context) error {
	folder, err := fs.Sub(demoFiles, "demo/"+demoCase)
	if err != nil {
		return err
	}
	ref, err := refcase.Load(folder, demoCase)
	if err != nil {
		return err
	}
	r := ref.Run(ctx, d.query, d.opt)
	if r.Err != nil {
		return r.Err
	}
	d.title("Against Kaldi")
	d.line("case", "%s: a small TDNN-F with Kaldi's parameters, input and output", ref.Name)
	d.line("numbers", "relative difference from Kaldi's output %s (1e-4 is allowed)", relative(r.MaxRelDiff))
	d.line("commands", "%d, where Kaldi's own optimizer leaves %d", r.Commands, r.KaldiCommands)
	d.line("peak bytes", "%s, where Kaldi's own optimizer leaves %s", display.Thousands(r.MaxMemoryBytes), display.Thousands(r.KaldiMaxMemoryBytes))
	return nil
}
