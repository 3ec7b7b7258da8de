package tensorpass

import (
	"cmp"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var logicRules = goRules{
	"local_boolean_function": {on(booleanOps...), nil, 0, booleanFunction},
}

// booleanOps are those that are operations on truth values where their arguments are bools.
var booleanOps = []array.Opcode{
	array.And, array.Or, array.Xor, array.Invert, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge, array.Switch, array.Maximum, array.Minimum,
}

// A truth is a function of three truth values: bit i is its value where bit k of i is that of value k.
type truth uint8

// leafTruths are the three values themselves.
var leafTruths = [...]truth{0xaa, 0xcc, 0xf0}

// A truthForm is the cheapest way to compute a function: an op of functions that are cheaper.
type truthForm struct {
	op   array.Opcode
	args []truth
	cost int // in ops; 0 for what needs none
}

// truthForms has the form of each function. Of several that cost the same the first one is taken, so that a function
// has one form, whatever it was computed by. None has a constant as an argument, which other rules would remove.
var truthForms = sync.OnceValue(func() *[256]truthForm {
	forms := new([256]truthForm)
	known := [][]truth{leafTruths[:]} // by cost
	has := [256]bool{0: true, 255: true}
	for _, f := range leafTruths {
		has[f] = true
	}
	for cost := 1; slices.Contains(has[:], false); cost++ {
		known = append(known, nil)
		try := func(op array.Opcode, args ...truth) {
			if f := truthOf(op, args); !has[f] {
				has[f] = true
				forms[f] = truthForm{op, slices.Clone(args), cost}
				known[cost] = append(known[cost], f)
			}
		}
		// The ops come in the order in which people like to read them.
		for _, op := range []array.Opcode{array.Invert, array.And, array.Or, array.Xor, array.Eq, array.Lt, array.Le, array.Switch} {
			for i := range cost {
				for _, a := range known[i] {
					if op == array.Invert && i == cost-1 {
						try(op, a)
					}
					for j := range cost - i {
						for _, b := range known[j] {
							if rest := cost - 1 - i - j; op == array.Switch {
								for _, c := range known[rest] {
									try(op, a, b, c)
								}
							} else if op != array.Invert && rest == 0 {
								try(op, a, b)
							}
						}
					}
				}
			}
		}
	}
	return forms
})

// truthOf returns the function that an op computes of others.
func truthOf(op array.Opcode, args []truth) truth {
	f := args[0]
	switch op {
	case array.Invert:
		return ^f
	case array.Switch:
		return f&args[1] | ^f&args[2]
	}
	for _, g := range args[1:] {
		switch op {
		case array.And, array.Minimum:
			f &= g
		case array.Or, array.Maximum:
			f |= g
		case array.Xor, array.Neq:
			f ^= g
		case array.Eq:
			f = ^(f ^ g)
		case array.Lt:
			f = ^f & g
		case array.Le:
			f = ^f | g
		case array.Gt:
			f &^= g
		case array.Ge:
			f |= ^g
		}
	}
	return f
}

// booleanFunction replaces what computes a function of three bools or less by the form of that function, if that is
// cheaper, or as cheap and another: so different ways to compute one function become one. It looks at as many ops in
// front of an apply as read no more than three values, like the cuts that are rewritten in circuits (Mishchenko,
// Chatterjee and Brayton, 2006).
func booleanFunction(c *rewrite.Context, n *apply) (result, error) {
	k := cutOf(n)
	if k == nil {
		return c.Miss("it is no function of at most three bools of one shape"), nil
	}
	f, root := k.of(n.Out()), n.Out()
	made := make(map[truth]*variable)
	for i, v := range k.leaves {
		made[leafTruths[i]] = v
	}
	// What others need stays, and may be used again. Gone is what has no reader but those that are gone.
	gone := []*apply{n}
	for _, v := range slices.Backward(k.inner) {
		if v == root {
			continue
		}
		if slices.ContainsFunc(v.Clients(), func(u fgraph.Client) bool { return u.Apply == nil || !slices.Contains(gone, u.Apply) }) {
			made[k.of(v)] = v
		} else {
			gone = append(gone, v.Owner())
		}
	}
	if f == 0 || f == 255 {
		return replace(c, n, number(float64(f&1), root), k.leaves...)
	}
	if v := made[f]; v != nil {
		return replace(c, n, v)
	}
	form := truthForms()[f]
	cost := form.count(made, make(map[truth]bool), f)
	if cost > len(gone) || cost == len(gone) && k.has(n, form) {
		return c.Miss("there is no cheaper way to compute it"), nil
	}
	return replace(c, n, build(made, f))
}

// has reports whether an apply is the op of a form, of its functions in their order.
func (k *cut) has(n *apply, form truthForm) bool {
	op, _ := elemOf(n)
	return op == form.op && slices.EqualFunc(n.Inputs(), form.args, func(v *variable, f truth) bool { return k.of(v) == f })
}

// count returns how many ops a form needs besides what is made.
func (form truthForm) count(made map[truth]*variable, counted map[truth]bool, f truth) int {
	if made[f] != nil || counted[f] {
		return 0
	}
	counted[f] = true
	n := 1
	for _, g := range form.args {
		n += truthForms()[g].count(made, counted, g)
	}
	return n
}

// build returns the variable of a function.
func build(made map[truth]*variable, f truth) *variable {
	if made[f] == nil {
		var args []*variable
		for _, g := range truthForms()[f].args {
			args = append(args, build(made, g))
		}
		made[f] = tensor.Map(truthForms()[f].op, args...)
	}
	return made[f]
}

// A cut is a part of a graph: what computes a bool of up to three others of the same type.
type cut struct {
	leaves []*variable // in the order in which they came into the graph
	inner  []*variable // inputs come before what reads them; the last one is the result
	truths []truth     // of those
}

const (
	maxCut   = 24 // ops in a cut
	maxWidth = 8  // leaves on the way to a smaller cut
)

// cutOf returns the deepest cut of an apply, or nil.
func cutOf(n *apply) *cut {
	t := n.Out().Type()
	if !opens(n.Out(), t) {
		return nil
	}
	var best []*variable
	opened, leaves := []*variable{n.Out()}, open(nil, n)
	for {
		if len(leaves) <= len(leafTruths) && !slices.ContainsFunc(leaves, func(v *variable) bool { return v.Type() != t }) {
			best = slices.Clone(leaves)
		}
		// The one that came last into the graph may read others that are leaves by now.
		next := -1
		for i, v := range leaves {
			if opens(v, t) && (next < 0 || v.ID() > leaves[next].ID()) {
				next = i
			}
		}
		if next < 0 || len(opened) == maxCut || len(leaves) > maxWidth {
			break
		}
		v := leaves[next]
		opened = append(opened, v)
		leaves = open(slices.Delete(leaves, next, next+1), v.Owner())
		leaves = slices.DeleteFunc(leaves, func(v *variable) bool { return slices.Contains(opened, v) })
	}
	if best == nil {
		return nil
	}
	slices.SortFunc(best, func(a, b *variable) int { return cmp.Compare(a.ID(), b.ID()) })
	k := &cut{leaves: best}
	k.of(n.Out())
	return k
}

// opens reports whether a variable of a type is computed from others by an operation on truth values, some of which
// may be the numbers 0 and 1 of another type.
func opens(v *variable, t any) bool {
	op, ok := elemOf(v.Owner())
	return ok && dtypeOf(v) == array.Bool && v.Type() == t && slices.Contains(booleanOps, op) &&
		!slices.ContainsFunc(v.Owner().Inputs(), func(v *variable) bool {
			return dtypeOf(v) != array.Bool && !is(v, 0) && !is(v, 1)
		})
}

// open adds the inputs of an apply to leaves, but those that are numbers.
func open(leaves []*variable, n *apply) []*variable {
	for _, v := range n.Inputs() {
		if _, known := uniform(v); !known && !slices.Contains(leaves, v) {
			leaves = append(leaves, v)
		}
	}
	return leaves
}

// of returns the function that a variable of the cut is. It recurses as deep as the cut is.
func (k *cut) of(v *variable) truth {
	if i := slices.Index(k.leaves, v); i >= 0 {
		return leafTruths[i]
	}
	if i := slices.Index(k.inner, v); i >= 0 {
		return k.truths[i]
	}
	if x, known := uniform(v); known {
		if x != 0 {
			return 255
		}
		return 0
	}
	op, _ := elemOf(v.Owner())
	args := make([]truth, len(v.Owner().Inputs()))
	for i, in := range v.Owner().Inputs() {
		args[i] = k.of(in)
	}
	k.inner, k.truths = append(k.inner, v), append(k.truths, truthOf(op, args))
	return k.truths[len(k.truths)-1]
}
