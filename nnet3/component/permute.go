package component

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// permuteComponent changes the order of the columns: column j of the output is column columnMap[j]
// of the input.
type permuteComponent struct {
	columnMap []int32
	inverse   []int32
}

func (c *permuteComponent) Type() string           { return "PermuteComponent" }
func (c *permuteComponent) InputDim() int          { return len(c.columnMap) }
func (c *permuteComponent) OutputDim() int         { return len(c.columnMap) }
func (c *permuteComponent) Properties() Properties { return Simple }

// Init reads column-map.
func (c *permuteComponent) Init(cfg *ConfigLine) {
	cfg.require("column-map")
	c.columnMap, _ = cfg.Ints("column-map")
	cfg.check(c.invert())
}

// invert makes the inverse permutation. It returns a problem if there is none.
func (c *permuteComponent) invert() (problem string) {
	const notPermutation = "the column map is not a permutation of 0, 1, …"
	n := len(c.columnMap)
	c.inverse = slices.Repeat([]int32{-1}, n)
	for j, f := range c.columnMap {
		if f < 0 || int(f) >= n || c.inverse[f] >= 0 {
			return notPermutation
		}
		c.inverse[f] = int32(j)
	}
	if n == 0 {
		return notPermutation
	}
	return ""
}

func (c *permuteComponent) Fields(f *Fields) {
	f.Ints("<ColumnMap>", &c.columnMap)
	if f.Reading() {
		f.check(c.invert())
	}
}

// Propagate permutes the columns.
func (c *permuteComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	kernel.PermuteCols(out, in, c.columnMap)
	return nil, nil
}

// Backprop permutes the columns back.
func (c *permuteComponent) Backprop(w *Workspace, pass BackwardPass) error {
	kernel.PermuteCols(pass.InDeriv, pass.OutDeriv, c.inverse)
	return nil
}
