package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Elemwise applies an element-wise operation. Its inputs have one number of dimensions; those of size 1 are broadcast. The
// functions named after the operations, such as Add, bring their arguments into that form.
type Elemwise struct {
	Op array.Op
	To DType // of a Cast
	// Inplace is 1 more than the input whose memory the result takes; 0: none.
	Inplace int8
}

// elemwiseOps are the ops as interface values, so that making one allocates nothing.
var elemwiseOps = func() (t [array.NumOps]Op) {
	for o := range t {
		t[o] = Elemwise{Op: array.Op(o)}
	}
	return t
}()

// OpFor returns the Elemwise of an operation, which is not array.Cast.
func OpFor(o array.Op) Op { return elemwiseOps[o] }

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

// DestroyMap tells that the output takes the place of an input.
func (e Elemwise) DestroyMap() []fgraph.Alias {
	if e.Inplace == 0 {
		return nil
	}
	return []fgraph.Alias{{Output: 0, Input: int(e.Inplace) - 1}}
}

// ToleratesAlias says that the destroyed input may be read twice: an element is read before its place is written.
func (e Elemwise) ToleratesAlias(_, _ int, same bool) bool { return same }

// Infer broadcasts.
func (e Elemwise) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if n := e.Op.NumArgs(); n >= 0 && len(in) != n || len(in) == 0 {
		return nil, &Error{e.String(), -1, fmt.Sprintf("%d arguments", len(in))}
	}
	first := TypeOf(in[0])
	if first.IsCSR() {
		return nil, argError(e, 0, "is a sparse matrix")
	}
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
		var arg, dim int
		if s, arg, dim = broadcast(in); arg > 0 {
			return nil, argError(e, arg, "is a %v, whose dimension %d does not fit the size %d before it", in[arg].Type(), dim, s.shape[dim])
		}
	}
	var buf [8]DType
	dtypes := buf[:0]
	for _, v := range in {
		dtypes = append(dtypes, TypeOf(v).DType())
	}
	if e.Op == array.Cast {
		s.dtype = e.To
	} else {
		var ok bool
		if _, s.dtype, ok = e.Op.Types(dtypes...); !ok {
			return nil, &Error{e.String(), -1, fmt.Sprintf("is not defined for elements of types %v", dtypes)}
		}
	}
	t := first
	if !alike || s.dtype != first.DType() {
		t = s.intern()
	}
	if k := int(e.Inplace); k > len(in) || k > 0 && !t.Accepts(in[k-1].Type()) {
		return nil, &Error{e.String(), -1, fmt.Sprintf("a %v has no place in the input", t)}
	}
	return []fgraph.Type{t}, nil
}

// AddTo adds the operation to a program and returns its result.
func (e Elemwise) AddTo(p *array.Program, args ...int) int {
	if e.Op == array.Cast {
		return p.Cast(e.To, args[0])
	}
	return p.Apply(e.Op, args...)
}

// Compile returns the operation as a program of one step.
func (e Elemwise) Compile(a *fgraph.Apply) (Kernel, error) {
	p := array.NewProgram(dtypesOf(a.Inputs())...)
	args := make([]int, len(a.Inputs()))
	for i := range args {
		args[i] = i
	}
	p.Return(e.AddTo(p, args...))
	return elementwise(a, p, []int8{e.Inplace}), nil
}

func dtypesOf(vars []*fgraph.Variable) []DType {
	types := make([]DType, len(vars))
	for i, v := range vars {
		types[i] = TypeOf(v).DType()
	}
	return types
}

// elementwise returns the kernel that runs a program. inplace says for each output which input it replaces, as in Elemwise.
func elementwise(a *fgraph.Apply, p *array.Program, inplace []int8) Kernel {
	specs := make([]spec, len(a.Inputs()))
	for i, v := range a.Inputs() {
		specs[i] = TypeOf(v).h.Value()
	}
	op := a.Op()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var shape [MaxDims]int
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
		return nil
	}
}

// runtimeShape finds the shape of the result of an element-wise op. Only dimensions that are known to have size 1 broadcast.
func runtimeShape(op fgraph.Op, shape []int, specs []spec, in []*array.Array) error {
	for d := range shape {
		shape[d] = 1
		first := -1
		for i := range specs {
			if specs[i].shape[d] == 1 {
				continue
			}
			switch n := in[i].Dim(d); {
			case first < 0:
				first, shape[d] = i, n
			case n != shape[d]:
				return fmt.Errorf("%w: %v: argument %d has size %d in dimension %d, argument %d has size %d", ErrShape, op, i+1, n, d, first+1, shape[d])
			}
		}
	}
	return nil
}

// InferShape takes every size from the first input that does not broadcast.
func (e Elemwise) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return elementwiseShape(a, s)
}

func elementwiseShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	t := TypeOf(a.Out())
	dims := make([]*fgraph.Variable, t.NDim())
	for d := range dims {
		if n := t.Dim(d); n != Unknown {
			dims[d] = s.Size(n)
			continue
		}
		for _, v := range a.Inputs() {
			if TypeOf(v).Dim(d) != 1 {
				dims[d] = s.Dim(v, d)
				break
			}
		}
	}
	all := make([][]*fgraph.Variable, len(a.Outputs()))
	for i := range all {
		all[i] = dims
	}
	return all
}

// pad returns the arguments with one number of dimensions: new ones of size 1 are put in front.
func pad(in []*fgraph.Variable) []*fgraph.Variable {
	most, alike := 0, true
	for _, v := range in {
		n := TypeOf(v).NDim()
		alike = alike && (most == 0 || n == most)
		most = max(most, n)
	}
	if len(in) == 0 || alike && TypeOf(in[0]).NDim() == most {
		return in
	}
	out := make([]*fgraph.Variable, len(in))
	for i, v := range in {
		out[i] = PadLeft(v, most)
	}
	return out
}

// PadLeft returns v with new dimensions of size 1 in front, so that it has ndim of them.
func PadLeft(v *fgraph.Variable, ndim int) *fgraph.Variable {
	n := TypeOf(v).NDim()
	if n >= ndim {
		return v
	}
	if a := ConstantOf(v); a != nil && v.Name() == "" {
		var shape [MaxDims]int
		for i := range ndim - n {
			shape[i] = 1
		}
		copy(shape[ndim-n:], a.Shape())
		return Constant(a.Reshape(shape[:ndim]...))
	}
	order := make([]int, ndim)
	for i := range order {
		order[i] = i - (ndim - n)
		if order[i] < 0 {
			order[i] = NewAxis
		}
	}
	return DimShuffle(v, order...)
}

// Map applies an element-wise operation to arguments, which are given one number of dimensions.
func Map(op array.Op, args ...*fgraph.Variable) *fgraph.Variable {
	if len(args) == 0 {
		fail(op.String(), "no arguments")
	}
	return Apply(OpFor(op), pad(args)...)
}

// MapOp is Map for an op that may be in-place or a conversion.
func MapOp(op Elemwise, args ...*fgraph.Variable) *fgraph.Variable {
	if len(args) == 0 {
		fail(op.String(), "no arguments")
	}
	return Apply(op, pad(args)...)
}

// Cast returns x with elements of another type; x itself if it has it already.
func Cast(x *fgraph.Variable, to DType) *fgraph.Variable {
	if TypeOf(x).DType() == to {
		return x
	}
	return Apply(Elemwise{Op: array.Cast, To: to}, x)
}
