package lower

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Fill is a matrix of one constant.
type Fill struct {
	Rows, Cols int32
	Value      float32
}

// String returns the op with its constant.
func (o Fill) String() string { return fmt.Sprintf("Fill{%g}", o.Value) }

// NewFill returns a matrix of one constant.
func NewFill(rows, cols int32, value float32) *fgraph.Variable {
	return fgraph.NewApply(Fill{rows, cols, value}, nil, MatrixType{Rows: rows, Cols: cols}).Out()
}

// Block is a rectangle of its input: a view, which costs nothing.
type Block struct{ Rect }

// String returns the op with its rows and columns, ends excluded.
func (o Block) String() string { return fmt.Sprintf("Block{%d:%d,%d:%d}", o.R0, o.R1, o.C0, o.C1) }

// ViewMap returns that the output is a view of the input.
func (o Block) ViewMap() []fgraph.Alias { return blockView }

var blockView = []fgraph.Alias{{Output: 0, Input: 0}}

// ViewRegion returns the part of the input that the output shows.
func (o Block) ViewRegion(int) fgraph.Region {
	return fgraph.Region{R0: int(o.R0), R1: int(o.R1), C0: int(o.C0), C1: int(o.C1)}
}

// NewBlock returns rectangle r of x: x itself if r is all of it, and never a block of a block.
func NewBlock(x *fgraph.Variable, r Rect) *fgraph.Variable {
	if r == whole(TypeOf(x)) {
		return x
	}
	if a := x.Owner(); a != nil {
		if b, ok := a.Op().(Block); ok {
			return NewBlock(a.Inputs()[0], r.Shift(b.R0, b.C0))
		}
	}
	return fgraph.NewApply(Block{r}, []*fgraph.Variable{x}, sizeOf(r)).Out()
}

// Resolve looks through the Block that makes v, if any: v is rectangle r of root.
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

// TypeOf returns the size of a matrix, the zero MatrixType for a value that is not one.
func TypeOf(v *fgraph.Variable) MatrixType {
	t, _ := v.Type().(MatrixType)
	return t
}

// Assemble is all movement of rows in one op. Every term puts rows and columns of an input, scaled,
// at a position of the result. Overlapping terms add up; what no term covers is zero.
// Concatenation, stacking, selection and scattering of rows, sums and scaling are special cases,
// which String calls by these names.
type Assemble struct {
	Rows, Cols int32
	Terms      []Term  // in order of their first rows
	reach      []int32 // by term: the end of the rows that it and the terms before it write
}

// NewAssemble returns the rows×cols matrix that the terms make of the inputs, which they name by
// number. It sorts the terms in place, and drops unused and repeated inputs.
func NewAssemble(rows, cols int32, terms []Term, inputs []*fgraph.Variable) *fgraph.Variable {
	sortTerms(terms)
	renumber := slices.Repeat([]int32{-1}, len(inputs))
	kept := inputList{list: make([]*fgraph.Variable, 0, len(inputs))}
	for i := range terms {
		n := &terms[i].Input
		if renumber[*n] < 0 {
			renumber[*n] = kept.number(inputs[*n])
		}
		*n = renumber[*n]
	}
	return fgraph.NewApply(newAssemble(rows, cols, terms), kept.list, MatrixType{Rows: rows, Cols: cols}).Out()
}

// newAssemble returns the op of sorted terms.
func newAssemble(rows, cols int32, terms []Term) *Assemble {
	reach := make([]int32, len(terms))
	end := int32(0)
	for i := range terms {
		end = max(end, terms[i].lastDst()+1)
		reach[i] = end
	}
	return &Assemble{rows, cols, terms, reach}
}

// inputList is a list of distinct variables.
type inputList struct {
	list []*fgraph.Variable
	at   map[*fgraph.Variable]int32 // positions; nil while the list is short
}

// number returns the position of v, which it appends if it is missing.
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

// Between returns a range [lo, hi) of terms that includes all that write a row of [r0, r1).
func (o *Assemble) Between(r0, r1 int32) (lo, hi int) {
	lo, _ = slices.BinarySearch(o.reach, r0+1)
	hi, _ = slices.BinarySearchFunc(o.Terms, r1, func(t Term, r int32) int { return int(t.DstRow - r) })
	return lo, max(lo, hi)
}

// EqualOp reports whether the other op has equal terms.
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
	h := hashOf(o.Rows, o.Cols)
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

// hash is FNV-1a over int32s instead of bytes.
type hash uint64

// hashOf hashes numbers.
func hashOf(numbers ...int32) hash {
	h := hash(14695981039346656037)
	for _, x := range numbers {
		h = h.add(x)
	}
	return h
}

func (h hash) add(x int32) hash { return (h ^ hash(uint32(x))) * 1099511628211 }

// String returns the name of the special case that the op is, with its size.
func (o *Assemble) String() string { return fmt.Sprintf("%s{%dx%d}", o.kind(), o.Rows, o.Cols) }

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

// Describe returns the terms as text, a line each.
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

// RowRanges sums ranges of rows: row i of the result is the sum of rows [Ranges[i][0],
// Ranges[i][1]) of the input, or zero for (-1, -1).
type RowRanges struct {
	Cols   int32
	Ranges []computation.Pair
}

// String returns the op with the number of sums.
func (o *RowRanges) String() string { return fmt.Sprintf("RowRanges{%d}", len(o.Ranges)) }

// EqualOp reports whether the other op sums the same ranges.
func (o *RowRanges) EqualOp(other fgraph.Op) bool {
	p, ok := other.(*RowRanges)
	return ok && o.Cols == p.Cols && slices.Equal(o.Ranges, p.Ranges)
}

// HashOp agrees with EqualOp.
func (o *RowRanges) HashOp() uint64 {
	h := hashOf(o.Cols)
	for _, r := range o.Ranges {
		h = h.add(r[0]).add(r[1])
	}
	return uint64(h)
}

// MatrixType is the type of a matrix value: its size.
type MatrixType struct{ Rows, Cols int32 }

// String returns the size: 3x4.
func (t MatrixType) String() string { return fmt.Sprintf("%dx%d", t.Rows, t.Cols) }

// Bytes returns the size of the elements.
func (t MatrixType) Bytes() int64 { return 4 * int64(t.Rows) * int64(t.Cols) }

// Dialect returns "nnet3".
func (t MatrixType) Dialect() string { return "nnet3" }

// Accepts reports whether u is a matrix of the same size.
func (t MatrixType) Accepts(u fgraph.Type) bool { return u == fgraph.Type(t) }

// StateType is the type of what a component learns: its gradient and its statistics. Commands with
// such an effect take a state and return a new one, so none is lost and none overtakes another.
type StateType struct{ Component int32 }

// String returns the type with the number of the component.
func (t StateType) String() string { return fmt.Sprintf("state(%d)", t.Component) }

// Accepts reports whether u is the state of the same component.
func (t StateType) Accepts(u fgraph.Type) bool { return u == fgraph.Type(t) }

// MemoType is the type of what the forward pass of a component keeps for its backward pass.
type MemoType struct{ Component int32 }

// String returns the type with the number of the component.
func (t MemoType) String() string { return fmt.Sprintf("memo(%d)", t.Component) }

// Accepts reports whether u is a memo of the same component.
func (t MemoType) Accepts(u fgraph.Type) bool { return u == fgraph.Type(t) }

// A Rect is rows [R0, R1) and columns [C0, C1) of a matrix.
type Rect struct{ R0, R1, C0, C1 int32 }

// Rows returns the number of rows.
func (r Rect) Rows() int32 { return r.R1 - r.R0 }

// Cols returns the number of columns.
func (r Rect) Cols() int32 { return r.C1 - r.C0 }

// area returns the number of elements.
func (r Rect) area() int64 { return int64(r.R1-r.R0) * int64(r.C1-r.C0) }

// empty reports whether the rectangle holds no element.
func (r Rect) empty() bool { return r.R0 >= r.R1 || r.C0 >= r.C1 }

// intersect returns the common part of two rectangles.
func (r Rect) intersect(s Rect) Rect {
	return Rect{max(r.R0, s.R0), min(r.R1, s.R1), max(r.C0, s.C0), min(r.C1, s.C1)}
}

// Overlaps reports whether two rectangles have a common element.
func (r Rect) Overlaps(s Rect) bool { return r.R0 < s.R1 && s.R0 < r.R1 && r.C0 < s.C1 && s.C0 < r.C1 }

// Contains reports whether s lies in r.
func (r Rect) Contains(s Rect) bool {
	return r.R0 <= s.R0 && s.R1 <= r.R1 && r.C0 <= s.C0 && s.C1 <= r.C1
}

// Shift returns the rectangle moved down by dr and right by dc.
func (r Rect) Shift(dr, dc int32) Rect { return Rect{r.R0 + dr, r.R1 + dr, r.C0 + dc, r.C1 + dc} }

// union returns the bounding rectangle of both.
func (r Rect) union(s Rect) Rect {
	return Rect{min(r.R0, s.R0), max(r.R1, s.R1), min(r.C0, s.C0), max(r.C1, s.C1)}
}

// whole returns all of a matrix.
func whole(t MatrixType) Rect { return Rect{0, t.Rows, 0, t.Cols} }

// sizeOf returns the type of a matrix that is rectangle r of another.
func sizeOf(r Rect) MatrixType { return MatrixType{Rows: r.Rows(), Cols: r.Cols()} }
