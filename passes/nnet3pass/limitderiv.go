package nnet3pass

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// errNoRows is the error of limit_derivative_times for a computation that does not say what its
// rows stand for.
var errNoRows = errors.New("nnet3pass: limiting the times of derivatives takes a computation with debug information (compile.Options.DebugInfo)")

// derivTimes is the interval of times in which derivatives are propagated back, ends included.
type derivTimes struct {
	min, max int32
	// maxRelative counts from the largest time of an output. Unless it is math.MaxInt32, it
	// replaces max.
	maxRelative int32
}

// allDerivTimes includes all times.
var allDerivTimes = derivTimes{math.MinInt32, math.MaxInt32, math.MaxInt32}

// limitDerivativeTimes treats derivatives at times outside the limits as zero. It avoids computing
// them where it can: backward runs of simple components are cut down to the rows inside the limits,
// or removed. Runs with a memo, and runs of components that look at several rows, stay as they are
// but get zeros for rows outside. Statistics of the forward pass are dropped where no row is
// inside. The limits are settings under the names of Kaldi's options; without them it does nothing.
//
// It looks up times by the command that an apply comes from, so it must run before passes that
// change the rows of a component.
type limitDerivativeTimes struct {
	rewrite.Global
	times derivTimes
}

func newLimitDerivativeTimes(times derivTimes) limitDerivativeTimes {
	return limitDerivativeTimes{times: times, Global: rewrite.Global{
		Name: "limit_derivative_times", Doc: "treats derivatives at times outside min-deriv-time and max-deriv-time as zero, if these are set",
		Fn: func(ctx context.Context, h *rewrite.Handle) error { return limitDerivatives(ctx, h, times) },
	}}
}

// derivSetting is a setting: where it is, and the value that includes all times.
type derivSetting struct {
	name, doc string
	value     *int32
	all       int32
}

// fields returns the settings.
func (t *derivTimes) fields() []derivSetting {
	return []derivSetting{
		{"min-deriv-time", "treat derivatives at earlier times as zero", &t.min, allDerivTimes.min},
		{"max-deriv-time", "treat derivatives at later times as zero", &t.max, allDerivTimes.max},
		{"max-deriv-time-relative", "max-deriv-time, counted from the last output", &t.maxRelative, allDerivTimes.maxRelative},
	}
}

// Settings returns Kaldi's options.
func (p limitDerivativeTimes) Settings() []rewrite.Setting {
	return lists.Map(p.times.fields(), func(f derivSetting) rewrite.Setting {
		return rewrite.Setting{Name: f.name, Value: strconv.Itoa(int(*f.value)), Default: strconv.Itoa(int(f.all)), Doc: f.doc}
	})
}

// Configured returns the pass with another limit.
func (p limitDerivativeTimes) Configured(name, value string) (rewrite.Configurable, error) {
	times := p.times
	for _, f := range times.fields() {
		if f.name == name {
			v, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%q is not an integer of 32 bits", value)
			}
			*f.value = int32(v)
		}
	}
	return newLimitDerivativeTimes(times), nil
}

// limitDerivatives goes through the graph once, from inputs to outputs.
func limitDerivatives(ctx context.Context, h *rewrite.Handle, times derivTimes) error {
	g, rec := h.Graph(), h.Recorder()
	prog, ok := lower.ProgramOf(g)
	if !ok || times == allDerivTimes {
		return nil
	}
	l := &derivLimiter{g: g, h: h, prog: prog, min: times.min, max: times.max, padded: make(map[*fgraph.Variable]bool)}
	if times.maxRelative != math.MaxInt32 {
		l.max = addSaturated(l.lastOutput(), times.maxRelative)
	}
	// The order is fixed before anything changes. Since derivatives flow from inputs to outputs of
	// the graph, everything that an apply reads has been limited when its turn comes, and padding
	// is pushed along as far as it goes.
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	if err := l.inputs(); err != nil {
		return err
	}
	for _, a := range order {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		// It may have gone with a run that was removed.
		if !g.Contains(a) {
			continue
		}
		if err := l.apply(a); err != nil {
			return fmt.Errorf("%v: %w", a.Op(), err)
		}
	}
	if err := l.outputs(); err != nil {
		return err
	}
	rec.Set("nb_trimmed", float64(l.trimmed), "")
	rec.Set("nb_deleted", float64(l.deleted), "")
	rec.Set("nb_masked", float64(l.masked), "")
	return nil
}

// A derivLimiter is a run of the pass.
//
// A derivative that is zero in some rows becomes an Assemble of the other rows. Readers that can do
// without the zeros look through this padding. If all can, the padding disappears.
type derivLimiter struct {
	g        *fgraph.FunctionGraph
	prog     *lower.Program
	min, max int32
	h        *rewrite.Handle
	padded   map[*fgraph.Variable]bool

	trimmed, deleted, masked int
}

// A rowRun is the rows [lo, hi).
type rowRun struct{ lo, hi int32 }

// inside returns the rows whose times are inside the limits. Rows without a time are padding and
// count as inside.
func (l *derivLimiter) inside(rows []index.Cindex) []rowRun {
	var runs []rowRun
	for i := range rows {
		t, r := rows[i].Index.T, int32(i)
		switch n := len(runs); {
		case t != index.NoTime && (t < l.min || t > l.max):
		case n > 0 && runs[n-1].hi == r:
			runs[n-1].hi++
		default:
			runs = append(runs, rowRun{r, r + 1})
		}
	}
	return runs
}

// all reports whether the runs cover n rows.
func all(runs []rowRun, n int32) bool {
	return len(runs) == 1 && runs[0] == rowRun{0, n}
}

func addSaturated(a, b int32) int32 {
	return int32(min(max(int64(a)+int64(b), math.MinInt32), math.MaxInt32))
}

// lastOutput returns the largest time of a row of an output.
func (l *derivLimiter) lastOutput() int32 {
	last := int32(math.MinInt32)
	for _, port := range l.prog.Outputs {
		if info := l.prog.PortRows(port); !info.IsDeriv {
			for _, row := range info.Cindexes {
				last = max(last, row.Index.T)
			}
		}
	}
	return last
}

// inputs limits the derivatives that the caller provides.
func (l *derivLimiter) inputs() error {
	for i, v := range l.g.Inputs() {
		info := l.prog.PortRows(l.prog.Inputs[i])
		if !info.IsDeriv {
			continue
		}
		if runs := l.inside(info.Cindexes); !all(runs, lower.TypeOf(v).Rows) {
			l.masked++
			w := l.pad(v, runs, 0, lower.TypeOf(v).Rows, int(l.prog.Inputs[i].At))
			if err := l.put(nil, fgraph.Replacement{Old: v, New: w}); err != nil {
				return err
			}
		}
	}
	return nil
}

// outputs limits the derivatives that are returned to the caller.
func (l *derivLimiter) outputs() error {
	changed, some := make([]*fgraph.Variable, len(l.g.Outputs())), false
	for i, v := range l.g.Outputs() {
		port := l.prog.Outputs[i]
		info := l.prog.PortRows(port)
		n := lower.TypeOf(v).Rows
		if !info.IsDeriv || l.padded[v] && all(l.inside(info.Cindexes), n) {
			continue
		}
		if w := l.cut(v, l.inside(info.Cindexes), 0, n, int(port.At)); w != v {
			l.masked++
			changed[i], some = w, true
		}
	}
	if !some {
		return nil
	}
	_, err := l.h.Whole("outputs", func() error { return l.prog.ReplaceOutputs(changed, fgraph.Reason{Rule: "outputs"}) })
	return err
}

// put makes replacements on behalf of an apply.
func (l *derivLimiter) put(a *fgraph.Apply, pairs ...fgraph.Replacement) error {
	_, err := l.h.Replace("", a, pairs...)
	return err
}

func (l *derivLimiter) apply(a *fgraph.Apply) error {
	switch op := a.Op().(type) {
	case *lower.Assemble:
		return l.assemble(a, op)
	case *lower.RowRanges:
		return l.rowRanges(a, op)
	case lower.Propagate:
		return l.propagate(a, op)
	case lower.Backprop:
		if !l.prog.HasRows() {
			return errNoRows
		}
		out, in := l.prog.DerivRows(a)
		if out == nil {
			return nil
		}
		// A simple component computes row by row, so fewer rows need no new indexes. A memo is of
		// all rows of the forward run, and precomputed indexes name rows.
		simple := op.C.Properties()&component.Simple != 0 && op.Precomputed == nil
		if simple && !op.UsesMemo && !op.Accumulate && !op.InPlace {
			return l.trim(a, op, l.inside(out), int32(len(out)))
		}
		return l.mask(a, op, out, in)
	}
	return nil
}

// trim cuts a backward run down to the rows from the first to the last one inside.
func (l *derivLimiter) trim(a *fgraph.Apply, op lower.Backprop, runs []rowRun, n int32) error {
	if len(runs) == 0 {
		l.deleted++
		return l.remove(a, op)
	}
	// One block from the first row to the last, zeros in between included. Several sequences have
	// several runs, and to divide the backward run would cost more than the zeros.
	lo, hi := runs[0].lo, runs[len(runs)-1].hi
	k := op.InputDeriv()
	inputs := slices.Clone(a.Inputs())
	inputs[k] = l.cut(inputs[k], runs, lo, hi, a.Origin())
	if all(runs, n) && inputs[k] == a.Inputs()[k] {
		return nil
	}
	// The values of the forward pass, cut to the same rows. They are views.
	for i := range k {
		inputs[i] = lower.NewBlock(inputs[i], lower.Rect{R0: lo, R1: hi, C1: lower.TypeOf(inputs[i]).Cols})
	}
	types := outputTypes(a)
	if op.HasDX {
		types[0] = lower.MatrixType{Rows: hi - lo, Cols: lower.TypeOf(a.Out()).Cols}
	}
	l.trimmed++
	return l.replace(a, op, applyAt(a, op, inputs, types...), runs, lo, n)
}

// remove removes a backward run whose output derivative is all zeros.
func (l *derivLimiter) remove(a *fgraph.Apply, op lower.Backprop) error {
	var pairs []fgraph.Replacement
	if op.HasDX {
		t := lower.TypeOf(a.Out())
		pairs = append(pairs, fgraph.Replacement{Old: a.Out(), New: lower.NewFill(t.Rows, t.Cols, 0)})
	}
	// The state passes by unchanged: zeros update nothing.
	if op.HasState {
		pairs = append(pairs, fgraph.Replacement{Old: a.Outputs()[len(a.Outputs())-1], New: a.Inputs()[len(a.Inputs())-1]})
	}
	return l.put(a, pairs...)
}

// mask gives a backward run zeros for output rows outside, and treats its results for input rows
// outside as zero.
func (l *derivLimiter) mask(a *fgraph.Apply, op lower.Backprop, out, in []index.Cindex) error {
	k := op.InputDeriv()
	n := int32(len(out))
	dy := l.cut(a.Inputs()[k], l.inside(out), 0, n, a.Origin())
	// Unknown rows of the input count as inside.
	runs, m := []rowRun{{0, int32(len(in))}}, int32(len(in))
	if in != nil {
		runs = l.inside(in)
	}
	if dy == a.Inputs()[k] && (!op.HasDX || all(runs, m)) {
		return nil
	}
	l.masked++
	inputs := slices.Clone(a.Inputs())
	inputs[k] = dy
	return l.replace(a, op, applyAt(a, op, inputs, outputTypes(a)...), runs, 0, m)
}

// replace replaces backward run a with b. Row i of the result of b stands for row lo+i of n; rows
// outside the runs are zero.
func (l *derivLimiter) replace(a *fgraph.Apply, op lower.Backprop, b *fgraph.Apply, runs []rowRun, lo, n int32) error {
	pairs := replacements(a.Outputs(), b.Outputs())
	if op.HasDX {
		pairs[0].New = l.pad(b.Out(), runs, lo, n, a.Origin())
	}
	return l.put(a, pairs...)
}

// propagate drops the statistics of a forward run with no row inside.
func (l *derivLimiter) propagate(a *fgraph.Apply, op lower.Propagate) error {
	rows := l.prog.OutputRows(a)
	if !op.StoreStats || len(rows) == 0 || len(l.inside(rows)) > 0 {
		return nil
	}
	op.StoreStats = false
	in, types := a.Inputs(), outputTypes(a)
	b := applyAt(a, op, in[:len(in)-1], types[:len(types)-1]...)
	state := in[len(in)-1] // stays as it comes in
	return l.put(a, replacements(a.Outputs(), append(slices.Clone(b.Outputs()), state))...)
}
