package tensortest

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Graph is an expression of some size, on which the speed of optimization is measured.
type Graph struct {
	Inputs, Outputs []*variable
}

// iterated returns the graph of x = f(x, i) for i from 0 to n-1.
func iterated(n int, x *variable, f func(x *variable, i int) *variable) Graph {
	out := x
	for i := range n {
		out = f(out, i)
	}
	return Graph{[]*variable{x}, []*variable{out}}
}

// DeepSmall is x = sin(xᵀ) + cos(x), n times: n small parts that can be fused, with transpositions
// between them.
func DeepSmall(n int) Graph {
	return iterated(n, tensor.Matrix("x"), func(x *variable, _ int) *variable {
		return tensor.Add(tensor.Sin(tensor.Transpose(x)), tensor.Cos(x))
	})
}

// LargeFuse is the gradient of the logarithm of a density with n terms, with respect to its
// deviation and its means.
func LargeFuse(n int) Graph {
	sd, means := tensor.Scalar("sd"), tensor.Vector("means")
	ones := tensor.Constant(array.Full(array.Float64, 1, 10))
	var terms []*variable
	for i := range n {
		precision := tensor.Pow(sd, tensor.Int(-2))
		d := tensor.Pow(tensor.Sub(ones, tensor.Subtensor(means, tensor.At(tensor.Int(i)))), tensor.Int(2))
		square := tensor.Mul(tensor.Mul(tensor.Float(-0.5), precision), d)
		scale := tensor.Mul(tensor.Float(0.5), tensor.Log(tensor.TrueDiv(tensor.Mul(tensor.Float(0.5), tensor.Pow(sd, tensor.Int(-2))), tensor.Float(math.Pi))))
		terms = append(terms, tensor.Sum(tensor.Add(square, scale)))
	}
	cost := tensor.Add(terms...)
	return Graph{[]*variable{sd, means}, append(gradients(cost, sd), gradients(cost, means)...)}
}

// gradients is tensor.Grad for a cost that has gradients.
func gradients(cost *variable, wrt ...*variable) []*variable {
	g, err := tensor.Grad(cost, wrt...)
	if err != nil {
		panic(err)
	}
	return g
}

// MLP is a network of layers tanh(dot(h, W) + b), with the sum of the squares of its output and the
// gradients of that sum. It computes them one by one, so that the graph grows with the square of
// the number of layers.
func MLP(layers int) Graph { return mlp(layers, false) }

// MLPTogether is MLP with all gradients computed at once.
func MLPTogether(layers int) Graph { return mlp(layers, true) }

func mlp(layers int, together bool) Graph {
	x := tensor.Matrix("x")
	inputs, h := []*variable{x}, x
	for i := range layers {
		w, b := tensor.Matrix(fmt.Sprintf("W%d", i)), tensor.Vector(fmt.Sprintf("b%d", i))
		inputs = append(inputs, w, b)
		h = tensor.Tanh(tensor.Add(tensor.Dot(h, w), b))
	}
	cost := tensor.Sum(tensor.Sqr(h))
	var grads []*variable
	if together {
		grads = gradients(cost, inputs[1:]...)
	} else {
		for _, v := range inputs[1:] {
			grads = append(grads, gradients(cost, v)...)
		}
	}
	return Graph{inputs, append([]*variable{cost}, grads...)}
}

// AddChain is x + 0 + 1 + 2 + … with n constants.
func AddChain(n int) Graph {
	return iterated(n, tensor.Vector("x"), func(x *variable, i int) *variable { return tensor.Add(x, tensor.Int(i)) })
}

// ExpLog is x = log(1 + exp(x)), n times.
func ExpLog(n int) Graph {
	return iterated(n, tensor.Vector("x"), func(x *variable, _ int) *variable {
		return tensor.Log(tensor.Add(tensor.Int(1), tensor.Exp(x)))
	})
}

// Dupes is the sum of n products of a number and exp(x*y + sin(x)), each with a copy of its own.
func Dupes(n int) Graph {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	var terms []*variable
	for i := range n {
		terms = append(terms, tensor.Mul(tensor.Exp(tensor.Add(tensor.Mul(x, y), tensor.Sin(x))), tensor.Int(i)))
	}
	return Graph{[]*variable{x, y}, []*variable{tensor.Add(terms...)}}
}

// Diamond is x = sin(x) + cos(x), n times: every value is used twice.
func Diamond(n int) Graph {
	return iterated(n, tensor.Vector("x"), func(x *variable, _ int) *variable {
		return tensor.Add(tensor.Sin(x), tensor.Cos(x))
	})
}

// InplaceChain is x = exp(x + y), n times, with the sum of every value as an output.
func InplaceChain(n int) Graph {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	out := x
	var sums []*variable
	for range n {
		out = tensor.Exp(tensor.Add(out, y))
		sums = append(sums, tensor.Sum(out))
	}
	return Graph{[]*variable{x, y}, append(sums, out)}
}
