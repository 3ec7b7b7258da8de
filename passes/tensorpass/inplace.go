package tensorpass

import (
	"context"
	"reflect"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// inplaceRule returns a rule that lets ops of the tracks overwrite an input.
func inplaceRule(name, doc string, on ...rewrite.Track) rewrite.Rule {
	return rewrite.Rule{Name: name, Doc: doc, Destroys: true, On: on, Fn: workInplace}
}

// workInplace lets an op overwrite an input, if it has such a form and nothing objects.
func workInplace(c *rewrite.Context, n *apply) (result, error) {
	if destroys(n.Op()) {
		return c.Miss("it works in place already"), nil
	}
	form := n.Op().(tensor.Overwriter).Overwriting()
	i := form.(fgraph.Destroyer).DestroyMap()[0].Input
	v := n.Inputs()[i]
	if h, ok := fgraph.FeatureOf[*fgraph.DestroyHandler](c.Graph()); !ok || v.IsConstant() || !h.MayDestroy(v) {
		return c.Miss("the memory of input %d must not be overwritten", i), nil
	}
	a, err := tensor.Make(form, n.Inputs()...)
	if err != nil {
		return none, err
	}
	return rewrite.Replace(a.Outputs()...), nil
}

// inplaceElemwise returns the pass that lets element-wise ops overwrite an argument that nothing
// reads any more. Every output tries the arguments of its type in their order, and takes the memory
// of the first one that it may have.
func inplaceElemwise() rewrite.GraphRewriter {
	return rewrite.Global{
		Name:     "inplace_elemwise_optimizer",
		Doc:      "element-wise ops and others that have a form for it write over an argument that nothing reads any more: add(x, y) → add{inplace=0}(x, y)",
		Destroys: true, Fn: placeElemwise,
	}
}

// placeElemwise makes ops in place, one by one in the order of the computation.
func placeElemwise(ctx context.Context, h *rewrite.Handle) error {
	g := h.Graph()
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	t := &taking{last: lastReaders(order)}
	t.handler, _ = fgraph.FeatureOf[*fgraph.DestroyHandler](g)
	placed := 0
	for i, a := range order {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !g.Contains(a) {
			continue
		}
		t.place = i
		t.never = append(t.never[:0], make([]bool, len(a.Inputs()))...)
		t.asked = append(t.asked[:0], make([]bool, len(a.Inputs()))...)
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
				for k, v := range a.Outputs() {
					if last, many := t.last[v]; many {
						t.last[b.Outputs()[k]] = last
					}
				}
				placed += len(list)
				a = b
			case len(list) == 1:
				t.refused++
				t.never[list[0].Input] = true
			default:
				most = 1 // to find the one that is refused
			}
		}
	}
	h.Recorder().Count("nb_replaced", float64(placed), "")
	h.Recorder().Count("nb_inconsistent", float64(t.refused), "")
	return nil
}

// manyReaders is the largest number of readers of a variable that all try to take its memory. If
// there are more, only the last one in the order of the computation tries: an attempt takes time in
// proportion to the readers, so that all attempts would take quadratic time.
const manyReaders = 16

// lastReaders returns the places of the last readers of variables that have many.
func lastReaders(order []*apply) map[*variable]int {
	last := make(map[*variable]int)
	for i, a := range order {
		for _, v := range a.Inputs() {
			if len(v.Clients()) > manyReaders {
				last[v] = i
			}
		}
	}
	return last
}

// taking finds out which outputs of an apply take the memory of which inputs.
type taking struct {
	handler *fgraph.DestroyHandler // nil: nothing may be overwritten
	last    map[*variable]int      // the places of the last readers of variables that have many
	place   int
	never   []bool // by input: its memory is taken, or no output can take it
	asked   []bool // by input: its memory can be taken unless a feature objects
	refused int    // inputs that something else reads later or in another way
	list    []fgraph.Alias
	from    []searched
}

// searched is the number of inputs that outputs of a type have looked at.
type searched struct {
	typ   tensor.Type
	input int
}

// choose returns which outputs of a, at most a given number, take which inputs. It asks about an
// input once, so that it takes time in proportion to the inputs and outputs of one type.
func (t *taking) choose(a *apply, most int) []fgraph.Alias {
	t.list, t.from = t.list[:0], t.from[:0]
	if t.handler == nil {
		return nil
	}
	if o, ok := a.Op().(*tensor.CompositeOp); ok {
		for _, al := range o.DestroyMap() {
			t.never[al.Input] = true
		}
	} else if form := overwriting(a.Op()); form != nil {
		return t.chooseAll(a, form, most)
	} else if o, ok := a.Op().(tensor.Elemwise); !ok || o.Inplace != 0 {
		return nil
	}
	for k, w := range a.Outputs() {
		if o, ok := a.Op().(*tensor.CompositeOp); ok && o.Inplace(k) >= 0 {
			continue
		}
		from := t.searched(typeOf(w))
		for ; from.input < min(len(a.Inputs()), maxInputs+1); from.input++ {
			in := from.input
			if t.never[in] || dtypeOf(a.Inputs()[in]) != dtypeOf(w) || !samePattern(a.Inputs()[in], w) || !t.mayTake(a, in) {
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

// onProducts tracks the ops that add a product to an input.
var onProducts = slices.Concat(onType[tensor.GemmOp](), onType[tensor.GemvOp](), onType[tensor.GerOp](), onType[tensor.UsmmOp]())

// overwriting returns the form of an op that writes over inputs, if it has one that no other pass
// puts in its place.
func overwriting(op fgraph.Op) tensor.Op {
	o, ok := op.(tensor.Overwriter)
	elsewhere := func(t rewrite.Track) bool { return t.Type() == reflect.TypeOf(op) }
	if !ok || destroys(op) || slices.ContainsFunc(onProducts, elsewhere) || slices.ContainsFunc(onAnyIncSubtensor, elsewhere) {
		return nil
	}
	if form := o.Overwriting(); form != nil && destroys(form) {
		return form
	}
	return nil
}

// chooseAll returns what a form of the op of a overwrites, if it may overwrite all of it.
func (t *taking) chooseAll(a *apply, form tensor.Op, most int) []fgraph.Alias {
	list := form.(fgraph.Destroyer).DestroyMap()
	for _, al := range list {
		if len(list) > most || t.never[al.Input] || !t.mayTake(a, al.Input) {
			return nil
		}
	}
	return list
}

// searched returns how far the inputs have been searched for outputs of a type.
func (t *taking) searched(of tensor.Type) *searched {
	for i := range t.from {
		if t.from[i].typ == of {
			return &t.from[i]
		}
	}
	t.from = append(t.from, searched{typ: of})
	return &t.from[len(t.from)-1]
}

// mayTake reports whether an input may be overwritten, as far as is known.
func (t *taking) mayTake(a *apply, in int) bool {
	v := a.Inputs()[in]
	if t.asked[in] {
		return true
	}
	t.never[in] = true
	if last, many := t.last[v]; many && last != t.place || v.IsConstant() || !t.handler.MayDestroy(v) {
		return false
	}
	if !t.handler.MayOverwrite(a, in, a.Op()) {
		t.refused++
		return false
	}
	t.never[in], t.asked[in] = false, true
	return true
}

// takeMemory replaces a with an apply whose outputs take the memory of inputs, and reports whether
// no feature objects.
func takeMemory(h *rewrite.Handle, a *apply, list []fgraph.Alias) (*apply, bool, error) {
	var op tensor.Op
	switch o := a.Op().(type) {
	case tensor.Elemwise:
		o.Inplace = int8(list[0].Input + 1)
		op = o
	case *tensor.CompositeOp:
		op = o.WithInplace(list...)
	default:
		op = overwriting(o)
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
