package onnxpass

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

func replaceEinsumWithMatMul(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	op := a.Op().(*ir.Op)
	if op.Type != "Einsum" || op.Domain != "" || op.Legacy != 0 {
		return c.Miss("it is no Einsum"), nil
	}
	terms, out, ok := parseEquation(op.Text("equation", ""), len(a.Inputs()))
	if !ok {
		return c.Miss("its equation is not one of letters that are once in each term"), nil
	}
	for i, v := range a.Inputs() {
		if r := ir.TypeOf(v).Rank(); r >= 0 && r != len(terms[i]) {
			return c.Miss("input %d has %d dimensions", i, r), nil
		}
	}
	y, err := ir.SourceOf(c.Graph()).Operators.Build(func(b *ir.Builder) *fgraph.Variable {
		e := einsum{b, a.Inputs(), terms, out}
		switch len(terms) {
		case 1:
			return e.unary()
		case 2:
			return e.binary()
		}
		return nil
	})
	if err != nil {
		return rewrite.Result{}, err
	}
	if y == nil {
		return c.Miss("it takes more than one node"), nil
	}
	return rewrite.Replace(conform(a.Out(), y)), nil
}

// parseEquation returns the letters of the terms and of the result. ok is false if a letter is twice in
// one of them, there is an ellipsis, or a letter of the result is in no term.
func parseEquation(text string, n int) (terms []string, out string, ok bool) {
	terms, out = ir.Equation(text)
	left := strings.Join(terms, ",")
	if len(terms) != n || strings.Contains(left+out, ".") {
		return nil, "", false
	}
	for _, t := range append(slices.Clone(terms), out) {
		for _, r := range t {
			if strings.Count(t, string(r)) != 1 || !strings.ContainsRune(left, r) || r < 'A' || r > 'z' {
				return nil, "", false
			}
		}
	}
	return terms, out, true
}

// An einsum is the parts of an Einsum.
type einsum struct {
	*ir.Builder
	inputs []*fgraph.Variable
	terms  []string
	out    string
}

// unary returns the Transpose or the sum that an Einsum of one tensor is.
func (e einsum) unary() *fgraph.Variable {
	term := e.terms[0]
	if len(e.out) == len(term) {
		return e.transposed(0, e.out)
	}
	kept, axes := "", []int64(nil)
	for i, r := range term {
		if strings.ContainsRune(e.out, r) {
			kept += string(r)
		} else {
			axes = append(axes, int64(i))
		}
	}
	// A sum and a Transpose would be two nodes.
	if kept != e.out {
		return nil
	}
	return e.Do("ReduceSum", e.inputs[0], axes, ir.Int("keepdims", 0))
}

// transposed returns an input with its letters in another order, and itself if they are in order.
func (e einsum) transposed(k int, letters string) *fgraph.Variable {
	if letters == e.terms[k] {
		return e.inputs[k]
	}
	perm := lists.Map([]rune(letters), func(r rune) int64 { return int64(strings.IndexRune(e.terms[k], r)) })
	return e.Do("Transpose", e.inputs[k], ir.Ints("perm", perm...))
}

// binary returns the MatMul that an Einsum of two tensors is: letters in both that are in the result are
// those of a batch and come first in all, one in both that is not in the result is summed over, and each
// has one of its own, that of the first in front. The product is also looked at with the tensors swapped.
// Constants are transposed, and others only where nothing else is left to be done.
func (e einsum) binary() *fgraph.Variable {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		x, y := order[0], order[1]
		batch, sum, left, right := e.roles(x, y)
		// In a batch there are no vectors: each matrix needs a row or a column of its own.
		if len(sum) != 1 || len(left) > 1 || len(right) > 1 || e.out != batch+left+right || len(batch) > 0 && (left == "" || right == "") {
			continue
		}
		if !e.constantOrInOrder(x, batch+left+sum) || !e.constantOrInOrder(y, batch+sum+right) || !e.sized(batch+sum) {
			continue
		}
		return e.Do("MatMul", e.transposed(x, batch+left+sum), e.transposed(y, batch+sum+right))
	}
	return nil
}

// roles divides the letters of two terms.
func (e einsum) roles(x, y int) (batch, sum, left, right string) {
	for _, r := range e.terms[x] {
		switch shared, kept := strings.ContainsRune(e.terms[y], r), strings.ContainsRune(e.out, r); {
		case shared && kept:
			batch += string(r)
		case shared:
			sum += string(r)
		default:
			left += string(r)
		}
	}
	for _, r := range e.terms[y] {
		if !strings.ContainsRune(e.terms[x], r) {
			right += string(r)
		}
	}
	if strings.IndexFunc(left+right, func(r rune) bool { return !strings.ContainsRune(e.out, r) }) >= 0 {
		sum += "  " // a letter that one term alone is summed over
	}
	return batch, sum, left, right
}

func (e einsum) constantOrInOrder(k int, letters string) bool {
	return e.terms[k] == letters || isConstant(e.inputs[k]) && len(letters) == len(e.terms[k])
}

// sized reports whether the sizes of letters are known to be the same in both terms: an Einsum
// broadcasts sizes of 1, and the dimension that a MatMul sums over it does not.
func (e einsum) sized(letters string) bool {
	for _, r := range letters {
		i, j := strings.IndexRune(e.terms[0], r), strings.IndexRune(e.terms[1], r)
		p, ranked := ir.TypeOf(e.inputs[0]).Shape()
		q, too := ir.TypeOf(e.inputs[1]).Shape()
		if !ranked || !too || !p[i].Same(q[j]) {
			return false
		}
	}
	return true
}
