package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The element-wise functions broadcast their arguments, and panic with an *Error if these do not
// fit. Map applies the operations that have no function here.

// Add returns the sum of its arguments.
func Add(xs ...*fgraph.Variable) *fgraph.Variable { return Map(array.Add, xs...) }

// Mul returns the product of its arguments.
func Mul(xs ...*fgraph.Variable) *fgraph.Variable { return Map(array.Mul, xs...) }

// Sub returns x - y.
func Sub(x, y *fgraph.Variable) *fgraph.Variable { return Map(array.Sub, x, y) }

// TrueDiv returns x/y as a float.
func TrueDiv(x, y *fgraph.Variable) *fgraph.Variable { return Map(array.TrueDiv, x, y) }

// Pow returns x to the power of y.
func Pow(x, y *fgraph.Variable) *fgraph.Variable { return Map(array.Pow, x, y) }

// Maximum returns the larger of x and y.
func Maximum(x, y *fgraph.Variable) *fgraph.Variable { return Map(array.Maximum, x, y) }

// Minimum returns the smaller of x and y.
func Minimum(x, y *fgraph.Variable) *fgraph.Variable { return Map(array.Minimum, x, y) }

// Neg returns -x.
func Neg(x *fgraph.Variable) *fgraph.Variable { return Map(array.Neg, x) }

// Abs returns |x|.
func Abs(x *fgraph.Variable) *fgraph.Variable { return Map(array.Abs, x) }

// Sqr returns x².
func Sqr(x *fgraph.Variable) *fgraph.Variable { return Map(array.Sqr, x) }

// Sqrt returns the square root of x.
func Sqrt(x *fgraph.Variable) *fgraph.Variable { return Map(array.Sqrt, x) }

// Exp returns e to the power of x.
func Exp(x *fgraph.Variable) *fgraph.Variable { return Map(array.Exp, x) }

// Log returns the natural logarithm of x.
func Log(x *fgraph.Variable) *fgraph.Variable { return Map(array.Log, x) }

// Sigmoid returns 1/(1 + exp(-x)).
func Sigmoid(x *fgraph.Variable) *fgraph.Variable { return Map(array.Sigmoid, x) }

// Softplus returns log(1 + exp(x)).
func Softplus(x *fgraph.Variable) *fgraph.Variable { return Map(array.Softplus, x) }

// Tanh returns the hyperbolic tangent of x.
func Tanh(x *fgraph.Variable) *fgraph.Variable { return Map(array.Tanh, x) }

// Sin returns the sine of x.
func Sin(x *fgraph.Variable) *fgraph.Variable { return Map(array.Sin, x) }

// Cos returns the cosine of x.
func Cos(x *fgraph.Variable) *fgraph.Variable { return Map(array.Cos, x) }

// Switch returns a where cond, and b elsewhere.
func Switch(cond, a, b *fgraph.Variable) *fgraph.Variable { return Map(array.Switch, cond, a, b) }

// Second returns value, broadcast to the shape of model.
func Second(model, value *fgraph.Variable) *fgraph.Variable { return Map(array.Second, model, value) }

// ZerosLike returns zeros of the shape and type of x.
func ZerosLike(x *fgraph.Variable) *fgraph.Variable { return FillLike(x, 0) }

// FillLike returns a tensor of the shape and type of x with all elements v. It is a constant if x
// has one element.
func FillLike(x *fgraph.Variable, v float64) *fgraph.Variable {
	c := Number(v, x)
	if TypeOf(x).NDim() == 0 {
		return c
	}
	return Second(x, c) // also for a single element, for Grad has to see that it is of x
}
