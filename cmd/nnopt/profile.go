package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
)

func profileVerb() verb {
	return verb{
		name:     "profile",
		args:     "MODEL",
		synopsis: "show what the optimizer did and what it cost",
		detail: `
Compiles a request to MODEL, optimizes the computation and prints what the optimizer recorded: as text in Theano's layout, as
JSON, as a self-contained HTML page, for "go tool pprof", or as a trace for Perfetto or chrome://tracing. With --run the
computation is executed too, and the time of its commands stands below.`,
		setup: func(fs *flag.FlagSet) action {
			net := declareNetwork(fs)
			net.watch = declareWatch(fs)
			format := fs.String("format", "text", "One of text, json, html, pprof, trace")
			output := fs.String("output", "-", "File to write; \"-\" is standard output")
			runs := fs.Int("run", 0, "Execute the computation this many times on random inputs")
			return func(ctx context.Context, c *console, args []string) error {
				if err := wantArgs(args, 1, 1, "MODEL"); err != nil {
					return err
				}
				write := profileWriter(*format)
				if write == nil {
					return usagef("--format=%s: there are text, json, html, pprof, trace", *format)
				}
				_, p, err := net.build(ctx, c, args[0], pipeline.Options{Record: true})
				if err != nil {
					return err
				}
				_, opt, err := net.passes.build()
				if err != nil {
					return err
				}
				if err := p.MeasureEffects(ctx, opt); err != nil {
					return err
				}
				f := newFunctionProfile(args[0], p)
				if err := link(ctx, f, p, *runs, net.seed); err != nil {
					return err
				}
				return writeTo(c, *output, func(w io.Writer) error { return write(f, w) })
			}
		},
	}
}

// profileWriter returns the writer of a format, nil for an unknown one.
func profileWriter(format string) func(*profile.Function, io.Writer) error {
	switch format {
	case "text":
		return (*profile.Function).WriteText
	case "json":
		return (*profile.Function).WriteJSON
	case "html":
		return (*profile.Function).WriteHTML
	case "trace":
		return (*profile.Function).WriteTrace
	case "pprof":
		return func(f *profile.Function, w io.Writer) error {
			if f.Optimizer == nil {
				return fmt.Errorf("nothing was optimized, so there is nothing to write")
			}
			return pprof.Write(w, f.Optimizer)
		}
	}
	return nil
}

// newFunctionProfile puts what a plan knows of its making into a profile.
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

// link makes a program of the optimized computation and runs it, and adds what that cost to the profile.
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
	pipeline.Prepare(p.Net, p.Optimized)
	timing := program.NewTiming()
	if _, err := pipeline.Measure(ctx, program, p.Net, in, pipeline.Patience{Runs: runs}, timing); err != nil {
		return err
	}
	f.Calls, f.CallTime = runs, timing.Total()
	for _, row := range timing.ByComponent() {
		f.Execution = append(f.Execution, profile.OpCost{Name: row.Name, Applies: row.Commands, Calls: int(row.Runs), Time: row.Time, Bytes: row.Bytes})
	}
	return nil
}

// writeTo writes to a file or, for "-", to standard output. A file that could not be written to the end is removed.
func writeTo(c *console, name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(c.stdout)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
