// Owntool is the program nnopt with an op, rules and passes of its own. All verbs work on them.
package main

import (
	"context"
	_ "embed"
	"errors"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/standard"
)

func main() { config().Main() }

// A swish is x*sigmoid(x), element by element. There are two ops, which differ in what they print.
type swish string

const Swish, Inplace swish = "Swish", "Swish{inplace}" // the second one overwrites its input

func (op swish) String() string                                     { return string(op) }
func (op swish) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) { return sigmoid.Infer(in) }
func (op swish) Compile(a *fgraph.Apply) (tensor.Kernel, error)     { return tensor.CompileFusible(op, a) }
func (op swish) AddTo(p *array.Program, x ...int) int {
	return p.Append(array.Mul, x[0], p.Append(array.Sigmoid, x[0]))
}
func (op swish) Overwriting() tensor.Op     { return Inplace }
func (op swish) DestroyMap() []fgraph.Alias { return make([]fgraph.Alias, len(op)/len(Inplace)) } // output 0 over input 0

// Grad returns the gradient, s + x*s*(1 - s) for the sigmoid s.
func (op swish) Grad(a *fgraph.Apply, g []*fgraph.Variable) []*fgraph.Variable {
	x := a.Inputs()[0]
	s := tensor.Map(array.Sigmoid, x)
	return []*fgraph.Variable{tensor.Mul(g[0], tensor.Add(s, tensor.Mul(x, s, tensor.Sub(tensor.Number(1, s), s))))}
}

var sigmoid, neg = tensor.OpFor(array.Sigmoid), tensor.OpFor(array.Neg)

// client returns the apply of an op to x, if there is one.
func client(x *fgraph.Variable, op fgraph.Op) *fgraph.Apply {
	for _, c := range x.Clients() {
		if c.Apply != nil && fgraph.OpsEqual(c.Apply.Op(), op) {
			return c.Apply
		}
	}
	return nil
}

// localUnswish looks at clients, which patterns don't.
var localUnswish = rewrite.Rule{
	Name: "local_unswish", Doc: "a Swish whose sigmoid is computed anyway is a product: Swish(x) → x*sigmoid(x)", On: []rewrite.Track{rewrite.TrackOp(Swish)},
	Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		if s := client(a.Inputs()[0], sigmoid); s != nil {
			return rewrite.Replace(tensor.Mul(a.Inputs()[0], s.Out())), nil
		}
		return c.Miss("nothing else computes sigmoid(%s)", a.Inputs()[0]), nil
	},
}

// shareSwish goes over the whole graph.
func shareSwish(_ context.Context, h *rewrite.Handle) (err error) {
	for a := range h.Graph().Ordered() {
		if a.Op() == Swish && fgraph.OpsEqual(tensor.OpOf(a.Inputs()[0]), neg) && err == nil {
			x := a.Inputs()[0].Owner().Inputs()[0]
			if y := client(x, Swish); y != nil {
				_, err = h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: tensor.Sub(y.Out(), x)})
			}
		}
	}
	return err
}

//go:embed own.rules
var ownRules string

// config adds the ops to the language, and rules and passes to the database.
func config() standard.Program {
	language := expr.Default().Must(expr.Define(Swish, Inplace))
	return standard.Program{Name: "owntool", Language: language, Database: func() (*optdb.SequenceDB, error) {
		db := passes.Default()
		rules, err := pattern.ParseRules("own.rules", ownRules)
		share := rewrite.Global{Name: "share_swish", Doc: "one Swish of a mirror image: Swish(-x) → Swish(x) - x", Fn: shareSwish}
		relu := pattern.Must(nnet3pass.Vocabulary(), "(RectifiedLinearComponent y@(RectifiedLinearComponent x))", "y", pattern.Named("relu_of_relu"))
		return db, errors.Join(err, optdb.AddRules(db, tensorpass.VocabularyOf(language), rules),
			db.Register("unswish", rewrite.In2Out("unswish", localUnswish), 2.4, "fast_run", "swish"),
			db.Register("share_swish", share, 2.5, "fast_run", "swish"), db.Register("relu_of_relu", rewrite.In2Out("relu_of_relu", relu), 1.2, "fast_run"))
	}}
}
