package networks

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/brief"
	"github.com/nnopt/nnopt/tool/networks/internal/measure"
)

// rounds is the number of rounds in which each network is measured, in turns with
// the unit. The best run of a round counts, and the median of the rounds.
const rounds = 7

// roundPatience bounds a round.
func roundPatience() measure.Patience {
	if brief.Always.Load() {
		return measure.Patience{Runs: 1}
	}
	return measure.Patience{Runs: 3, Time: 200 * time.Millisecond}
}

// A networkTimes is a line of bench nnet3 without a model.
type networkTimes struct {
	Case string `json:"case"`
	// Seconds of a run, as compiled and as optimized. In training they contain
	// RenewSeconds, the time to prepare new parameters.
	RunSecondsUnoptimized float64 `json:"run_seconds_unoptimized"`
	RunSeconds            float64 `json:"run_seconds"`
	RenewSeconds          float64 `json:"renew_seconds,omitempty"`
	Operations            int64   `json:"operations"`
	GFlops                float64 `json:"gflops"`
	// RunSeconds in units, and Kaldi's time in its units; 0 if unknown.
	UnitSeconds float64 `json:"unit_seconds,omitempty"`
	Units       float64 `json:"units,omitempty"`
	KaldiUnits  float64 `json:"kaldi_units,omitempty"`
}

// benchNetworks measures run times for every request of a file and prints a table in
// Markdown.
func benchNetworks(ctx context.Context, c *tool.Console, net *networkFlags, file, unit string, threads int, asJSON bool) error {
	_, opt, err := net.passes.BuildFor(net.vocabulary())
	if err != nil {
		return err
	}
	cases, err := readBenchCases(file)
	if err != nil {
		return err
	}
	for i, k := range cases {
		// Return memory, so that each request starts as if in a process of its own.
		debug.FreeOSMemory()
		nn, _, err := net.network(c, filepath.Join(filepath.Dir(file), k.Config), net.seed)
		if err != nil {
			return err
		}
		t, err := k.run(ctx, nn, opt, net.seed, unit, exec.ComputerOptions{Threads: threads})
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		if asJSON {
			err = tool.WriteJSON(c.Stdout, t)
		} else {
			if i == 0 {
				c.Print("| request | as compiled, ms | optimized, ms | GFLOP/s | units | Kaldi | ratio |\n| --- |%s\n", strings.Repeat(" ---: |", 6))
			}
			c.Print("%s\n", t.line())
			err = c.Stdout.Flush() // a line takes seconds
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run times the computation for a request, as compiled and as optimized.
func (k *benchCase) run(ctx context.Context, nn *nnet3.Nnet, opt *optdb.Optimizer, seed uint64, unit string, opts exec.ComputerOptions) (*networkTimes, error) {
	req, err := computation.ReadRequestJSON(bytes.NewReader(k.Request), computation.NewNetworkInfo(nn, nil))
	if err != nil {
		return nil, err
	}
	prepare(nn, req)
	plan, err := pipeline.Build(ctx, nn, req, pipeline.Options{Optimizer: opt})
	if err != nil {
		return nil, err
	}
	in, err := pipeline.RandomValues(nn, req, seed)
	if err != nil {
		return nil, err
	}
	t := &networkTimes{Case: k.name}
	pipeline.Prepare(plan.Optimized, nn)
	program, err := exec.NewProgram(plan.Optimized, nn)
	if err != nil {
		return nil, err
	}
	var seconds, renew, units, inUnits []float64
	// The unit is measured in the same round as the network, so that a machine that is busy or
	// throttled slows down both. The best run of a round is the least disturbed one; the median
	// over rounds drops those that were disturbed as a whole.
	for range rounds {
		times, err := measure.Runs(ctx, program, nn, in, roundPatience(), opts)
		if err != nil {
			return nil, err
		}
		u, err := runUnit(ctx, unit)
		if err != nil {
			return nil, err
		}
		seconds, renew, units = append(seconds, times.Best.Seconds()), append(renew, times.Renew.Seconds()), append(units, u)
		if u > 0 {
			inUnits = append(inUnits, times.Best.Seconds()/u)
		}
	}
	t.RunSeconds, t.RenewSeconds, t.UnitSeconds, t.Units = median(seconds), median(renew), median(units), median(inUnits)
	t.Operations = program.Operations()
	t.GFlops = gflops(t.Operations, t.RunSeconds)
	if k.Unit > 0 {
		t.KaldiUnits = k.Seconds.Run / k.Unit
	}
	// Last: it prepares other parameters, which would slow down the runs above.
	return t, t.compiled(ctx, plan, in, opts)
}

// compiled times the computation as compiled.
func (t *networkTimes) compiled(ctx context.Context, plan *pipeline.Plan, in pipeline.Values, opts exec.ComputerOptions) error {
	pipeline.Prepare(plan.Compiled, plan.Net)
	program, err := exec.NewProgram(plan.Compiled, plan.Net)
	if err != nil {
		return err
	}
	times, err := measure.Runs(ctx, program, plan.Net, in, measure.Patience{Runs: rounds, Time: roundPatience().Time}, opts)
	t.RunSecondsUnoptimized = times.Median.Seconds()
	return err
}

// median returns the middle element, 0 for an empty slice.
func median(s []float64) float64 {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[len(s)/2]
}

// line formats a row of the table.
func (t *networkTimes) line() string {
	figure := func(format string, v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf(format, v)
	}
	ratio := 0.0
	if t.KaldiUnits > 0 {
		ratio = t.Units / t.KaldiUnits
	}
	return fmt.Sprintf("| `%s` | %.2f | %.2f | %s | %s | %s | %s |", t.Case, 1e3*t.RunSecondsUnoptimized, 1e3*t.RunSeconds,
		figure("%.1f", t.GFlops), figure("%.3f", t.Units), figure("%.3f", t.KaldiUnits), figure("%.2f", ratio))
}
