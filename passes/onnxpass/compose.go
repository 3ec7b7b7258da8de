package onnxpass

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// composeFunctions recognize the parts of an operator.
var composeFunctions = []pattern.Function{
	pattern.NewGuard("private(x)", 0, "whatever is computed of x for the result is used for it alone", private),
	opsetGuard(7), opsetGuard(13),
	pattern.NewGuard("hard_swish({a})", 1, "a HardSigmoid has the line of HardSwish", func(a pattern.Args) bool {
		op := parse(a.Params[0])
		return near(float64(op.Float("alpha", 0.2)), 1./6) && near(float64(op.Float("beta", 0.5)), 0.5)
	}),
	pattern.NewGuard("erf_of(t, x)", 0, "t is x/√2", func(a pattern.Args) bool {
		return isPolynomial(a.Vars[0], a.Vars[1], polynomial{0, math.Sqrt2 / 2})
	}),
	pattern.NewGuard("tanh_of(t, x)", 0, "t is (x + 0.044715x³)√(2/π)", func(a pattern.Args) bool {
		k := math.Sqrt(2 / math.Pi)
		return isPolynomial(a.Vars[0], a.Vars[1], polynomial{0, k, 0, 0.044715 * k})
	}),
	pattern.NewGuard("exponential(x)", 2, "x is an Exp", func(a pattern.Args) bool { return isOp(a.Vars[0], "Exp") }),
}

// opsetGuard returns the guard opset_N.
func opsetGuard(n int64) pattern.Function {
	return pattern.NewGuard(fmt.Sprintf("opset_%d(x)", n), 1, fmt.Sprintf("the model that x is from has version %d of the operators of ONNX, or a newer one", n), func(a pattern.Args) bool {
		return a.Context != nil && ir.SourceOf(a.Context.Graph()).Opset("") >= n
	})
}

// maxParts bounds the nodes that are parts of one.
const maxParts = 32

// private reports whether all values between some and the root have no uses elsewhere.
func private(a pattern.Args) bool {
	parts := map[*fgraph.Apply]bool{a.Root: true}
	queue := []*fgraph.Apply{a.Root}
	for i := 0; i < len(queue); i++ {
		for _, v := range queue[i].Inputs() {
			if slices.Contains(a.Vars, v) || v.IsConstant() {
				continue
			}
			b := v.Owner()
			if b == nil || len(queue) > maxParts {
				return false
			}
			if !parts[b] {
				parts[b] = true
				queue = append(queue, b)
			}
		}
	}
	// The first is the root, whose result may be read by anybody.
	for _, b := range queue[1:] {
		for _, v := range b.Outputs() {
			for _, c := range v.Clients() {
				if c.Apply == nil || !parts[c.Apply] {
					return false
				}
			}
		}
	}
	return true
}

// decompose replaces nodes by what they are made of.
func decompose(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	op := a.Op().(*ir.Op)
	if o := op.Operator(); o == nil || o.Body == nil {
		return c.Miss("it is made of no others"), nil
	}
	outputs, _, err := ir.SourceOf(c.Graph()).Operators.Expand(op, a.Inputs())
	if err != nil {
		return c.Miss("%v", err), nil
	}
	for i, v := range a.Outputs() {
		switch {
		case i >= len(outputs):
			outputs = append(outputs, nil)
		case outputs[i] != nil:
			outputs[i] = conform(v, outputs[i])
		}
		if outputs[i] == nil && len(v.Clients()) > 0 {
			return c.Miss("result %d has no meaning", i), nil
		}
	}
	return rewrite.Replace(outputs...), nil
}
