package tensor

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// An Op is an op on tensors. It is a value: its fields say all about it.
type Op interface {
	fgraph.Op
	// Infer returns the types of the outputs, or an *Error that says what is wrong with the inputs.
	// It reads their types and the values of constants.
	Infer(in []*fgraph.Variable) ([]fgraph.Type, error)
	// Compile returns what computes the apply. It reads what Infer reads. The kernel may be used as
	// long as the apply is part of the graph.
	Compile(a *fgraph.Apply) (Kernel, error)
}

// A Kernel computes the outputs of an apply from its inputs, which have the types of the apply. It
// makes each out[i] an array: a view of an input if the ViewMap or DestroyMap of the op says so,
// otherwise in memory from ws.New(out[i], …), which may have been planned. What else it asks ws for, it
// releases. A Kernel has no state: several goroutines may call it, each with its
// own workspace.
type Kernel func(ws *array.Workspace, in, out []*array.Array) error

// A Viewing op makes a view of its first input, and knows how that lies in memory.
type Viewing interface {
	// LayOut makes v the output for a first input x, neither of which has memory. It reports false if
	// the output is no view because of the strides of x. The sizes of the output are known.
	LayOut(a *fgraph.Apply, x, v *array.Array) bool
}

// A Copying op is a Viewing one that copies its first input where there is no view. CompileCopy returns a kernel
// that always copies. Where it is known that there is no view, it is used, and the ViewMap of the op is not.
type Copying interface {
	CompileCopy(a *fgraph.Apply) (Kernel, error)
}

// A Preparing op makes something else of constant inputs in the first call of its kernel.
type Preparing interface {
	// Prepares reports whether later calls read no elements of a constant input.
	Prepares(a *fgraph.Apply, input int) bool
}

// A ShapeInferer knows the shapes of the outputs without computing them.
type ShapeInferer interface {
	// InferShape returns the sizes of each output as int64 scalars. If an entry or the whole list
	// is nil, the sizes can be known only from the output.
	InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable
}

// A Differentiable op has a gradient.
type Differentiable interface {
	// Grad returns the gradients with respect to the inputs, given those with respect to the
	// outputs. The gradient of an output is nil if the cost does not depend on it. The gradient of
	// an input is nil if the outputs do not depend on it in a differentiable way, as on an index.
	Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable
}

// An Overwriter is an op that has a form that writes over an input and computes the same. A pass that
// works in place puts that form in its place where nothing else needs the input.
type Overwriter interface {
	Op
	// Overwriting returns that form, which is an fgraph.Destroyer.
	Overwriting() Op
}

// A Foldable op has a say in constant folding.
type Foldable interface {
	// Fold reports whether to compute the apply if its inputs are constants.
	Fold(a *fgraph.Apply) bool
}

// A Commutative op may have inputs whose order does not matter. Patterns match them in any order.
type Commutative interface {
	Commutes() bool
}

// A Fusible op is element-wise: each element of its only output is computed from the elements of
// its inputs in the same place, where sizes of 1 are broadcast. It says how, so that it can become
// a part of a larger op that goes through memory once. Its shape is known by that, too.
type Fusible interface {
	Op
	// AddTo adds to a program what computes the output of the values args, and returns its value.
	AddTo(p *array.Program, args ...int) int
}

// CompileFusible returns what computes an apply of a Fusible op. An output that overwrites an input,
// see [fgraph.Destroyer], does so element by element.
func CompileFusible(op Fusible, a *fgraph.Apply) (Kernel, error) {
	types := make([]array.DType, len(a.Inputs()))
	args := make([]int, len(types))
	for i, v := range a.Inputs() {
		types[i], args[i] = TypeOf(v).DType(), i
	}
	p := array.NewProgram(types...)
	c := NewComposite(p.Return(op.AddTo(p, args...)))
	if d, ok := op.(fgraph.Destroyer); ok {
		c = c.WithInplace(d.DestroyMap()...)
	}
	return c.Compile(a)
}

// Make applies an op and returns the apply, or an error if the inputs do not fit.
func Make(op Op, in ...*fgraph.Variable) (*fgraph.Apply, error) {
	types, err := op.Infer(in)
	if err != nil {
		return nil, err
	}
	return fgraph.NewApply(op, in, types...), nil
}

// MustApply applies an op and returns the first output. It panics with an *Error if the inputs do
// not fit.
func MustApply(op Op, in ...*fgraph.Variable) *fgraph.Variable {
	a, err := Make(op, in...)
	if err != nil {
		panic(err)
	}
	return a.Out()
}

// Scalar returns a float64 input without dimensions.
func Scalar(name string) *fgraph.Variable { return fgraph.NewInput(ScalarType(array.Float64), name) }

// Vector returns a float64 input with one dimension.
func Vector(name string) *fgraph.Variable { return fgraph.NewInput(VectorType(array.Float64), name) }

// Matrix returns a float64 input with two dimensions.
func Matrix(name string) *fgraph.Variable { return fgraph.NewInput(MatrixType(array.Float64), name) }

// Constant returns a constant, whose type knows all sizes. The array must not change any more.
func Constant(a *array.Array) *fgraph.Variable {
	if a.IsCSR() {
		return fgraph.NewConstant(CSRType(a.DType()), a, "")
	}
	return fgraph.NewConstant(NewType(a.DType(), a.Shape()...), a, "")
}

// Float returns a float64 scalar constant.
func Float(v float64) *fgraph.Variable { return Constant(array.Scalar(v)) }

// Int returns an int64 scalar constant.
func Int(v int) *fgraph.Variable { return Constant(array.Scalar(int64(v))) }

// Number returns a constant with the element type and the number of dimensions of like, which all
// have size 1.
func Number(v float64, like *fgraph.Variable) *fgraph.Variable {
	t := TypeOf(like)
	return constantOnes(array.Full(t.DType(), v), t.NDim())
}

// constantOnes returns a constant of one element with ndim dimensions.
func constantOnes(a *array.Array, ndim int) *fgraph.Variable {
	var shape [array.MaxDims]int
	for i := range shape {
		shape[i] = 1
	}
	return Constant(a.Reshape(shape[:ndim]...))
}

// ConstantOf returns the value of a constant, or nil for any other variable.
func ConstantOf(v *fgraph.Variable) *array.Array {
	if !v.IsConstant() {
		return nil
	}
	a, _ := v.Data().(*array.Array)
	return a
}

// constantInt returns the value of an integer constant of one element.
func constantInt(v *fgraph.Variable) (int, bool) {
	// A uint64 from 2^63 on would become negative.
	if a := ConstantOf(v); a != nil && a.Len() == 1 && !a.DType().IsFloat() && (a.DType() != array.Uint64 || a.Int(0) >= 0) {
		return int(a.Int(0)), true
	}
	return 0, false
}

// OpOf returns the op that computes a variable, or nil for inputs and constants.
func OpOf(v *fgraph.Variable) fgraph.Op {
	if a := v.Owner(); a != nil {
		return a.Op()
	}
	return nil
}

// Repeats reports whether kernels of an op set Workspace.Again, and make all that is not in place by Workspace.New.
func Repeats(op fgraph.Op) bool {
	switch o := op.(type) {
	case Elemwise, *CompositeOp, Dot22Op:
		return true
	case *EpilogueOp:
		_, ok := o.base.(Dot22Op)
		return ok
	}
	return false
}

// A Nesting op runs a graph of its own, as Theano's Scan does.
type Nesting interface {
	Op
	// Body returns the graph, which must not be changed.
	Body() *fgraph.FunctionGraph
	// CompileBody is Compile for a caller who has compiled the body. A runner that newRunner returns
	// computes the outputs of the body, which are valid until its next run, for one goroutine at a time.
	CompileBody(a *fgraph.Apply, newRunner func() BodyRunner) (Kernel, error)
}

// A BodyRunner computes the outputs of a graph for values of its inputs, with the context and the threads of the
// workspace of the op.
type BodyRunner interface {
	// Run returns the outputs, which have no memory in common with the arguments.
	Run(ws *array.Workspace, args ...*array.Array) ([]*array.Array, error)
	// Again is Run for the arguments of the last one: the headers are the same, but elements may be others.
	Again(ws *array.Workspace) ([]*array.Array, error)
}

// NewGraph is [fgraph.NewCopy]: a graph of copies of what the outputs are computed from, so that the
// expressions can be used again.
func NewGraph(inputs, outputs []*fgraph.Variable, features ...fgraph.Feature) (*fgraph.FunctionGraph, error) {
	return fgraph.NewCopy(inputs, outputs, features...)
}

// InputsOf is [fgraph.InputsOf].
func InputsOf(outputs ...*fgraph.Variable) []*fgraph.Variable { return fgraph.InputsOf(outputs...) }

// Errors of this package wrap one of these.
var (
	ErrType     = errors.New("types do not fit")  // an op is not defined for the types of its arguments
	ErrShape    = errors.New("shapes do not fit") // sizes that are known only at run time do not fit
	ErrAssert   = errors.New("assertion failed")  // the condition of an Assert is false
	ErrGradient = errors.New("no gradient")       // there is no gradient
)

// An Error says what is wrong with the arguments of an op. Functions that build expressions panic
// with one, since the mistake is in the program; [Try] turns the panic into an error.
type Error struct {
	Op   string
	Arg  int // the argument, from 0; -1 if it is none in particular
	Text string
}

// Error counts arguments from 1.
func (e *Error) Error() string {
	if e.Arg >= 0 {
		return fmt.Sprintf("%s: argument %d: %s", e.Op, e.Arg+1, e.Text)
	}
	return fmt.Sprintf("%s: %s", e.Op, e.Text)
}

// Is reports whether target is ErrType.
func (e *Error) Is(target error) bool { return target == ErrType }

// fail panics with an *Error.
func fail(op, format string, args ...any) {
	panic(&Error{Op: op, Arg: -1, Text: fmt.Sprintf(format, args...)})
}

// opError returns an *Error about an op.
func opError(op fgraph.Op, format string, args ...any) *Error {
	return argError(op, -1, format, args...)
}

// argError returns an *Error about an argument.
func argError(op fgraph.Op, arg int, format string, args ...any) *Error {
	return &Error{Op: op.String(), Arg: arg, Text: fmt.Sprintf(format, args...)}
}

// Try calls a function that builds an expression, and returns the *Error that it panics with. It
// passes other panics on.
func Try(f func() *fgraph.Variable) (v *fgraph.Variable, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*Error)
			if !ok {
				panic(p)
			}
			v, err = nil, e
		}
	}()
	return f(), nil
}
