package tensorpass

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A finite knows functions of a few values that are told apart by finitely many points. An F is the values of one there.
// What computes such a function becomes the cheapest way to compute it: so different ways become one. It looks at as
// many ops in front of an apply as read few values, like the cuts that are rewritten in circuits (Mishchenko, Chatterjee
// and Brayton, 2006).
type finite[F comparable] struct {
	// opens reports whether a variable is computed by an op that of knows, from values of the shape of a root.
	opens func(v, root *variable) bool
	// leaves returns what variables are as functions of themselves, or nil if they are too many or of other types.
	leaves func(root *variable, list []*variable) []F
	// of returns the function that an op computes of others. It reports false if the points do not tell.
	of func(op array.Opcode, args []F, bools bool) (F, bool)
	// number is the function that a constant is.
	number func(x float64, bools bool) (F, bool)
	forms  func() *formTable[F]
	most   int // ops in a cut
}

// A form is the cheapest way to compute a function: an op of functions that are cheaper.
type form struct {
	op     array.Opcode
	args   [3]int32 // by number; only those that the op has
	cost   int8     // in ops; 0 for what needs none
	bools  bool
	number float64 // of those without an op
}

// A formTable has forms by function. Of several that cost the same it has the first, so that a function has one form,
// whatever it was computed by.
type formTable[F comparable] struct {
	index map[F]int32
	all   []F
	forms []form
}

// add adds a form, unless there is one. It reports whether it did.
func (t *formTable[F]) add(f F, as form) bool {
	if _, ok := t.index[f]; ok {
		return false
	}
	t.index[f] = int32(len(t.all))
	t.all, t.forms = append(t.all, f), append(t.forms, as)
	return true
}

// has reports whether an apply is the op of a form, of its functions in their order.
func (k *cut[F]) has(n *apply, as form) bool {
	op, _ := elemOf(n)
	in := n.Inputs()
	if op == array.Mul && len(in) == 2 && is(in[0], -1) { // as local_neg_to_mul writes an opposite
		op, in = array.Neg, in[1:]
	}
	if op != as.op {
		return false
	}
	for i, v := range in {
		if f, ok := k.of(v); i >= len(as.args) || !ok || f != k.table.all[as.args[i]] {
			return false
		}
	}
	return true
}

// transform is the rule for an algebra.
func (a *finite[F]) transform(c *rewrite.Context, n *apply) (result, error) {
	root := n.Out()
	if !a.opens(root, root) {
		return c.Miss("it is no function of that kind"), nil
	}
	cuts := a.cutsOf(n)
	for _, leaves := range slices.Backward(cuts) {
		v, settled := a.cheapest(n, leaves)
		if v != nil {
			return replace(c, n, v, leaves...)
		}
		if settled {
			break // what other leaves would make of it, these would undo
		}
	}
	if len(cuts) == 0 {
		return c.Miss("it is no function of a few values of one shape"), nil
	}
	return c.Miss("there is no cheaper way to compute it"), nil
}

// cheapest computes an apply from leaves, if that is cheaper, or as cheap and another way. It returns nil if not, and
// whether the apply has its form already.
func (a *finite[F]) cheapest(n *apply, leaves []*variable) (_ *variable, settled bool) {
	k := &cut[F]{finite: a, leaves: leaves, made: make(map[F]*variable)}
	k.truths = a.leaves(n.Out(), leaves)
	f, ok := k.of(n.Out())
	if !ok || !k.alike() {
		return nil, false
	}
	// What others need stays, and may be used again. Gone is what has no reader but those that are gone.
	gone := []*apply{n}
	for i, v := range slices.Backward(k.inner) {
		if v == n.Out() {
			continue
		}
		if slices.ContainsFunc(v.Clients(), func(u fgraph.Client) bool { return u.Apply == nil || !slices.Contains(gone, u.Apply) }) {
			k.made[k.truths[len(leaves)+i]] = v
		} else {
			gone = append(gone, v.Owner())
		}
	}
	for i, v := range leaves {
		k.made[k.truths[i]] = v
	}
	if v := k.made[f]; v != nil {
		return v, false
	}
	k.table = a.forms()
	id, ok := k.table.index[f]
	if !ok {
		return nil, false
	}
	as := k.table.forms[id]
	if as.cost == 0 {
		return number(as.number, n.Out()), false
	}
	if cost := k.count(make(map[int32]bool), id); cost > len(gone) {
		return nil, false
	} else if cost == len(gone) && k.has(n, as) {
		return nil, true
	}
	return k.build(id), false
}

// alike reports whether the variables that are no bools have one type.
func (k *cut[F]) alike() bool {
	for _, v := range slices.Concat(k.leaves, k.inner) {
		if dtypeOf(v) == array.Bool {
			continue
		}
		if k.like != nil && typeOf(v) != typeOf(k.like) {
			return false
		}
		k.like = v
	}
	return true
}

// count returns how many ops a form needs besides what is made.
func (k *cut[F]) count(counted map[int32]bool, id int32) int {
	as := k.table.forms[id]
	if k.made[k.table.all[id]] != nil || counted[id] || as.cost == 0 {
		return 0
	}
	counted[id] = true
	n := 1
	for _, g := range as.args[:as.op.NumArgs()] {
		n += k.count(counted, g)
	}
	return n
}

// build returns the variable of a function.
func (k *cut[F]) build(id int32) *variable {
	f, as := k.table.all[id], k.table.forms[id]
	if k.made[f] != nil {
		return k.made[f]
	}
	var v *variable
	switch {
	case as.cost == 0:
		if v = number(as.number, k.like); as.bools {
			v = castTo(v, array.Bool)
		}
	case as.op == array.Cast:
		v = tensor.Cast(k.build(as.args[0]), dtypeOf(k.like))
	default:
		args := lists.Map(as.args[:as.op.NumArgs()], k.build)
		v = tensor.Map(as.op, args...)
	}
	k.made[f] = v
	return v
}

// A cut is a part of a graph: what computes a variable of a few others.
type cut[F comparable] struct {
	*finite[F]
	leaves []*variable // in the order in which they came into the graph
	inner  []*variable // inputs come before what reads them; the last one is the result
	truths []F         // of leaves, then of those
	table  *formTable[F]
	made   map[F]*variable
	like   *variable // a number of the type that is not bool, if there is one
}

const maxWidth = 8 // leaves on the way to a smaller cut

// cutsOf returns the leaves of the cuts of an apply, the deepest last.
func (a *finite[F]) cutsOf(n *apply) (cuts [][]*variable) {
	root := n.Out()
	opened, leaves := []*variable{root}, openInto(nil, n)
	for {
		sorted := slices.Clone(leaves)
		slices.SortFunc(sorted, func(v, w *variable) int { return cmp.Compare(v.ID(), w.ID()) })
		if a.leaves(root, sorted) != nil {
			cuts = append(cuts, sorted)
		}
		// The one that came last into the graph may read others that are leaves by now.
		next := -1
		for i, v := range leaves {
			if a.opens(v, root) && (next < 0 || v.ID() > leaves[next].ID()) {
				next = i
			}
		}
		if next < 0 || len(opened) == a.most || len(leaves) > maxWidth {
			return cuts
		}
		v := leaves[next]
		opened = append(opened, v)
		leaves = openInto(slices.Delete(leaves, next, next+1), v.Owner())
		leaves = slices.DeleteFunc(leaves, func(v *variable) bool { return slices.Contains(opened, v) })
	}
}

// openInto adds the inputs of an apply to leaves, but those that are numbers.
func openInto(leaves []*variable, n *apply) []*variable {
	for _, v := range n.Inputs() {
		if _, known := uniform(v); !known && !slices.Contains(leaves, v) {
			leaves = append(leaves, v)
		}
	}
	return leaves
}

// of returns the function that a variable of the cut is. It recurses as deep as the cut is.
func (k *cut[F]) of(v *variable) (f F, ok bool) {
	if i := slices.Index(k.leaves, v); i >= 0 {
		return k.truths[i], true
	}
	if i := slices.Index(k.inner, v); i >= 0 {
		return k.truths[len(k.leaves)+i], true
	}
	bools := dtypeOf(v) == array.Bool
	if x, known := uniform(v); known {
		return k.finite.number(x, bools)
	}
	op, _ := elemOf(v.Owner())
	args := make([]F, len(v.Owner().Inputs()))
	for i, in := range v.Owner().Inputs() {
		if args[i], ok = k.of(in); !ok {
			return f, false
		}
	}
	if f, ok = k.finite.of(op, args, bools); ok {
		k.inner, k.truths = append(k.inner, v), append(k.truths, f)
	}
	return f, ok
}
