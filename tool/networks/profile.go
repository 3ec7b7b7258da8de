package networks

import (
	"context"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// profile optimizes a request to a network, and runs it on random inputs.
func (f *networkFlags) profile(ctx context.Context, c *tool.Console, model string, runs, threads int) (*profile.Function, error) {
	f.random = runs > 0
	_, p, err := f.build(ctx, c, model, pipeline.Options{Record: true})
	if err != nil {
		return nil, err
	}
	_, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return nil, err
	}
	// Effects on commands and memory show only when a graph is emitted. So the optimizer runs again
	// for every pass that changed something, up to that pass; these runs are not part of the times.
	if err := p.MeasureEffects(ctx, opt); err != nil {
		return nil, err
	}
	fn := newFunctionProfile(model, p)
	return fn, link(ctx, fn, p, runs, threads, f.seed)
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
func link(ctx context.Context, f *profile.Function, p *pipeline.Plan, runs, threads int, seed uint64) error {
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
	if _, err := measure.Runs(ctx, program, p.Net, in, measure.Patience{Runs: runs}, exec.ComputerOptions{Timing: timing, Threads: threads}); err != nil {
		return err
	}
	f.Calls, f.CallTime = runs, timing.Total()
	for _, row := range timing.ByComponent() {
		f.Execution = append(f.Execution, profile.OpCost{Name: row.Name, Applies: row.Commands, Calls: int(row.Runs), Time: row.Time, Helped: row.Helped, Waited: row.Waited, Bytes: row.Bytes})
	}
	return nil
}
