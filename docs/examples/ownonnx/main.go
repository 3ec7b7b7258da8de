// Ownonnx is the program nnopt with an operator of another domain: com.example.Swish, which models
// use and nnopt does not know. Its types, how it is computed, and rules for it are all that it takes
// for every verb to work on such models.
package main

import (
	_ "embed"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/models"
	"github.com/nnopt/nnopt/tool/standard"
)

func main() { program().Main() }

const domain, name = "com.example", "com.example.Swish"

// operators are ONNX's and Swish: x*sigmoid(beta*x), element by element.
var operators = ir.Standard().With(ir.Operator{
	Domain: domain, Type: "Swish", MinInputs: 1, MaxInputs: 1,
	Infer: func(c *ir.Call) {
		if t := c.In(0); t.IsTensor() && t.Elem() != onnx.Float && t.Elem() != onnx.Double {
			c.Fail("elements of type %v; cast to float", t.Elem())
		}
		c.Set(0, c.In(0))
	},
})

// swish computes a node as tensors.
func swish(op *ir.Op, in []*fgraph.Variable) ([]*fgraph.Variable, error) {
	x, scaled := in[0], in[0]
	if beta := op.Float("beta", 1); beta != 1 {
		scaled = tensor.Mul(tensor.Number(float64(beta), x), x)
	}
	return []*fgraph.Variable{tensor.Mul(x, tensor.Map(array.Sigmoid, scaled))}, nil
}

//go:embed own.rules
var rules string

// database is the standard one with the rules.
func database() (*optdb.SequenceDB, error) {
	db := passes.Default()
	list, err := pattern.ParseRules("own.rules", rules)
	if err == nil {
		err = optdb.AddRules(db, onnxpass.Vocabulary(operators), list)
	}
	return db, err
}

func program() standard.Program {
	return standard.Program{
		Name: "ownonnx", Database: database,
		Models: models.Options{Operators: operators, Lower: map[string]lower.Operator{name: swish}},
	}
}
