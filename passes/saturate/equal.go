package saturate

import (
	"context"
	"errors"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/rewrite"
)

// ErrCollapsed means that rules made two inputs, or an input and a constant, equal. Rules that are
// right for most values do that where they meet one for which they are not, such as x/0; after that
// everything is equal.
var ErrCollapsed = errors.New("saturate: the rules make inputs equal")

// Equal asks which outputs of a graph are equal by the rules: outputs 0 and 1, 2 and 3, and so on.
// It ends when all pairs are, or at the limits of the pass. The graph stays as it is. given are bounds of
// inputs by name, see [Bounder].
func (p *Pass) Equal(ctx context.Context, g *fgraph.FunctionGraph, given map[string][2]float64) ([]bool, error) {
	program := p.program
	if program == nil {
		var err error
		if program, err = newProgram(p.Rules); err != nil {
			return nil, err
		}
	}
	b := newBridge(program, g, rewrite.NewContext(ctx, g), false)
	b.given = given
	if _, err := b.take(ctx); err != nil {
		return nil, err
	}
	outs := g.Outputs()
	nodes := lists.Map(outs, b.variable)
	same := func(i int) bool {
		x, y := b.g.Class(nodes[i]), b.g.Class(nodes[i+1])
		return x == y || given != nil && b.bounds[x].alike(b.bounds[y])
	}
	o := p.options(len(b.sources))
	o.Done = func(*egraph.Graph) bool {
		for i := 0; i+1 < len(nodes); i += 2 {
			if !same(i) {
				return false
			}
		}
		return true
	}
	if _, err := b.g.Saturate(ctx, program.rules, o); err != nil {
		return nil, err
	}
	if b.collapsed() {
		return nil, ErrCollapsed
	}
	equal := make([]bool, len(outs)/2)
	for i := range equal {
		equal[i] = same(2 * i)
	}
	return equal, nil
}

// collapsed reports whether variables that nothing computes, other than equal constants, have become
// equal.
func (b *bridge) collapsed() bool {
	leaves := make(map[egraph.Class]egraph.Node)
	for n, s := range b.sources {
		if s.apply != nil || s.out == nil || s.out.Owner() != nil {
			continue
		}
		c := b.g.Class(egraph.Node(n))
		if m, twice := leaves[c]; twice && (!s.out.IsConstant() || !b.sources[m].out.IsConstant() || !b.sameNumber(s.out, b.sources[m].out)) {
			return true
		}
		leaves[c] = egraph.Node(n)
	}
	return false
}

// sameNumber reports whether constants are known to be one number, of whatever shape.
func (b *bridge) sameNumber(v, w *fgraph.Variable) bool {
	if b.p.numberer == nil {
		return false
	}
	x, ok := b.p.numberer.Number(v)
	y, too := b.p.numberer.Number(w)
	return ok && too && (x == y || x != x && y != y)
}
