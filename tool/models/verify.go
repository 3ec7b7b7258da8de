package models

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
)

func (o Options) verifyVerb() tool.Verb {
	return tool.Verb{
		Name:     "verify",
		Before:   "version",
		Args:     "DIR...",
		Synopsis: "or cases of ONNX models",
		Of:       "cases of ONNX models",
		Detail: `
DIR may also be a case of an ONNX model, in the form of ONNX's own backend tests: a folder with model.onnx and folders
test_data_set_0, …, each with input_0.pb, … and output_0.pb, …, or a folder of such cases. A model is lowered to a graph of tensors,
for which --query selects passes, and run. Outputs must agree within 1e-3 of each element and 1e-7, or, for floats, within 1e-4 of
their norm. With +int8 or +int16, outputs of a model that has products of integers may differ by as much of their norm as
--quantize.error says, 0.08 unless given; with +matmul_nbits, as its setting error says.`,
		Examples: `
$0 verify onnxcases
$0 verify --query=none onnxcases/relu`,
		Claims: func(arg string) bool {
			if !isFolder(arg) {
				return false
			}
			found, err := backend.Find(arg)
			return err == nil && len(found) > 0
		},
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			passes := declarePasses(cfg, fs)
			asJSON := fs.Bool("json", false, "Print a JSON object per case")
			threads := tool.DeclareThreads(fs)
			return func(ctx context.Context, c *tool.Console, args []string) error {
				query, opt, err := passes.Build()
				if err != nil {
					return err
				}
				var dirs []string
				for _, arg := range args {
					found, err := backend.Find(arg)
					if err != nil {
						return err
					}
					dirs = append(dirs, found...)
				}
				v := &verification{Console: c, query: query, options: o.lowering("", opt), json: *asJSON}
				v.options.Threads = threads.Of(1)
				v.most = mostOf(opt)
				return v.run(ctx, dirs)
			}
		},
	}
}

// A verification runs cases and sums up the results.
type verification struct {
	*tool.Console
	query   string
	options session.Options
	json    bool
	most    float64 // by which outputs may differ because of integers, as part of their norm

	cases, ok int
	worst     float64
}

func (v *verification) run(ctx context.Context, dirs []string) error {
	start := time.Now()
	if !v.json {
		v.Print("      %-40s %9s %8s %9s %9s\n", "case", "rel.diff", "applies", "lower", "run")
	}
	for _, dir := range dirs {
		var r *backend.Result
		if c, err := backend.Load(dir); err != nil {
			r = backend.Failed(dir, v.query, err)
		} else {
			tellDoubts(v.Console, c.Model, filepath.Join(dir, "model.onnx"))
			r = c.Run(ctx, v.query, v.options)
			if r.Integers > 0 && errors.Is(r.Err, backend.ErrDiffers) && r.MaxRelDiff != nil && *r.MaxRelDiff <= v.most {
				r.OK, r.Err, r.Error = true, nil, ""
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.show(r); err != nil {
			return err
		}
	}
	v.Say("%d of %d cases of ONNX models agree under %q, in %s", v.ok, v.cases, v.query, duration(time.Since(start).Seconds()))
	if v.ok > 0 {
		v.Say("largest difference by norm %.1e", v.worst)
	}
	if v.ok < v.cases {
		return tool.ErrSilent
	}
	return nil
}

// coding is the pass that makes codes of weights.
const coding = "matmul_nbits"

// mostOf returns by how much products of integers and of codes may change an output.
func mostOf(opt *optdb.Optimizer) (most float64) {
	switch {
	case opt == nil:
		return 0
	case opt.Selected("products_to_int8") || opt.Selected("products_to_int16"):
		most = settingOf(opt, "limit_integer_error")
	}
	if opt.Selected(coding) {
		most = max(most, settingOf(opt, coding))
	}
	return most
}

// settingOf returns the setting error of a pass, 0 if there is none.
func settingOf(opt *optdb.Optimizer, pass string) float64 {
	for _, s := range opt.Settings(pass) {
		if s.Name == "error" {
			most, _ := strconv.ParseFloat(s.Value, 64) // which the pass has understood
			return most
		}
	}
	return 0
}

// show counts a case, and prints its line at once.
func (v *verification) show(r *backend.Result) error {
	v.cases++
	state, diff := "FAIL", "-"
	if r.OK {
		v.ok++
		state = "ok"
	}
	if r.MaxRelDiff != nil {
		diff = fmt.Sprintf("%.1e", *r.MaxRelDiff)
		if r.OK {
			v.worst = max(v.worst, *r.MaxRelDiff)
		}
	}
	if v.json {
		if err := tool.WriteJSON(v.Stdout, r); err != nil {
			return err
		}
		return v.Stdout.Flush()
	}
	v.Print("%-4s  %-40s %9s %8d %9s %9s\n", state, r.Case, diff, r.Applies, duration(r.LowerSeconds), duration(r.RunSeconds))
	if r.Error != "" {
		v.Print("      %s\n", strings.ReplaceAll(strings.TrimSpace(r.Error), "\n", "\n      "))
	}
	return v.Stdout.Flush()
}

// duration prints seconds with three digits.
func duration(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.3g µs", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g s", seconds)
}
