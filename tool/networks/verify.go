package networks

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func (o *Options) verifyVerb() tool.Verb {
	return tool.Verb{
		Name:     "verify",
		Before:   "version",
		Of:       "cases of networks",
		Args:     "DIR...",
		Synopsis: "run reference cases and compare with Kaldi's numbers",
		Detail: `
DIR is a case (a folder with case.json, model.raw and matrices) or a folder of cases. Each case is compiled, optimized, checked, run,
and compared with Kaldi's results. The exit status is 1 unless all cases agree.

Outputs must agree within 1e-4 of their norm, derivatives and gradients within 1e-3 (5e-3 for gated recurrent units). If
kaldi_spread.json, in one of the two folders above the case, says that Kaldi's results differ by more from one processor to another,
the bound is twice that difference, and a line says so.`,
		Examples: `
$0 verify cases
$0 verify --query='+fast_run -inplace' cases/tdnnf_infer`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			passes := tool.DeclareSelection(cfg, fs)
			asJSON := fs.Bool("json", false, "Print a JSON object per case")
			threads := tool.DeclareThreads(fs)
			return func(ctx context.Context, c *tool.Console, args []string) error {
				if len(args) == 0 {
					return tool.Usagef("DIR... expected")
				}
				query, opt, err := passes.BuildFor(o.vocabulary())
				if err != nil {
					return err
				}
				dirs, err := findCases(args)
				if err != nil {
					return err
				}
				v := &verification{options: o, Console: c, query: query, opt: opt, added: passes.Added(), json: *asJSON, threads: threads.Of(1)}
				return v.run(ctx, dirs)
			}
		},
	}
}

// findCases lists the case folders in the arguments.
func findCases(args []string) ([]string, error) {
	var dirs []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s is a file; a case is a folder", arg)
		}
		found, err := refcase.Find(os.DirFS(arg), ".")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		for _, dir := range found {
			dirs = append(dirs, filepath.Join(arg, dir))
		}
	}
	return dirs, nil
}

// A verification runs cases and sums up the results.
type verification struct {
	*tool.Console
	options *Options
	query   string
	opt     *optdb.Optimizer
	added   *tool.AddedRules
	json    bool
	threads int

	cases, ok, smaller int
	sum, kaldi         counts
	worst              float64
}

func (v *verification) run(ctx context.Context, dirs []string) error {
	start := time.Now()
	if !v.json {
		v.Print("      %-34s %9s %9s %15s %21s %9s\n", "case", "rel.diff", "backward", "commands/Kaldi", "peak bytes/Kaldi", "optimize")
	}
	for _, dir := range dirs {
		if err := ctx.Err(); err != nil {
			return err
		}
		var r *refcase.Result
		name := filepath.Base(dir)
		if abs, err := filepath.Abs(dir); err == nil {
			name = filepath.Base(abs)
		}
		if c, err := refcase.LoadDir(dir); err != nil {
			r = &refcase.Result{Case: name, Query: v.query, Err: err, Error: err.Error()}
		} else {
			c.Threads = v.threads
			r = c.Run(ctx, v.query, v.opt)
			if err := v.options.failed(ctx, v.Console, r.Err, filepath.Join(dir, "model.raw"), -1, v.added); err != nil {
				r.Err, r.Error = err, err.Error()
			}
		}
		v.add(r)
		if err := v.show(r); err != nil {
			return err
		}
	}
	v.summary(time.Since(start))
	if v.ok < v.cases {
		return tool.ErrSilent
	}
	return nil
}

func (v *verification) add(r *refcase.Result) {
	v.cases++
	if !r.OK {
		return
	}
	v.ok++
	v.sum.Commands += r.Commands
	v.sum.MaxMemoryBytes += r.MaxMemoryBytes
	v.kaldi.Commands += r.KaldiCommands
	v.kaldi.MaxMemoryBytes += r.KaldiMaxMemoryBytes
	if r.Commands <= r.KaldiCommands && r.MaxMemoryBytes <= r.KaldiMaxMemoryBytes {
		v.smaller++
	}
	for _, d := range []*float64{r.MaxRelDiff, r.MaxRelDiffBackward} {
		if d != nil {
			v.worst = max(v.worst, *d)
		}
	}
}

// show prints the line of a case at once.
func (v *verification) show(r *refcase.Result) error {
	if v.json {
		if err := tool.WriteJSON(v.Stdout, r); err != nil {
			return err
		}
		return v.Stdout.Flush()
	}
	state := "ok"
	if !r.OK {
		state = "FAIL"
	}
	v.Print("%-4s  %-34s %9s %9s %7s/%-7s %10s/%-10s %9s\n", state, r.Case, relative(r.MaxRelDiff), relative(r.MaxRelDiffBackward),
		display.Thousands(r.Commands), display.Thousands(r.KaldiCommands), display.Thousands(r.MaxMemoryBytes), display.Thousands(r.KaldiMaxMemoryBytes),
		display.Duration(time.Duration(r.OptimizeSeconds*1e9)))
	for _, b := range []struct {
		what   string
		spread float64
	}{{"outputs", r.SpreadBound}, {"derivatives and gradients", r.SpreadBoundBackward}} {
		if b.spread > 0 {
			v.Print("      %s may differ by %.1e, twice the spread of Kaldi's own results\n", b.what, b.spread)
		}
	}
	if r.Error != "" {
		v.Print("      %s\n", strings.ReplaceAll(strings.TrimSpace(r.Error), "\n", "\n      "))
	}
	return v.Stdout.Flush()
}

func relative(d *float64) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%.1e", *d)
}

func (v *verification) summary(took time.Duration) {
	v.Say("%d of %d cases agree with Kaldi under %q, in %s", v.ok, v.cases, v.query, display.Duration(took))
	if v.ok > 0 && v.kaldi.Commands > 0 && v.kaldi.MaxMemoryBytes > 0 {
		v.Say("largest relative difference %.1e; commands %.2f times and peak bytes %.2f times Kaldi's in the sum; %d cases not above Kaldi in either",
			v.worst, float64(v.sum.Commands)/float64(v.kaldi.Commands), float64(v.sum.MaxMemoryBytes)/float64(v.kaldi.MaxMemoryBytes), v.smaller)
	}
}
