package lower

import (
	"math"
	"slices"
)

// numbersOf returns an attribute of floats, or the one of its name with _as_tensor behind it; nil if there is none.
func (c *call) numbersOf(name string) []float64 {
	// Since version 3 doubles are in a tensor, whose attribute has the longer name.
	for _, name := range []string{name, name + "_as_tensor"} {
		a := c.attribute(name)
		switch {
		case a == nil:
		case a.Tensor != nil:
			x, err := c.tensorOf(a.Tensor, c.dir())
			c.failIf(err != nil, "%s: %w", name, err)
			return x.Floats()
		case len(a.Floats) > 0:
			return numbersAs[float64](a.Floats)
		}
	}
	return nil
}

// indexes returns an attribute of integers that are indexes: others become -1.
func (c *call) indexes(name string) []int32 {
	list := make([]int32, len(c.op.Ints(name)))
	for i, n := range c.op.Ints(name) {
		if list[i] = -1; n >= 0 && n < math.MaxInt32 {
			list[i] = int32(n)
		}
	}
	return list
}

// sameLengths fails if lists have other lengths than the first.
func (c *call) sameLengths(what string, lengths ...int) {
	for _, n := range lengths {
		c.failIf(n != lengths[0], "lists of %s are %v long", what, lengths)
	}
}

func (c *call) classifierTrees() *forest[float64] {
	e := c.namedTrees("class")
	labels := c.labels("classlabels")
	e.outputs, e.combine, e.classify = len(labels.codes), sumOf, &classifier{labels: labels}
	e.classify.single = len(e.targets) > 0
	for i, t := range e.targets {
		e.classify.single = e.classify.single && t == e.targets[0]
		e.classify.mixed = e.classify.mixed || e.weights[i] < 0
	}
	return e
}

func (c *call) regressorTrees() *forest[float64] {
	e := c.namedTrees("target")
	e.outputs = c.int("n_targets", 0)
	e.combine = combination(slices.Index(combinations, c.text("aggregate_function", "SUM")))
	c.failIf(e.combine < averageOf, "%w: aggregate_function %q", ErrUnsupported, c.text("aggregate_function", "SUM"))
	return e
}

// A nodeName is how versions before 5 name a node: by its tree, and its number there.
type nodeName struct{ tree, node int64 }

// namedTrees returns the trees of versions before 5, in which leaves are nodes. The root of a tree is its first node.
func (c *call) namedTrees(prefix string) *forest[float64] {
	e := &forest[float64]{base: c.numbersOf("base_values"), transform: c.transform()}
	trees, ids, yes, no := c.op.Ints("nodes_treeids"), c.op.Ints("nodes_nodeids"), c.op.Ints("nodes_truenodeids"), c.op.Ints("nodes_falsenodeids")
	features, values, missing := c.indexes("nodes_featureids"), c.numbersOf("nodes_values"), c.op.Ints("nodes_missing_value_tracks_true")
	var modes [][]byte
	if a := c.attribute("nodes_modes"); a != nil {
		modes = a.Strings
	}
	c.sameLengths("nodes", len(trees), len(ids), len(yes), len(no), len(features), len(values), len(modes))
	if len(missing) > 0 {
		c.sameLengths("nodes", len(trees), len(missing))
	}
	// First all nodes get their places, since children are named before or after their parents.
	places := make(map[nodeName]int32, len(ids))
	rooted, leaves := make(map[int64]bool), 0
	for i, id := range ids {
		name := nodeName{trees[i], id}
		if _, twice := places[name]; twice {
			c.fail("node %d of tree %d is there twice", id, trees[i])
		}
		if string(modes[i]) == "LEAF" {
			places[name] = ^int32(leaves)
			leaves++
		} else {
			places[name] = int32(len(e.nodes))
			mode := slices.Index(branches, string(modes[i]))
			if mode < 0 {
				c.fail("%w: mode %q", ErrUnsupported, modes[i])
			}
			e.nodes = append(e.nodes, treeNode[float64]{value: values[i], feature: features[i], mode: branch(mode), missing: len(missing) > 0 && missing[i] != 0})
		}
		if !rooted[trees[i]] {
			rooted[trees[i]] = true
			e.roots = append(e.roots, places[name])
		}
	}
	child := func(tree, id int64) int32 {
		at, ok := places[nodeName{tree, id}]
		if !ok {
			c.fail("tree %d has no node %d", tree, id)
		}
		return at
	}
	for i, id := range ids {
		if at := places[nodeName{trees[i], id}]; at >= 0 {
			e.nodes[at].kids = [2]int32{child(trees[i], no[i]), child(trees[i], yes[i])}
		}
	}
	of, at, targets, weights := c.op.Ints(prefix+"_treeids"), c.op.Ints(prefix+"_nodeids"), c.indexes(prefix+"_ids"), c.numbersOf(prefix+"_weights")
	c.sameLengths("weights", len(of), len(at), len(targets), len(weights))
	lists := make([][]int, leaves)
	for i := range of {
		if leaf := child(of[i], at[i]); leaf < 0 { // those of other nodes are not used
			lists[^leaf] = append(lists[^leaf], i)
		}
	}
	// One more than there are, whose beginning is the end of the last one.
	for _, list := range append(lists, nil) {
		e.leaves = append(e.leaves, int32(len(e.weights)))
		for _, i := range list {
			e.targets, e.weights = append(e.targets, targets[i]), append(e.weights, weights[i])
		}
	}
	return e
}

// trees returns the trees of version 5.
func (c *call) trees() *forest[float64] {
	e := &forest[float64]{outputs: c.int("n_targets", 0), combine: combination(c.int("aggregate_function", int(sumOf))), roots: c.indexes("tree_roots")}
	transforms := []postTransform{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}
	p := c.int("post_transform", 0)
	if p < 0 || p >= len(transforms) || e.combine < averageOf || e.combine > mostOf {
		c.fail("%w: post_transform %d, aggregate_function %d", ErrUnsupported, p, e.combine)
	}
	e.transform = transforms[p]
	features, yes, no := c.indexes("nodes_featureids"), c.indexes("nodes_truenodeids"), c.indexes("nodes_falsenodeids")
	yesLeaf, noLeaf, missing := c.op.Ints("nodes_trueleafs"), c.op.Ints("nodes_falseleafs"), c.op.Ints("nodes_missing_value_tracks_true")
	modes, splits, weights, targets := c.numbersOf("nodes_modes"), c.numbersOf("nodes_splits"), c.numbersOf("leaf_weights"), c.indexes("leaf_targetids")
	c.sameLengths("nodes", len(features), len(yes), len(no), len(yesLeaf), len(noLeaf), len(modes), len(splits))
	c.sameLengths("leaves", len(weights), len(targets))
	if len(missing) > 0 {
		c.sameLengths("nodes", len(features), len(missing))
	}
	e.targets, e.weights = targets, weights
	// In this version each leaf has one weight.
	for i := range len(weights) + 1 {
		e.leaves = append(e.leaves, int32(i))
	}
	members := c.numbersOf("membership_values")
	for i, mode := range modes {
		n := treeNode[float64]{value: splits[i], feature: features[i], kids: [2]int32{no[i], yes[i]}, mode: branch(mode), missing: len(missing) > 0 && missing[i] != 0}
		if yes[i] < 0 || no[i] < 0 {
			c.fail("node %d has children %d and %d", i, yes[i], no[i])
		}
		if yesLeaf[i] != 0 {
			n.kids[1] = ^yes[i]
		}
		if noLeaf[i] != 0 {
			n.kids[0] = ^no[i]
		}
		e.nodes = append(e.nodes, n)
		// The numbers of all such nodes are in one list, with a NaN behind each.
		var list []float64
		if n.mode == branchMember {
			end := slices.IndexFunc(members, func(v float64) bool { return v != v })
			if end < 0 {
				end = len(members)
			}
			list, members = members[:end], members[min(end+1, len(members)):]
		}
		e.members = append(e.members, list)
	}
	return e
}
