package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

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

// Area returns the number of elements.
func (r Rect) Area() int64 { return int64(r.R1-r.R0) * int64(r.C1-r.C0) }

// Empty reports whether the rectangle holds no element.
func (r Rect) Empty() bool { return r.R0 >= r.R1 || r.C0 >= r.C1 }

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

// Union returns the bounding rectangle of both.
func (r Rect) Union(s Rect) Rect {
	return Rect{min(r.R0, s.R0), max(r.R1, s.R1), min(r.C0, s.C0), max(r.C1, s.C1)}
}

// whole returns all of a matrix.
func whole(t MatrixType) Rect { return Rect{0, t.Rows, 0, t.Cols} }

// sizeOf returns the type of a matrix that is rectangle r of another.
func sizeOf(r Rect) MatrixType { return MatrixType{Rows: r.Rows(), Cols: r.Cols()} }
