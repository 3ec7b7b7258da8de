package tensorpass

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// destroyable returns the feature that knows whether memory may be overwritten, if it is attached, and whether that of v may be.
func destroyable(g *fgraph.FunctionGraph, v *vari) bool {
	h, ok := fgraph.FeatureOf[*fgraph.DestroyHandler](g)
	return ok && !v.IsConstant() && h.MayDestroy(v)
}

// inplaceWalk makes a walk with one rule of a function that returns the in-place form of an op, and the input that it destroys.
func inplaceWalk(name, doc string, tracks []rewrite.Track, form func(fgraph.Op) (tensor.Op, int)) rewrite.GraphRewriter {
	return rewrite.In2Out(name, rewrite.Rule{
		Name: name, Doc: doc, On: tracks, Destroys: true,
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
	})
}

// InplaceBLAS lets the BLAS add to memory that nobody reads any more.
func InplaceBLAS() rewrite.GraphRewriter {
	return inplaceWalk("InplaceBlasOpt", "products are added to memory that nobody reads any more: Gemm → Gemm{inplace}",
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
		})
}

// InplaceSubtensor changes parts of tensors in place.
func InplaceSubtensor() rewrite.GraphRewriter {
	return inplaceWalk("local_inplace_setsubtensor", "a part is changed in memory that nobody reads any more",
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
		})
}

// InplaceElemwise lets element-wise ops write their results over an argument that nobody reads any more. Every output tries the
// arguments of its type in their order, and takes the first whose memory it may have.
func InplaceElemwise() rewrite.GraphRewriter {
	return rewrite.Global{
		Name:     "inplace_elemwise_optimizer",
		Doc:      "element-wise ops write over an argument that nobody reads any more: add(x, y) → add{inplace=0}(x, y)",
		Destroys: true, Fn: inplaceElemwise,
	}
}

// inplaceElemwise makes ops in-place, one after the other in the order of the computation.
func inplaceElemwise(ctx context.Context, h *rewrite.Handle) error {
	g := h.Graph()
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	t := &taking{last: newLastReaders(g, order)}
	t.handler, _ = fgraph.FeatureOf[*fgraph.DestroyHandler](g)
	placed := 0
	for i, a := range order {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !g.Contains(a) {
			continue
		}
		t.begin(a, i)
		for most := len(a.Outputs()); ; {
			list := t.choose(a, most)
			if len(list) == 0 {
				break
			}
			b, done, err := takeMemory(h, a, list)
			switch {
			case err != nil:
				return err
			case done:
				placed += len(list)
				a = b
			case len(list) == 1:
				t.refused++
				t.never[list[0].Input] = true
			default:
				most = 1 // to see which of them it is
			}
		}
	}
	h.Recorder().Count("nb_replaced", float64(placed), "")
	h.Recorder().Count("nb_inconsistent", float64(t.refused), "")
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

// taking finds out which outputs of an apply take the memory of which inputs.
type taking struct {
	handler *fgraph.DestroyHandler // nil: nobody knows what may be overwritten, and nothing is
	last    *lastReaders
	place   int
	never   []bool // by input: its memory is taken, or cannot be, no matter which output it would be for
	asked   []bool // by input: its memory can be taken unless that is objected to
	refused int    // inputs that something else has to read later, or in another way
	list    []fgraph.Alias
	from    []searched
}

// searched says up to which input outputs of a type have been through.
type searched struct {
	typ   tensor.Type
	input int
}

// begin turns to the apply at a place in the order.
func (t *taking) begin(a *apply, place int) {
	t.place = place
	t.never = append(t.never[:0], make([]bool, len(a.Inputs()))...)
	t.asked = append(t.asked[:0], make([]bool, len(a.Inputs()))...)
}

// choose lets outputs of a, at most so many, take inputs. Every input is asked about once, so that it takes time in proportion to the
// inputs and outputs, where an op has one type of them.
func (t *taking) choose(a *apply, most int) []fgraph.Alias {
	t.list, t.from = t.list[:0], t.from[:0]
	if t.handler == nil {
		return nil
	}
	if o, ok := a.Op().(*tensor.CompositeOp); ok {
		for _, al := range o.DestroyMap() {
			t.never[al.Input] = true
		}
	} else if o, ok := a.Op().(tensor.Elemwise); !ok || o.Inplace != 0 {
		return nil
	}
	for k, w := range a.Outputs() {
		if o, ok := a.Op().(*tensor.CompositeOp); ok && o.Inplace(k) >= 0 {
			continue
		}
		from := t.searched(typ(w))
		for ; from.input < min(len(a.Inputs()), mostInputs+1); from.input++ {
			in := from.input
			if t.never[in] || !t.fits(a.Inputs()[in], w) || !t.mayTake(a, in) {
				continue
			}
			t.list = append(t.list, fgraph.Alias{Output: k, Input: in})
			from.input++
			break
		}
		if len(t.list) == most {
			break
		}
	}
	return t.list
}

// searched returns how far the inputs have been looked through for outputs like one of a type.
func (t *taking) searched(typ tensor.Type) *searched {
	for i := range t.from {
		if t.from[i].typ == typ {
			return &t.from[i]
		}
	}
	t.from = append(t.from, searched{typ: typ})
	return &t.from[len(t.from)-1]
}

// fits reports whether w has room where v is.
func (t *taking) fits(v, w *vari) bool { return typ(v).DType() == typ(w).DType() && samePattern(v, w) }

// mayTake reports whether nothing is known to speak against overwriting an input.
func (t *taking) mayTake(a *apply, in int) bool {
	v := a.Inputs()[in]
	if t.asked[in] {
		return true
	}
	t.never[in] = true
	if !t.last.mayTry(t.place, v) || v.IsConstant() || !t.handler.MayDestroy(v) {
		return false
	}
	if !t.handler.MayOverwrite(a, in, a.Op()) {
		t.refused++
		return false
	}
	t.never[in], t.asked[in] = false, true
	return true
}

// takeMemory replaces a by an apply whose outputs take the memory of inputs, and reports whether nobody objects.
func takeMemory(h *rewrite.Handle, a *apply, list []fgraph.Alias) (*apply, bool, error) {
	var op tensor.Op
	switch o := a.Op().(type) {
	case tensor.Elemwise:
		o.Inplace = int8(list[0].Input + 1)
		op = o
	case *tensor.CompositeOp:
		op = o.WithInplace(list...)
	}
	b, err := tensor.Make(op, a.Inputs()...)
	if err != nil {
		return nil, false, err
	}
	b.SetOrigin(a.Origin())
	pairs := make([]fgraph.Replacement, len(a.Outputs()))
	for k, v := range a.Outputs() {
		pairs[k] = fgraph.Replacement{Old: v, New: b.Outputs()[k]}
	}
	done, err := h.Replace("", a, pairs...)
	return b, done, err
}
