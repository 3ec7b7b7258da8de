package lower

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Fill is a matrix of one constant.
type Fill struct {
	Rows, Cols int32
	Value      float32
}

// String names the op and its constant.
func (o Fill) String() string { return fmt.Sprintf("Fill{%g}", o.Value) }

// NewFill applies a Fill.
func NewFill(rows, cols int32, value float32) *fgraph.Variable {
	return fgraph.NewApply(Fill{rows, cols, value}, nil, MatrixType{Rows: rows, Cols: cols}).Out()
}

// EqualOp reports whether the other op is the same.
func (o Fill) EqualOp(other fgraph.Op) bool { return other == fgraph.Op(o) }

// HashOp agrees with EqualOp.
func (o Fill) HashOp() uint64 {
	return uint64(newHash().add(o.Rows).add(o.Cols).add(int32(math.Float32bits(o.Value + 0)))) // +0 turns -0 into 0
}

// Block is a rectangle of its input, a view that costs nothing.
type Block struct{ Rect }

// EqualOp reports whether the other op is the same.
func (o Block) EqualOp(other fgraph.Op) bool { return other == fgraph.Op(o) }

// HashOp agrees with EqualOp.
func (o Block) HashOp() uint64 {
	return uint64(newHash().add(o.R0).add(o.R1).add(o.C0).add(o.C1))
}

// String prints the rectangle as rows and columns, the ends excluded.
func (o Block) String() string { return fmt.Sprintf("Block{%d:%d,%d:%d}", o.R0, o.R1, o.C0, o.C1) }

// ViewMap says that the output is a view of the input.
func (o Block) ViewMap() []fgraph.Alias { return blockView }

var blockView = []fgraph.Alias{{Output: 0, Input: 0}}

// ViewRegion says which part of the input the output shows.
func (o Block) ViewRegion(int) fgraph.Region {
	return fgraph.Region{R0: int(o.R0), R1: int(o.R1), C0: int(o.C0), C1: int(o.C1)}
}

// NewBlock is rectangle r of x: x itself where r is all of it, and never a block of a block.
func NewBlock(x *fgraph.Variable, r Rect) *fgraph.Variable {
	if r == whole(TypeOf(x)) {
		return x
	}
	if a := x.Owner(); a != nil {
		if b, ok := a.Op().(Block); ok {
			return NewBlock(a.Inputs()[0], r.Shift(b.R0, b.C0))
		}
	}
	return fgraph.NewApply(Block{r}, []*fgraph.Variable{x}, MatrixType{Rows: r.Rows(), Cols: r.Cols()}).Out()
}

// Resolve looks through the Block that makes v, if one does: v is rectangle r of root.
func Resolve(v *fgraph.Variable) (root *fgraph.Variable, r Rect) {
	r = whole(TypeOf(v))
	for {
		a := v.Owner()
		if a == nil {
			return v, r
		}
		b, ok := a.Op().(Block)
		if !ok {
			return v, r
		}
		v, r = a.Inputs()[0], r.Shift(b.R0, b.C0)
	}
}

// TypeOf is the size of a matrix value. It is the zero MatrixType for a value of another type.
func TypeOf(v *fgraph.Variable) MatrixType {
	t, _ := v.Type().(MatrixType)
	return t
}

// Assemble is all movement of rows in one op: every term puts rows and columns of an input, scaled, at a place. What
// overlaps adds up; what no term covers is zero. Concatenation, stacking, selection and scattering of rows, sums and scaling
// are special cases, and String prints them under those names.
type Assemble struct {
	Rows, Cols int32
	Terms      []Term  // in order of their first rows
	reach      []int32 // by term: the end of the rows that it and those before it write
}

// NewAssemble applies an Assemble. The terms name the inputs by number; they are put in order, and inputs that no term names
// or that appear twice are dropped.
func NewAssemble(rows, cols int32, terms []Term, inputs []*fgraph.Variable) *fgraph.Variable {
	sortTerms(terms)
	renumber := make([]int32, len(inputs))
	for i := range renumber {
		renumber[i] = -1
	}
	kept := inputList{list: make([]*fgraph.Variable, 0, len(inputs))}
	for i := range terms {
		n := &terms[i].Input
		if renumber[*n] < 0 {
			renumber[*n] = kept.number(inputs[*n])
		}
		*n = renumber[*n]
	}
	reach := make([]int32, len(terms))
	end := int32(0)
	for i := range terms {
		end = max(end, terms[i].lastDst()+1)
		reach[i] = end
	}
	return fgraph.NewApply(&Assemble{rows, cols, terms, reach}, kept.list, MatrixType{Rows: rows, Cols: cols}).Out()
}

// inputList numbers variables.
type inputList struct {
	list []*fgraph.Variable
	at   map[*fgraph.Variable]int32 // nil while the list is short
}

// number is the number of v, which is added to the list if it is not there.
func (l *inputList) number(v *fgraph.Variable) int32 {
	const short = 16
	if l.at != nil {
		if n, ok := l.at[v]; ok {
			return n
		}
	} else if n := slices.Index(l.list, v); n >= 0 {
		return int32(n)
	}
	n := int32(len(l.list))
	l.list = append(l.list, v)
	switch {
	case l.at != nil:
		l.at[v] = n
	case len(l.list) > short:
		l.at = make(map[*fgraph.Variable]int32, 4*short)
		for i, w := range l.list {
			l.at[w] = int32(i)
		}
	}
	return n
}

// Between is the range [lo, hi) of terms outside which no term writes a row of [r0, r1).
func (o *Assemble) Between(r0, r1 int32) (lo, hi int) {
	lo, _ = slices.BinarySearch(o.reach, r0+1)
	hi, _ = slices.BinarySearchFunc(o.Terms, r1, func(t Term, r int32) int { return int(t.DstRow - r) })
	return lo, max(lo, hi)
}

// EqualOp reports whether the other op assembles in the same way.
func (o *Assemble) EqualOp(other fgraph.Op) bool {
	p, ok := other.(*Assemble)
	if !ok || o.Rows != p.Rows || o.Cols != p.Cols || len(o.Terms) != len(p.Terms) {
		return false
	}
	for i := range o.Terms {
		if !equalTerms(&o.Terms[i], &p.Terms[i]) {
			return false
		}
	}
	return true
}

// HashOp agrees with EqualOp.
func (o *Assemble) HashOp() uint64 {
	h := newHash().add(o.Rows).add(o.Cols)
	for i := range o.Terms {
		t := &o.Terms[i]
		h = h.add(t.Input).add(int32(math.Float32bits(t.Scale)))
		h = h.add(t.DstRow).add(t.SrcRow).add(t.NumRows).add(t.DstCol).add(t.SrcCol).add(t.NumCols)
		for _, p := range t.Rows {
			h = h.add(p.Dst).add(p.Src)
		}
	}
	return uint64(h)
}

// hash is FNV-1a, over whole numbers instead of bytes.
type hash uint64

func newHash() hash { return 14695981039346656037 }

func (h hash) add(x int32) hash { return (h ^ hash(uint32(x))) * 1099511628211 }

// String names the special case that the op is, with its size.
func (o *Assemble) String() string {
	return fmt.Sprintf("%s{%dx%d}", o.kind(), o.Rows, o.Cols)
}

func (o *Assemble) kind() string {
	all := whole(MatrixType{Rows: o.Rows, Cols: o.Cols})
	sameRows, sameCols, wholes, blocks, scaled := true, true, true, true, false
	var area int64
	for i := range o.Terms {
		t := &o.Terms[i]
		d := t.Dst()
		sameRows = sameRows && d.R0 == 0 && d.R1 == o.Rows
		sameCols = sameCols && d.C0 == 0 && d.C1 == o.Cols
		wholes = wholes && d == all
		blocks = blocks && t.Contiguous()
		scaled = scaled || t.Scale != 1
		area += int64(t.NumRows) * int64(t.NumCols)
	}
	full := area == int64(o.Rows)*int64(o.Cols)
	switch {
	case len(o.Terms) == 1 && blocks && wholes && scaled:
		return "Scale"
	case len(o.Terms) == 1 && !blocks && full && sameCols:
		return "SelectRows"
	case len(o.Terms) > 1 && wholes:
		return "Sum"
	case len(o.Terms) > 1 && sameRows && full:
		return "Concat"
	case len(o.Terms) > 1 && sameCols && blocks && full:
		return "Stack"
	case len(o.Terms) == 1 && sameCols:
		return "Scatter"
	}
	return "Assemble"
}

// Describe lists the terms, a line each.
func (o *Assemble) Describe() string {
	var b strings.Builder
	for i := range o.Terms {
		t := &o.Terms[i]
		d, s := t.Dst(), t.Src()
		fmt.Fprintf(&b, "[%d:%d,%d:%d] += %g * in%d[%d:%d,%d:%d]", d.R0, d.R1, d.C0, d.C1, t.Scale, t.Input, s.R0, s.R1, s.C0, s.C1)
		if !t.Contiguous() {
			fmt.Fprintf(&b, " (%d rows one by one)", t.NumRows)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// RowRanges sums ranges of rows: row i of the result is the sum of the rows [Ranges[i][0], Ranges[i][1]) of the input, zero
// for (-1, -1).
type RowRanges struct {
	Cols   int32
	Ranges []computation.Pair
}

// String names the op and the number of sums.
func (o *RowRanges) String() string { return fmt.Sprintf("RowRanges{%d}", len(o.Ranges)) }

// EqualOp reports whether the other op sums the same ranges.
func (o *RowRanges) EqualOp(other fgraph.Op) bool {
	p, ok := other.(*RowRanges)
	if !ok || o.Cols != p.Cols || len(o.Ranges) != len(p.Ranges) {
		return false
	}
	for i := range o.Ranges {
		if o.Ranges[i] != p.Ranges[i] {
			return false
		}
	}
	return true
}

// HashOp agrees with EqualOp.
func (o *RowRanges) HashOp() uint64 {
	h := newHash().add(o.Cols)
	for _, r := range o.Ranges {
		h = h.add(r[0]).add(r[1])
	}
	return uint64(h)
}

// Component is a component as an op knows it: with its number in the network, or -1 where an optimization derived it, and
// under a name for people.
type Component struct {
	C      component.Component
	Number int32
	Name   string
}

func (c Component) has(p component.Properties) bool { return c.C.Properties()&p != 0 }

// Propagate runs a component forward. Its inputs are the matrix x, where the component has an input, the matrix that it adds
// to, where it accumulates, and the state, where it stores statistics. Its outputs are the matrix y, then the memo, then the
// new state, the last two only where there are such. Whether the component adds to its output is no matter here, unless it
// accumulates: y is what it adds.
type Propagate struct {
	Component
	Precomputed *computation.PrecomputedIndexesInfo // nil for a simple component
	StoreStats  bool
	UsesMemo    bool
	// Accumulate gives the op a second matrix, of the size of y, and y is the sum. The component must be one that adds.
	Accumulate bool
	// InPlace permits the output to be computed over the matrix that is added to or, without one, over x. That destroys it.
	InPlace bool
	// Instance keeps apart runs that must not be merged, because they are random or have an effect; 0 elsewhere.
	Instance int32
}

// String names the component.
func (o Propagate) String() string {
	if o.InPlace {
		return "Propagate{" + o.Name + ",inplace}"
	}
	return "Propagate{" + o.Name + "}"
}

// EqualOp reports whether the other op runs the same component in the same way. Components are pointers, and are compared as such.
func (o Propagate) EqualOp(other fgraph.Op) bool { return other == fgraph.Op(o) }

// HashOp agrees with EqualOp. Ops that differ are mostly told apart by their inputs, so that a few fields are enough.
func (o Propagate) HashOp() uint64 { return uint64(newHash().add(o.Number).add(o.Instance)) }

// InputAdded is the number of the input that holds what an accumulating op adds to, -1 for another op.
func (o Propagate) InputAdded() int {
	switch {
	case !o.Accumulate:
		return -1
	case o.C.Properties()&component.Simple == 0 && o.C.InputDim() == 0:
		return 0
	}
	return 1
}

// DestroyMap says which input an in-place run destroys.
func (o Propagate) DestroyMap() []fgraph.Alias {
	if o.InPlace {
		return []fgraph.Alias{{Output: 0, Input: max(o.InputAdded(), 0)}}
	}
	return nil
}

// Backprop runs a component backward. Its inputs are, where the component needs them, the input value x and the output value
// y, then the derivative dy, then, where there are such, the memo, the matrix that it adds to and the state. Its outputs are
// the derivative dx, where it is wanted, and the new state.
type Backprop struct {
	Component
	Precomputed        *computation.PrecomputedIndexesInfo
	HasX, HasY, HasDX  bool
	UsesMemo, HasState bool
	ModelUpdate        bool
	// Accumulate gives the op a further matrix, of the size of dx, and dx is the sum. The component must be one that adds.
	Accumulate bool
	// InPlace permits dx to be computed over the matrix that is added to or, without one, over dy. That destroys it.
	InPlace  bool
	Instance int32
}

// String names the component.
func (o Backprop) String() string {
	if o.InPlace {
		return "Backprop{" + o.Name + ",inplace}"
	}
	return "Backprop{" + o.Name + "}"
}

// EqualOp reports whether the other op runs the same component in the same way. Components are pointers, and are compared as such.
func (o Backprop) EqualOp(other fgraph.Op) bool { return other == fgraph.Op(o) }

// HashOp agrees with EqualOp. Ops that differ are mostly told apart by their inputs, so that a few fields are enough.
func (o Backprop) HashOp() uint64 { return uint64(newHash().add(o.Number).add(o.Instance)) }

// InputDeriv is the number of the input that holds dy.
func (o Backprop) InputDeriv() int {
	n := 0
	if o.HasX {
		n++
	}
	if o.HasY {
		n++
	}
	return n
}

// InputAdded is the number of the input that holds what an accumulating op adds to, -1 for another op.
func (o Backprop) InputAdded() int {
	switch {
	case !o.Accumulate:
		return -1
	case o.UsesMemo:
		return o.InputDeriv() + 2
	}
	return o.InputDeriv() + 1
}

// DestroyMap says which input an in-place run destroys.
func (o Backprop) DestroyMap() []fgraph.Alias {
	switch {
	case !o.InPlace:
		return nil
	case o.Accumulate:
		return []fgraph.Alias{{Output: 0, Input: o.InputAdded()}}
	}
	return []fgraph.Alias{{Output: 0, Input: o.InputDeriv()}}
}
