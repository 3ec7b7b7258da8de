package tensortest

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

type vari = fgraph.Variable

// A Graph is an expression of some size that the speed of optimization is measured on.
type Graph struct {
	Inputs, Outputs []*vari
}

// DeepSmall is n times x = sin(xᵀ) + cos(x): n small parts that can be fused, with a transposition between each and the next.
func DeepSmall(n int) Graph {
	x := tensor.Matrix("x")
	out := x
	for range n {
		out = tensor.Add(tensor.Sin(tensor.Transpose(out)), tensor.Cos(out))
	}
	return Graph{[]*vari{x}, []*vari{out}}
}

// LargeFuse is the gradient of a logarithm of a density of n terms with respect to its deviation and its means.
func LargeFuse(n int) Graph {
	sd, means := tensor.Scalar("sd"), tensor.Vector("means")
	ones := tensor.Constant(array.Full(array.Float64, 1, 10))
	var terms []*vari
	for i := range n {
		precision := tensor.Pow(sd, tensor.Int(-2))
		d := tensor.Pow(tensor.Sub(ones, tensor.Subtensor(means, tensor.At(tensor.Int(i)))), tensor.Int(2))
		square := tensor.Mul(tensor.Mul(tensor.Float(-0.5), precision), d)
		scale := tensor.Mul(tensor.Float(0.5), tensor.Log(tensor.TrueDiv(tensor.Mul(tensor.Float(0.5), tensor.Pow(sd, tensor.Int(-2))), tensor.Float(math.Pi))))
		terms = append(terms, tensor.Sum(tensor.Add(square, scale)))
	}
	cost := tensor.Add(terms...)
	return Graph{[]*vari{sd, means}, []*vari{gradient(cost, sd), gradient(cost, means)}}
}

func gradient(cost, wrt *vari) *vari {
	g, err := tensor.Grad(cost, wrt)
	if err != nil {
		panic(err)
	}
	return g[0]
}

// MLP is a network of layers tanh(dot(h, W) + b), with the sum of the squares of its output and the gradients of that. These are asked for
// one by one, so that the graph grows with the square of the number of layers.
func MLP(layers int) Graph { return mlp(layers, false) }

// MLPTogether is MLP with all gradients asked for at once.
func MLPTogether(layers int) Graph { return mlp(layers, true) }

func mlp(layers int, together bool) Graph {
	x := tensor.Matrix("x")
	inputs, h := []*vari{x}, x
	for i := range layers {
		w, b := tensor.Matrix(fmt.Sprintf("W%d", i)), tensor.Vector(fmt.Sprintf("b%d", i))
		inputs = append(inputs, w, b)
		h = tensor.Tanh(tensor.Add(tensor.Dot(h, w), b))
	}
	cost := tensor.Sum(tensor.Sqr(h))
	var grads []*vari
	if together {
		var err error
		if grads, err = tensor.Grad(cost, inputs[1:]...); err != nil {
			panic(err)
		}
	} else {
		for _, v := range inputs[1:] {
			grads = append(grads, gradient(cost, v))
		}
	}
	return Graph{inputs, append([]*vari{cost}, grads...)}
}

// AddChain is x + 0 + 1 + 2 + … with n constants.
func AddChain(n int) Graph {
	x := tensor.Vector("x")
	out := x
	for i := range n {
		out = tensor.Add(out, tensor.Int(i))
	}
	return Graph{[]*vari{x}, []*vari{out}}
}

// ExpLog is log(1 + exp(x)), n times one in another.
func ExpLog(n int) Graph {
	x := tensor.Vector("x")
	out := x
	for range n {
		out = tensor.Log(tensor.Add(tensor.Int(1), tensor.Exp(out)))
	}
	return Graph{[]*vari{x}, []*vari{out}}
}

// Dupes is the sum of n products of a number with exp(x*y + sin(x)), which is written down anew for every one.
func Dupes(n int) Graph {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	var terms []*vari
	for i := range n {
		terms = append(terms, tensor.Mul(tensor.Exp(tensor.Add(tensor.Mul(x, y), tensor.Sin(x))), tensor.Int(i)))
	}
	return Graph{[]*vari{x, y}, []*vari{tensor.Add(terms...)}}
}

// Diamond is x = sin(x) + cos(x), n times: every value is used twice.
func Diamond(n int) Graph {
	x := tensor.Vector("x")
	out := x
	for range n {
		out = tensor.Add(tensor.Sin(out), tensor.Cos(out))
	}
	return Graph{[]*vari{x}, []*vari{out}}
}

// InplaceChain is x = exp(x + y), n times, with the sum of every value as an output.
func InplaceChain(n int) Graph {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	out := x
	var sums []*vari
	for range n {
		out = tensor.Exp(tensor.Add(out, y))
		sums = append(sums, tensor.Sum(out))
	}
	return Graph{[]*vari{x, y}, append(sums, out)}
}
