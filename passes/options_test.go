package passes_test

import (
	"flag"
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// kaldiSwitches are Kaldi's options that are on or off, with the entries that are excluded if they
// are off.
var kaldiSwitches = map[string][]string{
	"consolidate-model-update": {"consolidate_model_update"},
	"propagate-in-place":       {"propagate_in_place"},
	"backprop-in-place":        {"backprop_in_place"},
	"optimize-row-ops":         {"optimize_row_ops"},
	"split-row-ops":            {"split_row_ops"},
	"extend-matrices":          {"extend_matrices"},
	"convert-addition":         {"convert_addition"},
	"remove-assignments":       {"remove_assignments"},
	"allow-left-merge":         nil,
	"allow-right-merge":        nil,
	"initialize-undefined":     {"initialize_undefined"},
	"move-sizing-commands":     {"move_sizing_commands"},
	"allocate-from-other":      {"allocate_from_other"},
	"snip-row-ops":             {"snip_row_ops"},
	"memory-compression-level": {"memory_compression"},
}

// options returns the default options with flags applied.
func options(t *testing.T, args ...string) passes.OptimizeOptions {
	t.Helper()
	o := passes.DefaultOptimizeOptions()
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	o.Register(fs, "optimization.")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func off(name string) string {
	if name == "memory-compression-level" {
		return "--optimization." + name + "=0"
	}
	return "--optimization." + name + "=false"
}

// TestOptimizeOptions: each of Kaldi's switches excludes the entry that it names, and nothing else.
func TestOptimizeOptions(t *testing.T) {
	base, db := optdb.Include("fast_run"), passes.Default()
	if q := options(t).Query(base); !q.Equal(base) {
		t.Errorf("Kaldi's defaults make %v of %v", q, base)
	}
	build := func(q optdb.Query) *optdb.Optimizer {
		t.Helper()
		opt, err := db.Build(q)
		if err != nil {
			t.Fatal(err)
		}
		return opt
	}
	all := build(base)
	without := func(args []string, want ...string) {
		t.Helper()
		opt := build(options(t, args...).Query(base))
		for _, e := range all.Entries() {
			left := false
			for _, name := range want {
				left = left || e.Name == name
			}
			if opt.Selected(e.Path) == left {
				t.Errorf("%v: %s selected: %v", args, e.Path, !left)
			}
		}
	}
	for name, entries := range kaldiSwitches {
		without([]string{off(name)}, entries...)
		// The query language knows the names too.
		tag := strings.ReplaceAll(strings.TrimSuffix(name, "-level"), "-", "_")
		if _, err := db.Build(base.Excluding(tag)); err != nil {
			t.Errorf("query -%s: %v", tag, err)
		}
	}
	without([]string{off("allow-left-merge"), off("allow-right-merge")}, "remove_assignments", "propagate_in_place", "backprop_in_place")
	if opt := build(options(t, off("optimize")).Query(base)); len(opt.Entries()) != 0 || passes.NeedsDebugInfo(opt) {
		t.Errorf("--optimize=false leaves %v", opt)
	}
	for _, limit := range []string{"min-deriv-time=-3", "max-deriv-time=4", "max-deriv-time-relative=0"} {
		for _, more := range []string{"optimize", "allow-left-merge"} {
			opt := build(options(t, "--optimization."+limit, off(more)).Query(base))
			if !passes.NeedsDebugInfo(opt) || !opt.Selected("limit_derivative_times") {
				t.Errorf("%s: limit_derivative_times selected: %v", limit, opt.Selected("limit_derivative_times"))
			}
		}
	}
	if o := passes.DefaultOptimizeOptions(); o.MinDerivTime != math.MinInt32 || o.MaxDerivTimeRelative != math.MaxInt32 || o.MemoryCompressionLevel != 1 || !o.Optimize {
		t.Errorf("the defaults are not Kaldi's: %+v", o)
	}
}
