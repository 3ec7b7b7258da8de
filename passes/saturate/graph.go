package saturate

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
)

// imported is what a bridge has taken of a function graph.
type imported struct {
	roots    []*fgraph.Variable // what must be computed: outputs, and what applies read that are not admitted
	admitted int
	cost     float64 // of the applies that are admitted
}

// often is how many steps there may be until cancelling is looked for.
const often = 1 << 10

// take adds the graph to the bridge.
func (b *bridge) take(ctx context.Context) (imported, error) {
	var in imported
	// An op that overwrites an input fixes an order of reads, which classes do not know: another
	// form of a reader could run after it. So such an op is not admitted. It stays as it is, its
	// inputs are roots and its outputs leaves. Where there is one, views are not admitted either,
	// because what they alias may be overwritten.
	views := true
	for a := range b.fg.Applies() {
		if destroys(a.Op()) {
			views = false
			break
		}
	}
	seen := make([]bool, b.fg.NumVariableIDs())
	root := func(v *fgraph.Variable) {
		if !seen[v.ID()] && v.Owner() != nil {
			seen[v.ID()] = true
			in.roots = append(in.roots, v)
		}
	}
	steps := 0
	for a := range b.fg.Ordered() {
		if steps++; steps%often == 0 && ctx.Err() != nil {
			return in, ctx.Err()
		}
		// The inputs of an apply must have nodes. Those that are computed came before.
		for _, v := range a.Inputs() {
			if v.Owner() == nil {
				b.variable(v)
			}
		}
		if destroys(a.Op()) || !views && isView(a.Op()) {
			for _, v := range a.Outputs() {
				b.source(v)
			}
			for _, v := range a.Inputs() {
				root(v)
			}
			continue
		}
		b.apply(a)
		in.admitted++
		in.cost += b.costOf(a)
	}
	for _, v := range b.fg.Outputs() {
		root(v)
	}
	return in, nil
}

func destroys(op fgraph.Op) bool {
	d, ok := op.(fgraph.Destroyer)
	return ok && len(d.DestroyMap()) > 0
}

func isView(op fgraph.Op) bool {
	v, ok := op.(fgraph.Viewer)
	return ok && len(v.ViewMap()) > 0
}

// costOf returns what an apply costs.
func (b *bridge) costOf(a *fgraph.Apply) float64 {
	if b.p.coster == nil {
		return 1
	}
	return b.p.coster.Cost(a)
}

// preference is how much more a node counts that is not in the graph: where costs are equal, the
// graph stays as it is.
const preference = 1e-9

// model returns the cost of nodes for extraction: each says what an apply costs, and those of rules
// count for a multiple. The first nodes are those of the graph.
func (b *bridge) model(first int, each func(*fgraph.Apply) float64, multiple float64) egraph.Cost {
	var known []float64 // by node
	return func(_ *egraph.Graph, n egraph.Node) float64 {
		// Extraction asks for the cost of a node again and again, and a cost may walk over types,
		// so each is computed once. Nodes are numbered as they are added: all before this one are
		// known by then.
		for i := len(known); i <= int(n); i++ {
			c := 0.0
			if a := b.sources[i].apply; a != nil {
				if c = each(a); i >= first {
					c = float64(c*multiple) + float64(preference*(1+c))
				}
			}
			known = append(known, c)
		}
		return known[n]
	}
}

// builder makes variables of what is chosen for classes.
type builder struct {
	b      *bridge
	choice *egraph.Choice
	made   map[egraph.Class]*fgraph.Variable
	tuples map[egraph.Class]*fgraph.Apply // of several outputs
	cost   float64
	order  []egraph.Class // after those of their inputs
	steps  int
	todo   []egraph.Class
	inputs []egraph.Class
}

// build returns what is chosen for a class, and nil if it is cancelled.
func (x *builder) build(ctx context.Context, c egraph.Class) *fgraph.Variable {
	x.todo = append(x.todo[:0], x.b.g.Find(c))
next:
	for len(x.todo) > 0 {
		// An explicit stack takes the place of recursion: chains in a graph can be longer than a
		// stack of Go may grow.
		if x.steps++; x.steps%often == 0 && ctx.Err() != nil {
			return nil
		}
		c := x.todo[len(x.todo)-1]
		n := x.choice.Node(c)
		if !x.has(c) {
			x.inputs = x.b.g.Inputs(n, x.inputs[:0])
			for _, in := range x.inputs {
				if !x.has(in) {
					x.todo = append(x.todo, in)
					continue next
				}
			}
			x.make(c, n)
		}
		x.todo = x.todo[:len(x.todo)-1]
	}
	return x.made[x.b.g.Find(c)]
}

func (x *builder) has(c egraph.Class) bool {
	return x.made[c] != nil || x.tuples[c] != nil
}

// make makes the variable of a class whose inputs have been made. Applies whose inputs stay are not
// made again. Others have the types of those that they represent, because the types of classes
// don't change.
func (x *builder) make(c egraph.Class, n egraph.Node) {
	x.order = append(x.order, c)
	s := x.b.sources[n]
	if s.apply == nil {
		if v := s.out; x.b.g.Arity(n) == 1 { // an output of several
			tuple := x.tuples[x.b.g.Input(n, 0)]
			x.made[c] = tuple.Outputs()[v.Index()]
		} else {
			x.made[c] = v
		}
		return
	}
	a := s.apply
	x.cost += x.b.costOf(a)
	// The apply that the node was made for is used again if its inputs are still chosen as they
	// were. So the parts of the graph that saturation leaves alone keep their applies, and the
	// change is only what differs.
	inputs := make([]*fgraph.Variable, len(a.Inputs()))
	same := true
	for i, in := range a.Inputs() {
		inputs[i] = x.made[x.b.g.Class(x.b.nodes[in])]
		same = same && inputs[i] == in
	}
	if !same {
		a = newApply(a, inputs)
	}
	if s.out == nil {
		x.tuples[c] = a
		return
	}
	x.made[c] = a.Out()
}

// newApply returns an apply with other inputs of the same types.
func newApply(a *fgraph.Apply, inputs []*fgraph.Variable) *fgraph.Apply {
	types := lists.Map(a.Outputs(), func(v *fgraph.Variable) fgraph.Type { return v.Type() })
	b := fgraph.NewApply(a.Op(), inputs, types...)
	b.SetOrigin(a.Origin())
	return b
}
