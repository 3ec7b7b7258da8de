package tensorpass

import (
	"context"
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// inplaceWalk is a walk with a rule that makes ops work in place.
type inplaceWalk struct{ rewrite.Walk }

// Inplace tells that it does.
func (*inplaceWalk) Inplace() bool { return true }

// RewriterDoc says what the pass does.
func (w *inplaceWalk) RewriterDoc() string { return w.Rules[0].(rewrite.Rule).Doc }

func newInplaceWalk(r rewrite.Rule) rewrite.GraphRewriter {
	return &inplaceWalk{rewrite.Walk{Name: r.Name, Rules: []rewrite.NodeRewriter{r}}}
}

// destroyable returns the feature that knows whether memory may be overwritten, if it is attached, and whether that of v may be.
func destroyable(g *fgraph.FunctionGraph, v *vari) bool {
	h, ok := fgraph.FeatureOf[*fgraph.DestroyHandler](g)
	return ok && !v.IsConstant() && h.MayDestroy(v)
}

// inplaceRule makes a rule of a function that returns the in-place form of an op, and the input that it destroys.
func inplaceRule(name, doc string, tracks []rewrite.Track, form func(fgraph.Op) (tensor.Op, int)) rewrite.Rule {
	return rewrite.Rule{
		Name: name, Doc: doc, On: tracks,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, i := form(n.Op())
			if op == nil {
				return c.Miss("it works in place already"), nil
			}
			if !destroyable(c.Graph(), n.Inputs()[i]) {
				return c.Miss("the memory of input %d must not be overwritten", i), nil
			}
			a, err := tensor.Make(op, n.Inputs()...)
			if err != nil {
				return none, err
			}
			return rewrite.Replace(a.Outputs()...), nil
		},
	}
}

// InplaceBLAS lets the BLAS add to memory that nobody reads any more.
func InplaceBLAS() rewrite.GraphRewriter {
	return newInplaceWalk(inplaceRule("InplaceBlasOpt", "products are added to memory that nobody reads any more: Gemm → Gemm{inplace}",
		[]rewrite.Track{rewrite.TrackType[tensor.GemmOp](), rewrite.TrackType[tensor.GemvOp](), rewrite.TrackType[tensor.GerOp](), rewrite.TrackType[tensor.UsmmOp]()},
		func(op fgraph.Op) (tensor.Op, int) {
			switch op := op.(type) {
			case tensor.GemmOp:
				if !op.Inplace {
					return tensor.GemmOp{Inplace: true}, 0
				}
			case tensor.GemvOp:
				if !op.Inplace {
					op.Inplace = true
					return op, 0
				}
			case tensor.GerOp:
				if !op.Inplace {
					op.Inplace = true
					return op, 0
				}
			case tensor.UsmmOp:
				if !op.Inplace {
					return tensor.UsmmOp{Inplace: true}, 3
				}
			}
			return nil, 0
		}))
}

// InplaceSubtensor changes parts of tensors in place.
func InplaceSubtensor() rewrite.GraphRewriter {
	return newInplaceWalk(inplaceRule("local_inplace_setsubtensor", "a part is changed in memory that nobody reads any more",
		[]rewrite.Track{rewrite.TrackType[*tensor.IncSubtensorOp](), rewrite.TrackType[tensor.AdvancedIncSubtensorOp]()},
		func(op fgraph.Op) (tensor.Op, int) {
			switch op := op.(type) {
			case *tensor.IncSubtensorOp:
				if !op.Inplace {
					return op.WithInplace(true), 0
				}
			case tensor.AdvancedIncSubtensorOp:
				if !op.Inplace {
					op.Inplace = true
					return op, 0
				}
			}
			return nil, 0
		}))
}

// InplaceElemwise lets element-wise ops write their results over an argument that nobody reads any more. Every output tries the
// arguments of its type in their order, and takes the first whose memory it may have.
func InplaceElemwise() rewrite.GraphRewriter { return inplaceElemwise{} }

type inplaceElemwise struct{}

// RewriterName returns Theano's name.
func (inplaceElemwise) RewriterName() string { return "inplace_elemwise_optimizer" }

// RewriterDoc says what the pass does.
func (inplaceElemwise) RewriterDoc() string {
	return "element-wise ops write over an argument that nobody reads any more: add(x, y) → add{inplace=0}(x, y)"
}

// Inplace tells that the pass makes ops work in place.
func (inplaceElemwise) Inplace() bool { return true }

// Class returns the class in a profile.
func (inplaceElemwise) Class() string { return profile.ClassFromFunction }

// AddRequirements attaches what replacements are made through.
func (inplaceElemwise) AddRequirements(g *fgraph.FunctionGraph) error {
	return g.Attach(fgraph.NewReplaceValidate())
}

// Apply makes ops in-place, one after the other in the order of the computation.
func (inplaceElemwise) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.Nodes(g.NumApplies())
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	rv, _ := fgraph.FeatureOf[*fgraph.ReplaceValidate](g)
	o := rewrite.OptionsFrom(ctx)
	last := newLastReaders(g, order)
	placed, refused := 0, 0
	for i, a := range order {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !g.Contains(a) {
			continue
		}
		never := make([]bool, len(a.Inputs())) // which output it would be for makes no difference
		for out := 0; out < len(a.Outputs()); out++ {
			for in := range a.Inputs() {
				if never[in] || !last.mayTry(i, a.Inputs()[in]) {
					continue
				}
				b, err := inplaceForm(g, a, out, in)
				if err != nil {
					return err
				}
				why := fgraph.Reason{Pass: "inplace_elemwise_optimizer"}
				if b == nil || o.Allow != nil && !o.Allow(why) {
					continue
				}
				pairs := make([]fgraph.Replacement, len(a.Outputs()))
				for k, v := range a.Outputs() {
					pairs[k] = fgraph.Replacement{Old: v, New: b.Outputs()[k]}
				}
				err = rv.ReplaceAllValidate(pairs, why)
				if err == nil {
					placed++
					a = b
					break
				}
				if !errors.Is(err, fgraph.ErrInconsistent) {
					return err
				}
				refused++
				never[in] = true
			}
		}
	}
	rec.Count("nb_replaced", float64(placed), "")
	rec.Count("nb_inconsistent", float64(refused), "")
	rec.Changed(placed)
	return nil
}

// manyReaders is the number of readers of a variable from which on only the last of them in the order of the computation tries to take
// its memory. To find out that an apply may not costs as much as there are readers, and if all of them tried, the square of that.
const manyReaders = 16

// lastReaders knows which of many readers of a variable is the last.
type lastReaders struct {
	g     *fgraph.FunctionGraph
	place []int32 // by number of the apply: its place in the order
	last  map[*vari]int
}

func newLastReaders(g *fgraph.FunctionGraph, order []*apply) *lastReaders {
	l := &lastReaders{g: g, place: make([]int32, g.NumApplyIDs()), last: make(map[*vari]int)}
	for i, a := range order {
		l.place[a.ID()] = int32(i)
	}
	return l
}

// mayTry reports whether it is worth while that the apply at a place takes the memory of v. Applies that work in place already, which
// have no place of their own in the order, come before it.
func (l *lastReaders) mayTry(place int, v *vari) bool {
	if len(v.Clients()) <= manyReaders {
		return true
	}
	last, known := l.last[v]
	if !known {
		for _, c := range v.Clients() {
			if c.Apply != nil && c.Apply.ID() < len(l.place) {
				last = max(last, int(l.place[c.Apply.ID()]))
			}
		}
		l.last[v] = last
	}
	return place == last
}

// inplaceForm returns the apply whose output out takes the memory of input in, nil if that can't be.
func inplaceForm(g *fgraph.FunctionGraph, a *apply, out, in int) (*apply, error) {
	v, w := a.Inputs()[in], a.Outputs()[out]
	var op tensor.Op
	switch o := a.Op().(type) {
	case tensor.Elemwise:
		if o.Inplace != 0 || in > 100 {
			return nil, nil
		}
		o.Inplace = int8(in + 1)
		op = o
	case *tensor.CompositeOp:
		for k := range a.Outputs() {
			if o.Inplace(k) == in || k == out && o.Inplace(k) >= 0 {
				return nil, nil
			}
		}
		op = o.WithInplace(out, in)
	default:
		return nil, nil
	}
	if typ(v).DType() != typ(w).DType() || !samePattern(v, w) || !destroyable(g, v) || readsAlias(g, a, v) {
		return nil, nil
	}
	b, err := tensor.Make(op, a.Inputs()...)
	if err != nil {
		return nil, err
	}
	b.SetOrigin(a.Origin())
	return b, nil
}

// readsAlias reports whether another argument shows memory of v. An argument that is v itself does no harm: its elements are read before
// they are written.
func readsAlias(g *fgraph.FunctionGraph, a *apply, v *vari) bool {
	h, ok := fgraph.FeatureOf[*fgraph.DestroyHandler](g)
	return ok && slices.ContainsFunc(a.Inputs(), func(w *vari) bool { return w != v && h.Shared(v, w) })
}
