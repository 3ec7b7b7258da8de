package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// An Op is an op on tensors. Ops are values: what they are made with is all they know.
type Op interface {
	fgraph.Op
	// Infer returns the types of the outputs for the given inputs, or an *Error that says what is wrong with them. It looks at the
	// types and at the values of constants.
	Infer(in []*fgraph.Variable) ([]fgraph.Type, error)
	// Compile returns what computes the apply. It looks at types and constants as Infer does, and may be kept as long as the apply is
	// part of the graph.
	Compile(a *fgraph.Apply) (Kernel, error)
}

// A Kernel computes the outputs of an apply from its inputs, which have the types of the apply. It makes each out[i] an array: a view
// of an input where the op says so through ViewMap or DestroyMap, and else in memory that it gets from ws. Kernels have no state: they
// may run in several goroutines with a workspace each.
type Kernel func(ws *array.Workspace, in, out []*array.Array) error

// A ShapeInferer can say which shapes the outputs have without computing them.
type ShapeInferer interface {
	// InferShape returns the sizes of each output as integer scalars. A nil entry, or a nil list, means that they are not known
	// without the output.
	InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable
}

// A Differentiable op has a gradient.
type Differentiable interface {
	// Grad returns the gradient with respect to each input, given those with respect to the outputs, of which some may be nil: nothing
	// depends on that output. An entry is nil where the outputs do not depend on the input in a way that has a derivative, such as on an
	// index.
	Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable
}

// Foldable is implemented by ops that constant folding has to ask.
type Foldable interface {
	// Fold reports whether it is worth computing the apply once its inputs are constants.
	Fold(a *fgraph.Apply) bool
}

// Make applies an op and returns the apply, or an error if the inputs do not fit.
func Make(op Op, in ...*fgraph.Variable) (*fgraph.Apply, error) {
	types, err := op.Infer(in)
	if err != nil {
		return nil, err
	}
	return fgraph.NewApply(op, in, types...), nil
}

// Apply applies an op and returns the first output. It panics with an *Error if the inputs do not fit.
func Apply(op Op, in ...*fgraph.Variable) *fgraph.Variable {
	a, err := Make(op, in...)
	if err != nil {
		panic(err)
	}
	return a.Out()
}

// NewInput returns a variable that gets its value from outside.
func NewInput(t Type, name string) *fgraph.Variable { return fgraph.NewInput(t, name) }

// Scalar returns an input without dimensions, of type float64 like those of the functions below.
func Scalar(name string) *fgraph.Variable { return NewInput(ScalarType(Float64), name) }

// Vector returns an input with one dimension.
func Vector(name string) *fgraph.Variable { return NewInput(VectorType(Float64), name) }

// Row returns an input that is a matrix of one row, which broadcasts.
func Row(name string) *fgraph.Variable { return NewInput(NewType(Float64, 1, Unknown), name) }

// Col returns an input that is a matrix of one column, which broadcasts.
func Col(name string) *fgraph.Variable { return NewInput(NewType(Float64, Unknown, 1), name) }

// Matrix returns an input with two dimensions.
func Matrix(name string) *fgraph.Variable { return NewInput(MatrixType(Float64), name) }

// Tensor3 returns an input with three dimensions.
func Tensor3(name string) *fgraph.Variable {
	return NewInput(NewType(Float64, Unknown, Unknown, Unknown), name)
}

// Constant returns a constant with the shape of the array, which must not change any more.
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

// Number returns a constant of the type of elements of like, and with as many dimensions, all of size 1.
func Number(v float64, like *fgraph.Variable) *fgraph.Variable {
	t := TypeOf(like)
	return constantOnes(array.Full(t.DType(), v), t.NDim())
}

// constantOnes returns a constant of one element with a number of dimensions, all of size 1.
func constantOnes(a *array.Array, ndim int) *fgraph.Variable {
	var shape [MaxDims]int
	for i := range shape {
		shape[i] = 1
	}
	return Constant(a.Reshape(shape[:ndim]...))
}

// ConstantOf returns the value of a constant, nil for any other variable.
func ConstantOf(v *fgraph.Variable) *array.Array {
	if !v.IsConstant() {
		return nil
	}
	a, _ := v.Data().(*array.Array)
	return a
}

// constantInt returns the value of an integer constant of one element.
func constantInt(v *fgraph.Variable) (int, bool) {
	if a := ConstantOf(v); a != nil && a.Len() == 1 && !a.DType().IsFloat() {
		return int(a.Int(0)), true
	}
	return 0, false
}

// OpOf returns the op that computes a variable, nil for inputs and constants.
func OpOf(v *fgraph.Variable) fgraph.Op {
	if a := v.Owner(); a != nil {
		return a.Op()
	}
	return nil
}
