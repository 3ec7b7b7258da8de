package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Compile returns what computes an apply of an Op. Half floats are computed with as float32s: an op that
// knows nothing of them gets copies, and its results are rounded.
func Compile(a *fgraph.Apply) (Kernel, error) {
	op, ok := a.Op().(Op)
	if !ok {
		return nil, opError(a.Op(), "can't be computed")
	}
	if !hasHalves(a.Inputs()) && !hasHalves(a.Outputs()) || takesHalves(op) {
		return op.Compile(a)
	}
	return compileWide(op, a)
}

func hasHalves(vars []*fgraph.Variable) bool {
	for _, v := range vars {
		if t, ok := v.Type().(Type); ok && t.DType().IsHalf() {
			return true
		}
	}
	return false
}

// A halfTaker is an op of another package that may say that its kernels work on half floats as they are.
type halfTaker interface{ TakesHalves() bool }

// takesHalves reports whether the kernels of an op work on half floats: it moves elements, or compares
// them, or is a program of element-wise operations, each of which rounds.
func takesHalves(op Op) bool {
	switch op := op.(type) {
	case Elemwise, *CompositeOp, Fusible, AllocOp, AllocEmptyOp, AllocDiagOp, EyeOp, JoinOp, MakeVectorOp, ReshapeOp,
		*IncSubtensorOp, AdvancedSubtensorOp, AdvancedIncSubtensorOp, *AttentionOp, ArgmaxOp, SortOp, ArgsortOp, ShapeOp, ShapeIOp:
		return true
	case halfTaker:
		return op.TakesHalves()
	case fgraph.Viewer:
		return len(op.ViewMap()) > 0
	}
	return false
}

// A widened op takes and makes half floats, and computes with float32s.
type widened struct {
	kernel    Kernel           // of the same op for float32s
	consts    []*array.Array   // by input: constants as float32s, or nil
	casts     []*array.Program // by input: makes half floats float32s, or nil
	rounds    []*array.Program // by output: makes float32s half floats, or nil
	destroyed []fgraph.Alias
}

// compileWide compiles the same op for float32s in place of half floats.
func compileWide(op Op, a *fgraph.Apply) (Kernel, error) {
	n := len(a.Inputs())
	w := &widened{consts: make([]*array.Array, n), casts: make([]*array.Program, n), rounds: make([]*array.Program, len(a.Outputs()))}
	in := make([]*fgraph.Variable, n)
	for i, v := range a.Inputs() {
		in[i] = v
		t := TypeOf(v)
		if !t.DType().IsHalf() {
			continue
		}
		// What is constant is converted once, and the kernel may prepare it.
		if c := ConstantOf(v); c != nil {
			w.consts[i] = c.Cast(array.Float32)
			in[i] = fgraph.NewConstant(t.With(array.Float32), w.consts[i], "")
			continue
		}
		in[i], w.casts[i] = fgraph.NewInput(t.With(array.Float32), ""), castProgram(t.DType(), array.Float32)
	}
	twin, err := Make(op, in...)
	if err != nil {
		return nil, err
	}
	if w.kernel, err = op.Compile(twin); err != nil {
		return nil, err
	}
	for i, v := range a.Outputs() {
		t, u := TypeOf(v), TypeOf(twin.Outputs()[i])
		switch {
		case t == u:
		case u.DType() == array.Float32 && t == u.With(t.DType()):
			w.rounds[i] = castProgram(array.Float32, t.DType())
		default:
			return nil, opError(op, "makes a %v of half floats, and a %v of float32s", t, u)
		}
	}
	if d, ok := op.(fgraph.Destroyer); ok {
		w.destroyed = d.DestroyMap()
	}
	return w.run, nil
}

// run is the Kernel.
func (w *widened) run(ws *array.Workspace, args, out []*array.Array) error {
	in := append(make([]*array.Array, 0, 8), args...)
	results := append(make([]*array.Array, 0, 8), out...)
	for i, p := range w.casts {
		switch {
		case w.consts[i] != nil:
			in[i] = w.consts[i]
		case p != nil:
			in[i] = new(array.Array)
			if err := ws.New(in[i], array.Float32, args[i].Shape()...); err != nil {
				return err
			}
			ws.Map(p, in[i:i+1], args[i:i+1])
			defer ws.Release(in[i])
		}
	}
	for i, p := range w.rounds {
		if p != nil {
			results[i] = new(array.Array)
		}
	}
	if err := w.kernel(ws, in, results); err != nil {
		return err
	}
	for i, p := range w.rounds {
		if p == nil {
			continue
		}
		// A result that overwrites an argument is in the place of the copy, which is released as
		// that, and goes where the argument is.
		if k := overwritten(w.destroyed, i); k >= 0 {
			*out[i] = *args[k]
		} else {
			if err := ws.New(out[i], p.OutputType(0), results[i].Shape()...); err != nil {
				return err
			}
			defer ws.Release(results[i])
		}
		ws.Map(p, out[i:i+1], results[i:i+1])
	}
	return nil
}

// overwritten returns the input that an output overwrites, or -1.
func overwritten(aliases []fgraph.Alias, output int) int {
	for _, d := range aliases {
		if d.Output == output {
			return d.Input
		}
	}
	return -1
}

func castProgram(from, to array.DType) *array.Program {
	p := array.NewProgram(from)
	return p.Return(p.Cast(to, 0))
}
