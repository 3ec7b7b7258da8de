package onnxpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// concat returns the dimension and number of dimensions of a Concat.
func concat(a *fgraph.Apply) (axis, rank int, ok bool) {
	if !isNode(a, "Concat") {
		return 0, 0, false
	}
	rank = ir.TypeOf(a.Out()).Rank()
	axis, ok = axisOf(a.Op().(*ir.Op), math.MaxInt64, rank)
	return axis, rank, ok
}

// fuseConcats takes the inputs of all Concats of a chain at once, at the one that is computed last: were each of
// them fused with the next, a chain of n would copy n²/2 inputs. A Concat that is read several times stays,
// because its inputs would be there several times.
func fuseConcats(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	axis, rank, ok := concat(a)
	if !ok {
		return c.Miss("it is no Concat of a known number of dimensions"), nil
	}
	inner := func(v *fgraph.Variable) bool {
		return usedOnce(v) && alongSame(v.Owner(), "Concat", math.MaxInt64, axis, rank)
	}
	if inner(a.Out()) && alongSame(a.Out().Clients()[0].Apply, "Concat", math.MaxInt64, axis, rank) {
		return c.Miss("the Concat that reads it takes its inputs"), nil
	}
	if !slices.ContainsFunc(a.Inputs(), inner) {
		return c.Miss("no input is a Concat along the same dimension that only this one reads"), nil
	}
	var inputs []*fgraph.Variable
	next := reversed(a.Inputs())
	for len(next) > 0 {
		v := next[len(next)-1]
		next = next[:len(next)-1]
		if inner(v) {
			next = append(next, reversed(v.Owner().Inputs())...)
		} else {
			inputs = append(inputs, v)
		}
	}
	return remadeWith(c, a, a.Op().(*ir.Op), inputs...), nil
}

func reversed(list []*fgraph.Variable) []*fgraph.Variable {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func dropEmptyOfConcat(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	axis, _, ok := concat(a)
	if !ok {
		return c.Miss("it is no Concat of a known number of dimensions"), nil
	}
	inputs := slices.DeleteFunc(slices.Clone(a.Inputs()), func(v *fgraph.Variable) bool {
		dims, _ := ir.TypeOf(v).Shape()
		return len(dims) > axis && dims[axis].Is(0)
	})
	if len(inputs) == len(a.Inputs()) || len(inputs) == 0 {
		return c.Miss("no input is known to be empty, or all are"), nil
	}
	return remadeWith(c, a, a.Op().(*ir.Op), inputs...), nil
}

func cancelConcatOfSplit(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	axis, rank, ok := concat(a)
	if !ok || !alongSame(a.Inputs()[0].Owner(), "Split", 0, axis, rank) {
		return c.Miss("it is no Concat of parts of a Split along the same dimension"), nil
	}
	b := a.Inputs()[0].Owner()
	if !slices.Equal(a.Inputs(), b.Outputs()) {
		return c.Miss("its inputs are not all parts of the Split in order"), nil
	}
	return rewrite.Replace(b.Inputs()[0]), nil
}

func fuseConcatOfSlices(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	axis, _, ok := concat(a)
	if !ok {
		return c.Miss("it is no Concat of a known number of dimensions"), nil
	}
	operators := ir.SourceOf(c.Graph()).Operators
	var inputs []*fgraph.Variable
	for rest := a.Inputs(); len(rest) > 0; {
		n, p := meeting(rest, axis)
		v := rest[0]
		if n > 1 {
			var err error
			if v, err = operators.Make("Slice", nil, sliced(v.Owner().Inputs()[0], []stretch{p})...); err != nil {
				return c.Miss("%v", err), nil
			}
		}
		inputs, rest = append(inputs, v), rest[n:]
	}
	if len(inputs) == len(a.Inputs()) {
		return c.Miss("no two inputs are slices of one tensor that meet"), nil
	}
	return remadeWith(c, a, a.Op().(*ir.Op), inputs...), nil
}

// meeting returns how many of the first values are slices of one tensor along a dimension, each of which begins
// where the one before ends, and what they take together. It returns at least 1.
func meeting(list []*fgraph.Variable, axis int) (n int, p stretch) {
	p, ok := alone(list[0].Owner(), axis)
	for n = 1; ok && n < len(list); n++ {
		q, also := alone(list[n].Owner(), axis)
		if !also || q.begin != p.end || list[n].Owner().Inputs()[0] != list[0].Owner().Inputs()[0] {
			break
		}
		p.end = q.end
	}
	return n, p
}

// An input of a Concat that has all that is asked for, and where it begins.
type inputAt struct {
	v           *fgraph.Variable
	begin, size int64
}

// concatEnds are where the inputs of Concats end, as far as their sizes are known. An input may be replaced by one
// whose size is known better, but not by one of another size.
type concatEnds map[*fgraph.Apply][]int64

// inputOf returns the input of a Concat along a dimension that has the elements from begin to end.
func inputOf(c *rewrite.Context, a *fgraph.Apply, axis int, begin, end int64) (inputAt, bool) {
	memo := rewrite.Memo[concatEnds](c)
	if *memo == nil {
		*memo = make(concatEnds)
	}
	ends, last := (*memo)[a], int64(0)
	if len(ends) > 0 {
		last = ends[len(ends)-1]
	}
	// From where the last search stopped, since each of n inputs may be asked for. Behind an input of
	// unknown size no place is known.
	for _, v := range a.Inputs()[len(ends):] {
		dims, _ := ir.TypeOf(v).Shape()
		if axis >= len(dims) {
			break
		}
		size, ok := dims[axis].Number()
		if !ok {
			break
		}
		last += size
		ends = append(ends, last)
	}
	(*memo)[a] = ends
	i, _ := slices.BinarySearch(ends, begin+1) // the first one that ends behind the beginning
	if begin < 0 || i == len(ends) || end > ends[i] {
		return inputAt{}, false
	}
	in := inputAt{v: a.Inputs()[i], size: ends[i]}
	if i > 0 {
		in.begin, in.size = ends[i-1], ends[i]-ends[i-1]
	}
	return in, true
}

func partOfConcat(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Slice", "Gather", "Split") {
		return c.Miss("it takes no part"), nil
	}
	b := a.Inputs()[0].Owner()
	axis, rank, ok := concat(b)
	if !ok {
		return c.Miss("it is no part of a Concat of a known number of dimensions"), nil
	}
	switch a.Op().(*ir.Op).Type {
	case "Slice":
		return partBySlice(c, a, b, axis), nil
	case "Split":
		if !alongSame(a, "Split", 0, axis, rank) {
			return c.Miss("it is along another dimension"), nil
		}
		return partsBySplit(c, a, b, axis), nil
	}
	if !alongSame(a, "Gather", 0, axis, rank) {
		return c.Miss("it is along another dimension"), nil
	}
	return partByGather(c, a, b, axis), nil
}

func partBySlice(c *rewrite.Context, a, b *fgraph.Apply, axis int) rewrite.Result {
	parts, ok := stretches(a)
	i := slices.IndexFunc(parts, func(p stretch) bool { return p.axis == axis })
	if !ok || i < 0 || parts[i].step != 1 || parts[i].begin < 0 {
		return c.Miss("what it takes along dimension %d is not known", axis)
	}
	p := parts[i]
	dims, _ := ir.TypeOf(b.Out()).Shape()
	if size, ok := dims[axis].Number(); ok {
		p, _ = p.within(size)
	}
	if p.end <= p.begin {
		return c.Miss("where it ends is not known, or it is empty")
	}
	in, ok := inputOf(c, b, axis, p.begin, p.end)
	if !ok {
		return c.Miss("no input has all of it")
	}
	if len(parts) == 1 && p.begin == in.begin && p.end == in.begin+in.size {
		return rewrite.Replace(in.v)
	}
	// Other dimensions of the Slice are those of the input as well.
	parts[i].begin, parts[i].end = p.begin-in.begin, p.end-in.begin
	return remade(c, a, "Slice", sliced(in.v, parts)...)
}

func partByGather(c *rewrite.Context, a, b *fgraph.Apply, axis int) rewrite.Result {
	index := a.Inputs()[1]
	list, ok := ir.NumbersOf(index)
	if !ok || len(list) != 1 || list[0] < 0 {
		return c.Miss("it is not one element that is known, from the beginning")
	}
	in, ok := inputOf(c, b, axis, list[0], list[0]+1)
	if !ok {
		return c.Miss("no input is known to have it")
	}
	k, err := ir.Integers([]int64{list[0] - in.begin}, ir.TypeOf(index).Elem(), slices.Repeat([]int64{1}, ir.TypeOf(index).Rank())...)
	if err != nil {
		return c.Miss("%v", err)
	}
	return remadeWith(c, a, a.Op().(*ir.Op), in.v, k)
}

func partsBySplit(c *rewrite.Context, a, b *fgraph.Apply, axis int) rewrite.Result {
	if len(a.Outputs()) != len(b.Inputs()) {
		return c.Miss("it has %d parts, of %d", len(a.Outputs()), len(b.Inputs()))
	}
	for i, v := range a.Outputs() {
		x, _ := ir.TypeOf(v).Shape()
		y, _ := ir.TypeOf(b.Inputs()[i]).Shape()
		if axis >= len(x) || axis >= len(y) || !x[axis].Same(y[axis]) {
			return c.Miss("part %d is not known to have the size of input %d", i, i)
		}
	}
	return rewrite.Replace(slices.Clone(b.Inputs())...)
}
