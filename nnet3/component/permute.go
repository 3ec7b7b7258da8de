package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// permuteComponent changes the order of the columns: column j of the output is column ColumnMap[j] of the input.
type permuteComponent struct {
	columnMap []int32
	inverse   []int32
}

// Type is "PermuteComponent".
func (c *permuteComponent) Type() string { return "PermuteComponent" }

// InputDim is the number of columns.
func (c *permuteComponent) InputDim() int { return len(c.columnMap) }

// OutputDim is the number of columns.
func (c *permuteComponent) OutputDim() int { return len(c.columnMap) }

// Properties of a permutation.
func (c *permuteComponent) Properties() Properties { return Simple }

// Init knows column-map.
func (c *permuteComponent) Init(cfg *ConfigLine) error {
	cfg.require("column-map")
	c.columnMap, _ = cfg.Ints("column-map")
	if !c.invert() {
		cfg.Fail("column-map is not a permutation of 0, 1, …")
	}
	return cfg.Err()
}

// invert makes the inverse permutation. It reports false if there is none.
func (c *permuteComponent) invert() bool {
	n := len(c.columnMap)
	c.inverse = slices.Repeat([]int32{-1}, n)
	for j, f := range c.columnMap {
		if f < 0 || int(f) >= n || c.inverse[f] >= 0 {
			return false
		}
		c.inverse[f] = int32(j)
	}
	return n > 0
}

// Fields of the component.
func (c *permuteComponent) Fields(f *Fields) {
	f.Ints("<ColumnMap>", &c.columnMap)
	if f.Reading() {
		f.Check(c.invert(), "the column map is not a permutation of 0, 1, …")
	}
}

// Propagate permutes the columns.
func (c *permuteComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.PermuteCols(out, in, c.columnMap)
	return nil, nil
}

// Backprop permutes the columns back.
func (c *permuteComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.PermuteCols(inDeriv, outDeriv, c.inverse)
	return nil
}
