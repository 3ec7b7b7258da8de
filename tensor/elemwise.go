package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// Elemwise applies an element-wise operation. Its inputs have the same number of dimensions; those
// of size 1 are broadcast. Map and the functions named after operations, such as Add, give their
// arguments that form.
type Elemwise struct {
	Op      array.Opcode
	To      array.DType // of a Cast
	Inplace int8        // the input that the result overwrites, plus 1; 0 means none
}

// elemwiseOps are the ops as interface values, which saves OpFor an allocation.
var elemwiseOps = func() (t [array.NumOpcodes]Op) {
	for o := range t {
		t[o] = Elemwise{Op: array.Opcode(o)}
	}
	return t
}()

// OpFor returns the Elemwise of an operation other than array.Cast.
func OpFor(o array.Opcode) Op { return elemwiseOps[o] }

// String returns the name of the operation.
func (e Elemwise) String() string {
	name := e.Op.String()
	if e.Op == array.Cast {
		name += "{" + e.To.String() + "}"
	}
	if e.Inplace > 0 {
		name += fmt.Sprintf("{inplace=%d}", e.Inplace-1)
	}
	return name
}

// Commutes reports whether the order of the inputs is irrelevant.
func (e Elemwise) Commutes() bool { return e.Op.Commutes() && e.Inplace == 0 }

// DestroyMap returns the input that the result overwrites.
func (e Elemwise) DestroyMap() []fgraph.Alias { return destroys(e.Inplace > 0, int(e.Inplace)-1) }

// ToleratesAlias allows the destroyed input to be another input as well: every element is read before
// it is overwritten.
func (e Elemwise) ToleratesAlias(_, _ int, same bool) bool { return same }

// InferShape takes each size from the first input that does not broadcast it.
func (e Elemwise) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return broadcastShape(a, s)
}

// Infer broadcasts the inputs.
func (e Elemwise) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if n := e.Op.NumArgs(); n >= 0 && len(in) != n || len(in) == 0 {
		return nil, opError(e, "%d arguments", len(in))
	}
	first := TypeOf(in[0])
	if first.IsCSR() {
		return nil, argError(e, 0, "is a sparse matrix")
	}
	// Most inputs have one type. Then nothing has to be broadcast, and mostly the type is that of the result,
	// which saves a look into the table of types.
	alike := true
	for i, v := range in[1:] {
		t := TypeOf(v)
		alike = alike && t == first
		if t.NDim() != first.NDim() || t.IsCSR() {
			return nil, argError(e, i+1, "is a %v, the first one is a %v", t, first)
		}
	}
	var s spec
	if alike {
		s = first.h.Value()
	} else {
		var err *Error
		if s, err = broadcast(in); err != nil {
			err.Op = e.String()
			return nil, err
		}
	}
	var buf [8]array.DType
	dtypes := buf[:0]
	for _, v := range in {
		dtypes = append(dtypes, TypeOf(v).DType())
	}
	if e.Op == array.Cast {
		s.dtype = e.To
	} else {
		var ok bool
		if _, s.dtype, ok = e.Op.Types(dtypes...); !ok {
			return nil, opError(e, "is not defined for elements of types %v", dtypes)
		}
	}
	t := first
	if !alike || s.dtype != first.DType() {
		t = s.intern()
	}
	if k := int(e.Inplace); k > len(in) || k > 0 && !t.Accepts(in[k-1].Type()) {
		return nil, opError(e, "a %v does not fit in the place of its input", t)
	}
	return one(t), nil
}

// AddTo appends the operation to a program and returns its result.
func (e Elemwise) AddTo(p *array.Program, args ...int) int {
	if e.Op == array.Cast {
		return p.Cast(e.To, args[0])
	}
	return p.Append(e.Op, args...)
}

// Compile returns the operation as a program of one step.
func (e Elemwise) Compile(a *fgraph.Apply) (Kernel, error) {
	p := array.NewProgram(dtypesOf(a.Inputs())...)
	p.Return(e.AddTo(p, upTo(len(a.Inputs()))...))
	return elementwise(a, p, []int8{e.Inplace}), nil
}

func dtypesOf(vars []*fgraph.Variable) []array.DType {
	return lists.Map(vars, func(v *fgraph.Variable) array.DType { return TypeOf(v).DType() })
}

// elementwise returns the kernel of a program. For each output, inplace is the input that it
// overwrites, as in Elemwise.
func elementwise(a *fgraph.Apply, p *array.Program, inplace []int8) Kernel {
	specs := lists.Map(a.Inputs(), func(v *fgraph.Variable) spec { return TypeOf(v).h.Value() })
	op := a.Op()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var shape [array.MaxDims]int
		ndim := int(specs[0].ndim)
		if err := runtimeShape(op, shape[:ndim], specs, in); err != nil {
			return err
		}
		for i, o := range out {
			if k := inplace[i]; k > 0 {
				*o = *in[k-1]
			} else if err := ws.New(o, p.OutputType(i), shape[:ndim]...); err != nil {
				return err
			}
		}
		ws.Map(p, out, in)
		if ws.Again != nil {
			*ws.Again = ws.MapAgain(p, out, in)
		}
		return nil
	}
}

// Map applies an element-wise operation. Dimensions that an argument lacks are added in front, with
// size 1.
func Map(op array.Opcode, args ...*fgraph.Variable) *fgraph.Variable { return mapOp(OpFor(op), args) }

// MapOp is Map for an op that is a conversion or works in place.
func MapOp(op Elemwise, args ...*fgraph.Variable) *fgraph.Variable { return mapOp(op, args) }

func mapOp(op Op, args []*fgraph.Variable) *fgraph.Variable {
	if len(args) == 0 {
		fail(op.String(), "no arguments")
	}
	return MustApply(op, pad(args)...)
}

// Cast returns x with another element type, or x itself if it has that type.
func Cast(x *fgraph.Variable, to array.DType) *fgraph.Variable {
	if TypeOf(x).DType() == to {
		return x
	}
	return MustApply(Elemwise{Op: array.Cast, To: to}, x)
}
