package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// MatrixType is the type of a matrix value: its size.
type MatrixType struct{ Rows, Cols int32 }

// String prints the type as rows×cols.
func (t MatrixType) String() string { return fmt.Sprintf("%dx%d", t.Rows, t.Cols) }

// Dialect returns "nnet3".
func (t MatrixType) Dialect() string { return "nnet3" }

// Accepts reports whether a value of type u may stand where t is expected: the sizes must be the same.
func (t MatrixType) Accepts(u fgraph.Type) bool {
	return u == fgraph.Type(t)
}

// StateType is the type of what a component learns or remembers across commands: its gradient and its statistics.
// Commands that have such an effect take the state and give a new one, so that none is lost and none overtakes another.
type StateType struct{ Component int32 }

// String names the component by number.
func (t StateType) String() string { return fmt.Sprintf("state(%d)", t.Component) }

// Accepts reports whether u is the same component's state.
func (t StateType) Accepts(u fgraph.Type) bool { return u == fgraph.Type(t) }

// MemoType is the type of what a component's forward pass hands to its backward pass.
type MemoType struct{ Component int32 }

// String names the component by number.
func (t MemoType) String() string { return fmt.Sprintf("memo(%d)", t.Component) }

// Accepts reports whether u is a memo of the same component.
func (t MemoType) Accepts(u fgraph.Type) bool { return u == fgraph.Type(t) }

// A Rect is the rows [R0, R1) and the columns [C0, C1) of a matrix.
type Rect struct{ R0, R1, C0, C1 int32 }

// Area is the number of elements.
func (r Rect) Area() int64 { return int64(r.R1-r.R0) * int64(r.C1-r.C0) }

func whole(t MatrixType) Rect { return Rect{0, t.Rows, 0, t.Cols} }

// Empty reports whether the rectangle holds no element.
func (r Rect) Empty() bool { return r.R0 >= r.R1 || r.C0 >= r.C1 }

// Intersect is the common part of two rectangles.
func (r Rect) Intersect(s Rect) Rect {
	return Rect{max(r.R0, s.R0), min(r.R1, s.R1), max(r.C0, s.C0), min(r.C1, s.C1)}
}

// Overlaps reports whether the rectangles have an element in common.
func (r Rect) Overlaps(s Rect) bool {
	return r.R0 < s.R1 && s.R0 < r.R1 && r.C0 < s.C1 && s.C0 < r.C1
}

// Contains reports whether s lies in r.
func (r Rect) Contains(s Rect) bool {
	return r.R0 <= s.R0 && s.R1 <= r.R1 && r.C0 <= s.C0 && s.C1 <= r.C1
}

// Shift moves the rectangle down by dr and right by dc.
func (r Rect) Shift(dr, dc int32) Rect { return Rect{r.R0 + dr, r.R1 + dr, r.C0 + dc, r.C1 + dc} }

// Union is the smallest rectangle that holds both.
func (r Rect) Union(s Rect) Rect {
	return Rect{min(r.R0, s.R0), max(r.R1, s.R1), min(r.C0, s.C0), max(r.C1, s.C1)}
}

// Rows is the number of rows.
func (r Rect) Rows() int32 { return r.R1 - r.R0 }

// Cols is the number of columns.
func (r Rect) Cols() int32 { return r.C1 - r.C0 }
