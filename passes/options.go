package passes

import (
	"flag"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// OptimizeOptions are the switches of Kaldi's nnet3 optimizer, under Kaldi's names. Each means
// the entry of the database of the same name, and together they make a query. Kaldi's defaults are
// DefaultOptimizeOptions; in the zero value everything is off.
type OptimizeOptions struct {
	// Optimize off leaves the computation as compiled, except that times of derivatives are
	// limited.
	Optimize               bool
	ConsolidateModelUpdate bool
	PropagateInPlace       bool
	BackpropInPlace        bool
	OptimizeRowOps         bool
	SplitRowOps            bool
	SnipRowOps             bool
	ExtendMatrices         bool
	ConvertAddition        bool
	RemoveAssignments      bool
	// AllowLeftMerge and AllowRightMerge say which matrix two values may share, that of the one or
	// that of the other. Here a shared matrix may be larger than either, so one of them is enough.
	// With both off no two values share a matrix: nothing is computed in place, and no assignment
	// is removed.
	AllowLeftMerge, AllowRightMerge bool
	InitializeUndefined             bool
	MoveSizingCommands              bool
	AllocateFromOther               bool
	// MinDerivTime and MaxDerivTime are the first and the last time at which derivatives are
	// propagated back. MaxDerivTimeRelative counts from the last output and, unless it is
	// math.MaxInt32, replaces MaxDerivTime.
	MinDerivTime, MaxDerivTime, MaxDerivTimeRelative int
	// MemoryCompressionLevel above 0 keeps one bit per element of what a ReLU needs for its
	// backward pass. Kaldi's level 2, which also rounds other matrices, is the same as level 1
	// here.
	MemoryCompressionLevel int
}

// DefaultOptimizeOptions returns Kaldi's defaults: everything is on, and no times are limited.
func DefaultOptimizeOptions() OptimizeOptions {
	o := OptimizeOptions{MinDerivTime: math.MinInt32, MaxDerivTime: math.MaxInt32, MaxDerivTimeRelative: math.MaxInt32, MemoryCompressionLevel: 1}
	for _, s := range o.switches() {
		*s.on = true
	}
	return o
}

// An optimizeSwitch is an option that is on or off.
type optimizeSwitch struct {
	flag, doc string
	on        *bool
	entry     string // excluded if the option is off; empty if that is not a single entry
}

func (o *OptimizeOptions) switches() []optimizeSwitch {
	return []optimizeSwitch{
		{"optimize", "Optimize; if false, only limit the times of derivatives", &o.Optimize, ""},
		{"consolidate-model-update", "Update a component once over all of its backward runs", &o.ConsolidateModelUpdate, "consolidate_model_update"},
		{"propagate-in-place", "Run components forward in place where possible", &o.PropagateInPlace, "propagate_in_place"},
		{"backprop-in-place", "Run components backward in place where possible", &o.BackpropInPlace, "backprop_in_place"},
		{"optimize-row-ops", "Move consecutive rows as blocks", &o.OptimizeRowOps, "optimize_row_ops"},
		{"split-row-ops", "Move rows that make up two blocks as two blocks", &o.SplitRowOps, "split_row_ops"},
		{"snip-row-ops", "Drop empty sums at the ends of lists", &o.SnipRowOps, "snip_row_ops"},
		{"extend-matrices", "Let matrices grow so that values can share them", &o.ExtendMatrices, "extend_matrices"},
		{"convert-addition", "Copy values instead of adding them to zeros", &o.ConvertAddition, "convert_addition"},
		{"remove-assignments", "Compute values in place instead of copying them there", &o.RemoveAssignments, "remove_assignments"},
		{"allow-left-merge", "Let values share a matrix (off only if allow-right-merge is off, too)", &o.AllowLeftMerge, ""},
		{"allow-right-merge", "Let values share a matrix (off only if allow-left-merge is off, too)", &o.AllowRightMerge, ""},
		{"initialize-undefined", "Do not set to zero what is written before it is read", &o.InitializeUndefined, "initialize_undefined"},
		{"move-sizing-commands", "Allocate late and free early", &o.MoveSizingCommands, "move_sizing_commands"},
		{"allocate-from-other", "Take over the memory of matrices that are no longer needed", &o.AllocateFromOther, "allocate_from_other"},
	}
}

// KaldiOptions returns the names of Kaldi's options for an entry of the database, or nil if Kaldi
// has no such entry.
func KaldiOptions(entry string) []string {
	switch entry {
	case "memory_compression":
		return []string{"memory-compression-level"}
	case "limit_derivative_times":
		return []string{"min-deriv-time", "max-deriv-time", "max-deriv-time-relative"}
	}
	var names []string
	for _, s := range new(OptimizeOptions).switches() {
		if s.entry == entry {
			names = append(names, s.flag)
		}
	}
	return names
}

// Register declares a flag for each option. Kaldi's prefix is "optimization.".
func (o *OptimizeOptions) Register(fs *flag.FlagSet, prefix string) {
	for _, s := range o.switches() {
		fs.BoolVar(s.on, prefix+s.flag, *s.on, s.doc)
	}
	fs.IntVar(&o.MinDerivTime, prefix+"min-deriv-time", o.MinDerivTime, "Treat derivatives at earlier times as zero")
	fs.IntVar(&o.MaxDerivTime, prefix+"max-deriv-time", o.MaxDerivTime, "Treat derivatives at later times as zero")
	fs.IntVar(&o.MaxDerivTimeRelative, prefix+"max-deriv-time-relative", o.MaxDerivTimeRelative, "max-deriv-time, counted from the last output")
	fs.IntVar(&o.MemoryCompressionLevel, prefix+"memory-compression-level", o.MemoryCompressionLevel, "0 keeps everything that backward passes need, 1 or 2 keep one bit per element where that is enough")
}

// Query returns q without the entries that are off, and with the limits to the times of
// derivatives. The default options return q itself.
func (o OptimizeOptions) Query(q optdb.Query) optdb.Query {
	if !o.Optimize {
		q = optdb.Query{}
	} else {
		for _, s := range o.switches() {
			if !*s.on && s.entry != "" {
				q = q.Excluding(s.entry)
			}
		}
		if !o.AllowLeftMerge && !o.AllowRightMerge {
			q = q.Excluding("allow_left_merge", "allow_right_merge")
		}
		if o.MemoryCompressionLevel <= 0 {
			q = q.Excluding("memory_compression")
		}
	}
	for _, t := range []struct {
		setting    string
		value, all int
	}{
		{"min-deriv-time", o.MinDerivTime, math.MinInt32},
		{"max-deriv-time", o.MaxDerivTime, math.MaxInt32},
		{"max-deriv-time-relative", o.MaxDerivTimeRelative, math.MaxInt32},
	} {
		if v := min(max(t.value, math.MinInt32), math.MaxInt32); v != t.all {
			q = q.Including(limitsTimes).Set(limitsTimes, t.setting, strconv.Itoa(v))
		}
	}
	return q
}

// limitsTimes is the entry that limits the times of derivatives.
const limitsTimes = "limit_derivative_times"

// NeedsDebugInfo reports whether an optimizer must know what the rows of matrices are, so that
// computations for it must be compiled with compile.Options.DebugInfo.
func NeedsDebugInfo(opt *optdb.Optimizer) bool {
	return opt != nil && slices.ContainsFunc(opt.Settings(limitsTimes), func(s rewrite.Setting) bool { return s.Value != s.Default })
}
