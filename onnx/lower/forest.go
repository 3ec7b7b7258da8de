package lower

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A forest is an ensemble of decision trees. All nodes are in one list, and all leaves in another: a child is the
// index of a node, or ^ the index of a leaf. Numbers are compared, and added, in the type of the input.
type forest[T float32 | float64] struct {
	nodes   []treeNode[T]
	members [][]T   // what nodes of mode branchMember take, by node; nil if there are none
	roots   []int32 // children
	leaves  []int32 // where the weights of each leaf begin, and their end
	targets []int32 // of the weights
	weights []T

	plain     bool // all nodes are of mode branchLEQ, and NaN is never true
	columns   int  // of the input, at least
	outputs   int  // targets or classes
	base      []float64
	combine   combination
	classify  *classifier // nil for a regression
	transform postTransform
}

// A treeNode sends a row to one of its children.
type treeNode[T float32 | float64] struct {
	value   T
	feature int32
	kids    [2]int32 // for no and for yes
	mode    branch
	missing bool // NaN is yes
}

// A branch is how a node compares a number with its own, as version 5 counts them.
type branch uint8

const (
	branchLEQ branch = iota
	branchLT
	branchGTE
	branchGT
	branchEQ
	branchNEQ
	branchMember // one of several numbers
)

// branches are the names of earlier versions.
var branches = []string{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}

// A combination is how the weights of the trees make a score.
type combination int

const (
	averageOf combination = iota
	sumOf
	leastOf
	mostOf
)

var combinations = []string{"AVERAGE", "SUM", "MIN", "MAX"}

// A classifier knows how scores choose a class.
type classifier struct {
	labels labelling
	single bool // of two classes, one has all weights
	mixed  bool // some weights are negative
}

// treeBlock is how many rows pass a tree before they pass the next one, so that its nodes are in the cache.
const treeBlock = 64

// scores computes the scores of rows of so many columns: outputs for each. has says which a tree has given any weight.
func (f *forest[T]) scores(x []T, columns int, scores []T, has []bool) {
	n := len(x) / max(columns, 1)
	for from := 0; from < n; from += treeBlock {
		to := min(from+treeBlock, n)
		for _, root := range f.roots {
			i := from
			for ; f.plain && i+abreast <= to; i += abreast {
				for k, leaf := range f.leavesOf(root, x[i*columns:], columns) {
					f.add(^leaf, scores[(i+k)*f.outputs:], has[(i+k)*f.outputs:])
				}
			}
			for ; i < to; i++ {
				f.add(f.leaf(root, x[i*columns:][:columns]), scores[i*f.outputs:], has[i*f.outputs:])
			}
		}
	}
}

// add adds the weights of a leaf to the scores of a row.
func (f *forest[T]) add(leaf int32, scores []T, has []bool) {
	for w := f.leaves[leaf]; w < f.leaves[leaf+1]; w++ {
		k := f.targets[w]
		switch v := f.weights[w]; {
		case f.combine <= sumOf:
			scores[k] += v
		case !has[k] || f.combine == leastOf && v < scores[k] || f.combine == mostOf && v > scores[k]:
			scores[k] = v
		}
		has[k] = true
	}
}

// abreast is how many rows go through a plain tree at a time: none waits for the memory that another one reads.
const abreast = 4

// leavesOf returns ^ the leaves that rows come to in a plain tree.
func (f *forest[T]) leavesOf(root int32, rows []T, columns int) [abreast]int32 {
	nodes := f.nodes
	p, q, r, s := rows[:columns], rows[columns:][:columns], rows[2*columns:][:columns], rows[3*columns:][:columns]
	a, b, c, d := root, root, root, root
	for a&b&c&d >= 0 { // while any is a node
		if a >= 0 {
			a = nodes[a].next(p)
		}
		if b >= 0 {
			b = nodes[b].next(q)
		}
		if c >= 0 {
			c = nodes[c].next(r)
		}
		if d >= 0 {
			d = nodes[d].next(s)
		}
	}
	return [abreast]int32{a, b, c, d}
}

// next returns where a plain node sends a row. An index takes half the time of a branch, which nobody can predict (2026-11-28).
func (n *treeNode[T]) next(row []T) int32 {
	i := 0
	if row[n.feature] <= n.value {
		i = 1
	}
	return n.kids[i&1]
}

// leaf returns the leaf that a row comes to.
func (f *forest[T]) leaf(at int32, row []T) int32 {
	// NaN is not at most any number, so it goes where no leads without being asked for.
	if f.plain {
		for at >= 0 {
			if n := &f.nodes[at]; row[n.feature] <= n.value {
				at = n.kids[1]
			} else {
				at = n.kids[0]
			}
		}
		return ^at
	}
	for at >= 0 {
		n := &f.nodes[at]
		v := row[n.feature]
		yes := n.missing && v != v
		switch n.mode {
		case branchLEQ:
			yes = yes || v <= n.value
		case branchLT:
			yes = yes || v < n.value
		case branchGTE:
			yes = yes || v >= n.value
		case branchGT:
			yes = yes || v > n.value
		case branchEQ:
			yes = yes || v == n.value
		case branchNEQ:
			yes = yes || v != n.value
		case branchMember:
			// The search takes NaN for equal to NaN, which is no member.
			_, found := slices.BinarySearch(f.members[at], v)
			yes = yes || found && v == v
		}
		if at = n.kids[0]; yes {
			at = n.kids[1]
		}
	}
	return ^at
}

// finish makes the results of a row from its scores, with the index of its class if there are some.
func (f *forest[T]) finish(row []float64, has []bool) (int, []float64) {
	if f.combine == averageOf {
		for i := range row {
			row[i] /= float64(len(f.roots))
		}
	}
	if f.classify != nil {
		return f.classify.finish(row, has, f.base, f.transform)
	}
	for i := range row {
		// The base of a target without weights is not used if there are several.
		if len(f.base) == len(row) && (has[i] || len(row) == 1) {
			row[i] += f.base[i]
		}
	}
	return 0, f.transform.apply(row, noSecond)
}

// finish chooses the class with the largest score. Of two classes, one may have all weights.
func (c *classifier) finish(row []float64, has []bool, base []float64, p postTransform) (int, []float64) {
	if len(row) > 2 {
		k := -1
		for i := range row {
			if i < len(base) {
				row[i], has[i] = row[i]+base[i], true
			}
			if has[i] && (k < 0 || row[i] > row[k]) {
				k = i
			}
		}
		return max(k, 0), p.apply(row, noSecond)
	}
	if len(row) == 1 {
		if len(base) == 1 {
			row[0] += base[0]
		}
		return 0, p.apply(row, noSecond)
	}
	// Two classes, as ONNX Runtime computes them: the text of ONNX does not say it.
	s := noSecond
	switch {
	case len(base) == 2 && has[1]:
		row[1] = base[1] + row[0]
		row[0] = -row[1]
	case len(base) > 0:
		row[0] += base[0]
	default:
		s = negated
	}
	for i := range row {
		if !has[i] {
			row[i] = 0
		}
	}
	score := row[truthOf(has[1])]
	if !has[1] && len(base) < 2 {
		row = row[:1]
	}
	if !c.single {
		return truthOf(score > 0), p.apply(row, s)
	}
	if s = negated; !c.mixed {
		s = complement
		score -= 0.5
	}
	return truthOf(score > 0), p.apply(row, s)
}

// ensemble lowers an ensemble of trees.
func (c *call) ensemble(e *forest[float64]) []*value {
	if e.outputs < 1 || e.outputs > maxMade || len(e.base) > e.outputs {
		c.fail("%d targets, of which %d have a base", e.outputs, len(e.base))
	}
	e.check(c)
	x := c.rows()
	// Operators before version 5 return float32s of doubles, too.
	elem := onnx.Float
	if c.op.Type == "TreeEnsemble" {
		elem = c.elem(0)
	}
	var scored func(x *array.Array) (labels, scores *array.Array, err error)
	if tensor.TypeOf(x).DType() == array.Float64 {
		scored = scoring[float64](e)
	} else {
		scored = scoring[float32](e)
	}
	n := tensor.TypeOf(x).Dim(0)
	if columns := tensor.TypeOf(x).Dim(1); columns < e.columns && columns != tensor.Unknown {
		c.fail("%d columns, and a node reads column %d", columns, e.columns-1)
	}
	out := c.nodeRoutine(c.op.Type, func(in []*array.Array) ([]*array.Array, error) {
		labels, scores, err := scored(in[0])
		return []*array.Array{labels, scores}, err
	}, []variable{x}, tensor.NewType(array.Int64, n), tensor.NewType(tensor.TypeOf(x).DType(), n, e.outputs))
	if e.classify == nil {
		return c.out(out[1], elem)
	}
	return []*value{c.typed(out[0], e.classify.labels.elem), c.typed(out[1], elem)}
}

// check fails if a child or a target is none, or if a row would never come to a leaf. It finds how many columns there are.
func (f *forest[T]) check(c *call) {
	// The list of leaves has one more entry, where the last one ends.
	exists := func(child int32) bool { return int(child) < len(f.nodes) && int(^child) < len(f.leaves)-1 }
	for i, n := range f.nodes {
		if n.feature < 0 || n.mode > branchMember || !exists(n.kids[0]) || !exists(n.kids[1]) {
			c.fail("node %d is damaged: its column is %d, its mode %d, its children are %d and %d", i, n.feature, n.mode, n.kids[1], n.kids[0])
		}
		f.columns = max(f.columns, int(n.feature)+1)
	}
	for _, t := range f.targets {
		if t < 0 || int(t) >= f.outputs {
			c.fail("a leaf has a weight of target %d of %d", t, f.outputs)
		}
	}
	for _, r := range f.roots {
		c.failIf(!exists(r), "the root %d is no node", r)
	}
	c.failIf(f.cyclic(), "a node is below itself")
}

// cyclic reports whether a node is below itself: whether some are left when nodes without parents are taken away
// again and again.
func (f *forest[T]) cyclic() bool {
	parents := make([]int32, len(f.nodes))
	for _, n := range f.nodes {
		for _, child := range n.kids {
			if child >= 0 {
				parents[child]++
			}
		}
	}
	var free []int32
	for i, n := range parents {
		if n == 0 {
			free = append(free, int32(i))
		}
	}
	taken := 0
	for ; len(free) > 0; taken++ {
		n := f.nodes[free[len(free)-1]]
		free = free[:len(free)-1]
		for _, child := range n.kids {
			if child < 0 {
				continue
			}
			if parents[child]--; parents[child] == 0 {
				free = append(free, child)
			}
		}
	}
	return taken < len(f.nodes)
}

// scoring returns the function that computes labels and scores of rows, in a type.
func scoring[T float32 | float64](e *forest[float64]) func(x *array.Array) (labels, scores *array.Array, err error) {
	f := &forest[T]{roots: e.roots, leaves: e.leaves, targets: e.targets, weights: numbersAs[T](e.weights), outputs: e.outputs, columns: e.columns,
		base: e.base, combine: e.combine, classify: e.classify, transform: e.transform, plain: true}
	for _, n := range e.nodes {
		f.nodes = append(f.nodes, treeNode[T]{T(n.value), n.feature, n.kids, n.mode, n.missing})
		f.plain = f.plain && n.mode == branchLEQ && !n.missing
	}
	for _, list := range e.members {
		f.members = append(f.members, numbersAs[T](list))
		slices.Sort(f.members[len(f.members)-1])
	}
	return f.run
}

func numbersAs[T float32 | float64, U float32 | float64](list []U) []T {
	return lists.Map(list, func(v U) T { return T(v) })
}

func (f *forest[T]) run(a *array.Array) (labels, scores *array.Array, err error) {
	n, columns := a.Dim(0), a.Dim(1)
	if columns < f.columns {
		return nil, nil, fmt.Errorf("%w: %d columns of at least %d", ErrInput, columns, f.columns)
	}
	if err := fitting(n, f.outputs); err != nil {
		return nil, nil, err
	}
	y := array.New(a.DType(), n, f.outputs)
	z, has := array.Slice[T](y), make([]bool, n*f.outputs)
	f.scores(array.Slice[T](a), columns, z, has)
	found := make([]int64, n)
	row := make([]float64, 0, f.outputs+1)
	for i := range n {
		row = row[:0]
		for _, v := range z[i*f.outputs:][:f.outputs] {
			row = append(row, float64(v))
		}
		class, done := f.finish(row, has[i*f.outputs:][:f.outputs])
		if f.classify != nil {
			found[i] = f.classify.labels.codes[class]
		}
		// There may be fewer scores than columns.
		for j := range f.outputs {
			z[i*f.outputs+j] = 0
			if j < len(done) {
				z[i*f.outputs+j] = T(done[j])
			}
		}
	}
	return array.Of(found, n), y, nil
}
