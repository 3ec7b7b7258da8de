package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
)

func profileVerb() Verb {
	return Verb{
		Name:     "profile",
		Args:     "MODEL",
		Synopsis: "show what the optimizer did and its cost",
		Detail: `
Compiles a request to MODEL, optimizes the computation and prints what the optimizer recorded: as text in Theano's layout, as
JSON, as the page of "$0 view" without graphs, for "go tool pprof", or as a trace for Perfetto or chrome://tracing. --run also executes the
computation and adds the times of its commands. Counters show how a pass changed the number of commands, the peak of memory, or the
number of operations.`,
		Examples: `
$0 profile --run=10 net.config
$0 profile --format=json --output=before.json net.config
$0 profile --diff=before.json --query='+fast_run -fusion' net.config`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			net := declareNetwork(cfg, fs)
			net.watch = declareWatch(fs)
			format := fs.String("format", "text", "Output format: text, json, html, pprof or trace")
			output := fs.String("output", "-", "Output file; \"-\" is standard output")
			add := fs.String("add", "", "Add up this profile and these earlier ones (comma-separated files of --format=json)")
			diff := fs.String("diff", "", "Print the differences from an earlier profile (a file of --format=json) instead of the profile")
			runs := fs.Int("run", 0, "Execute the computation this many times on random inputs")
			return taking(1, 1, "MODEL", func(ctx context.Context, c *Console, args []string) error {
				write := profileWriter(*format)
				if write == nil {
					return Usagef("--format=%s: want text, json, html, pprof or trace", *format)
				}
				net.random = *runs > 0
				if err := c.inVainIf(*diff != "", "beside --diff, which prints text", "format"); err != nil {
					return err
				}
				if sameFile(args[0], *output) {
					return Usagef("%s is an input and would be overwritten", args[0])
				}
				_, p, err := net.build(ctx, c, args[0], pipeline.Options{Record: true})
				if err != nil {
					return err
				}
				// Effects on commands and memory show only when a graph is emitted. So the
				// optimizer runs again for every pass that changed something, up to that pass;
				// these runs are not part of the times.
				if err := p.MeasureEffects(ctx, net.passes.built.opt); err != nil {
					return err
				}
				f := newFunctionProfile(args[0], p)
				if err := link(ctx, f, p, *runs, net.seed); err != nil {
					return err
				}
				if err := addProfiles(f, *add); err != nil {
					return err
				}
				if *diff == "" && (*format == "pprof" || *format == "html") { // which are no text to change
					return writeTo(ctx, fileio.Writer(ctx, c.Data), *output, func(w io.Writer) error { return write(f, w) })
				}
				if *diff == "" {
					return writeTo(ctx, c.Stdout, *output, func(w io.Writer) error { return write(f, w) })
				}
				before, err := readProfile(*diff)
				if err != nil {
					return err
				}
				if f.Optimizer == nil {
					return errNotOptimized
				}
				return writeTo(ctx, c.Stdout, *output, func(w io.Writer) error { return profile.WriteDiff(w, before.Optimizer, f.Optimizer) })
			})
		},
	}
}

var errNotOptimized = errors.New("nothing was optimized, so there is no profile")

// readProfile reads an earlier profile of an optimizer.
func readProfile(name string) (*profile.Function, error) {
	f, err := readWith(name, "the profile", profile.ReadJSON)
	if err == nil && f.Optimizer == nil {
		err = fmt.Errorf("%s: has no profile of an optimizer", name)
	}
	return f, err
}

// addProfiles adds the optimizer profiles of earlier runs to f.
func addProfiles(f *profile.Function, names string) error {
	if names == "" {
		return nil
	}
	if f.Optimizer == nil {
		return errNotOptimized
	}
	all := []*profile.Record{f.Optimizer}
	for name := range strings.SplitSeq(names, ",") {
		earlier, err := readProfile(name)
		if err != nil {
			return err
		}
		all = append(all, earlier.Optimizer)
		f.CompileTime += earlier.CompileTime
		f.LinkTime += earlier.LinkTime
		f.Calls += earlier.Calls
		f.CallTime += earlier.CallTime
		for i := range f.Phases {
			for _, p := range earlier.Phases {
				if p.Name == f.Phases[i].Name {
					f.Phases[i].Time += p.Time
				}
			}
		}
	}
	f.Optimizer = profile.Merge(all...)
	return nil
}

// profileWriter returns the writer of a format, or nil if it is unknown.
func profileWriter(format string) func(*profile.Function, io.Writer) error {
	switch format {
	case "text":
		return (*profile.Function).WriteText
	case "json":
		return (*profile.Function).WriteJSON
	case "html":
		return writeProfilePage
	case "trace":
		return (*profile.Function).WriteTrace
	case "pprof":
		return func(f *profile.Function, w io.Writer) error {
			if f.Optimizer == nil {
				return errNotOptimized
			}
			return pprof.Write(w, f.Optimizer)
		}
	}
	return nil
}

// newFunctionProfile returns the profile of compiling and optimizing a plan.
func newFunctionProfile(message string, p *pipeline.Plan) *profile.Function {
	f := &profile.Function{
		Message:     message,
		CompileTime: p.CompileTime + p.OptimizeTime,
		Phases:      []profile.Phase{{Name: "Request compiler", Time: p.CompileTime}},
		Optimizer:   p.Profile,
		Applies:     len(p.Optimized.Commands),
	}
	if p.Profile != nil {
		f.Phases = append(f.Phases, profile.Phase{Name: "Lowering and emission", Time: p.OptimizeTime - p.Profile.Time})
		f.Applies = p.Profile.NodesAfter
	}
	return f
}

// link makes a program of the optimized computation, runs it, and adds the times to
// the profile.
func link(ctx context.Context, f *profile.Function, p *pipeline.Plan, runs int, seed uint64) error {
	start := time.Now()
	program, err := exec.NewProgram(p.Optimized, p.Net)
	if err != nil {
		return err
	}
	f.LinkTime = time.Since(start)
	f.CompileTime += f.LinkTime
	if runs <= 0 {
		return nil
	}
	in, err := pipeline.RandomValues(p.Net, p.Request, seed)
	if err != nil {
		return err
	}
	pipeline.Prepare(p.Optimized, p.Net)
	timing := new(exec.Timing)
	if _, err := pipeline.Measure(ctx, program, p.Net, in, pipeline.Patience{Runs: runs}, timing); err != nil {
		return err
	}
	f.Calls, f.CallTime = runs, timing.Total()
	for _, row := range timing.ByComponent() {
		f.Execution = append(f.Execution, profile.OpCost{Name: row.Name, Applies: row.Commands, Calls: int(row.Runs), Time: row.Time, Bytes: row.Bytes})
	}
	return nil
}

// writeTo writes to a file or, for "-", to standard output.
func writeTo(ctx context.Context, stdout io.Writer, name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(stdout)
	}
	return fileio.Write(ctx, name, write)
}
