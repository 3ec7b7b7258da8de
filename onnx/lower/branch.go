package lower

import (
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
)

// branch lowers If. A condition that is computed from integers, such as a rate or a size, decides once: the graph
// is that of one branch and depends on the condition, and the other branch need not be computable. A condition
// that is computed from floats is another one for each input. Then the graph has both branches, and a run
// computes the one that is taken, if their results are tensors of the same types.
func (c *call) branch() []*value {
	c.failIf(c.apply == nil, "an If without a graph")
	if c.wavers(c.x(0)) {
		if out := c.bothBranches(); out != nil {
			return out
		}
	}
	// Also where sizes are open: a condition of sizes is nearly always the same for all of them.
	condition, err := c.demand(c.x(0))
	switch {
	case err != nil:
		c.fail("its condition: %w", err)
	case condition.Len() != 1:
		c.fail("a condition of %d elements", condition.Len())
	case condition.Float(0) != 0:
		return c.taken(0)
	}
	return c.taken(1)
}

// taken lowers a branch, and returns its results.
func (c *call) taken(branch int) []*value {
	n := c.op.Outputs
	name := [2]string{"its then_branch", "its else_branch"}[branch]
	return c.within(name, c.region.Branch(c.apply, branch), newScope(c.scope), c.apply.Inputs()[1+branch*n:][:n])
}

// wavers reports whether a variable depends on floats, or on values of a round of a loop.
func (c *call) wavers(v variable) bool {
	todo, seen := []variable{v}, make(map[variable]bool)
	for len(todo) > 0 {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		// A leaf that is no input is what a loop gives to a round. Sizes don't count: they are the same
		// whatever the elements are.
		switch a := v.Owner(); {
		case seen[v] || tensor.ConstantOf(v) != nil:
		case a == nil && (tensor.TypeOf(v).DType().IsFloat() || !slices.Contains(c.inputs, v)):
			return true
		case a != nil && !sizeOnly(a.Op()):
			todo = append(todo, a.Inputs()...)
		}
		seen[v] = true
	}
	return false
}

// sizeOnly reports whether an op looks at sizes and not at elements.
func sizeOnly(op fgraph.Op) bool {
	switch op.(type) {
	case tensor.ShapeOp, tensor.ShapeIOp:
		return true
	}
	return false
}

// bothBranches returns the results of an If whose branches are both in the graph, or nil if that can't be: if one
// of them can't be computed, asks for a value, or has a result of another type. What can't be once is not tried
// again, since it may be in a branch of another If that can't be, and so on.
func (c *call) bothBranches() (out []*value) {
	if c.decided[c.apply] {
		return nil
	}
	err := c.tentatively(func() {
		condition, demands := c.x(0), len(c.demands)
		if slices.Contains(tensor.TypeOf(condition).Shape(), tensor.Unknown) || product(c.shape(condition)) != 1 {
			c.fail("a condition that is no bool")
		}
		sides := [2][]*value{c.taken(0), c.taken(1)}
		// The value would have to hold also in runs that don't take the branch, where computing it may fail.
		c.failIf(len(c.demands) > demands, "a branch asks for values")
		c.failIf(len(sides[0]) != len(sides[1]), "its branches have %d and %d outputs", len(sides[0]), len(sides[1]))
		var vars [2][]variable
		for i, x := range sides[0] {
			y := sides[1][i]
			if x.v == nil || y.v == nil || x.elem != y.elem || tensor.TypeOf(x.v) != tensor.TypeOf(y.v) {
				c.fail("output %d has not the same type in both branches", i)
			}
			vars[0], vars[1] = append(vars[0], x.v), append(vars[1], y.v)
		}
		if len(vars[0]) > 0 {
			for i, v := range tensor.IfElse(c.reshape(truth(condition), nil), vars[0], vars[1]) {
				out = append(out, &value{v: v, elem: sides[0][i].elem})
			}
		}
	})
	if err != nil {
		c.decided[c.apply] = true
		return nil
	}
	return out
}

// tentatively calls a function that lowers something. If that can't be, all that came of it is forgotten: faults,
// what the graph would have depended on, and which sizes were promised because of it.
func (c *call) tentatively(lower func()) error {
	faults, demands, sized := len(c.faults), len(c.demands), len(c.sized)
	c.attempts++
	err := c.attempt(lower)
	if c.attempts--; err == nil && len(c.faults) == faults {
		return nil
	}
	err = errors.Join(err, errors.Join(c.faults[faults:]...))
	// Backwards, since a value may have got sizes more than once.
	for _, s := range slices.Backward(c.sized[sized:]) {
		s.of.v = s.before
	}
	// Or nobody would note the demand when it is asked for again.
	for _, d := range c.demands[demands:] {
		delete(c.demanded, d.Variable)
	}
	c.faults, c.demands, c.sized = c.faults[:faults], c.demands[:demands], c.sized[:sized]
	return err
}
