package computationtest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// jsonComputation is the form that reference cases have computations in. It lacks debug information,
// precomputed indexes and NeedModelDerivative. It includes matrix 0 and sub-matrix 0.
type jsonComputation struct {
	Matrices      [][2]int32                  `json:"matrices"`
	Submatrices   [][5]int32                  `json:"submatrices"`
	Indexes       [][]int32                   `json:"indexes"`
	IndexesMulti  [][]computation.Pair        `json:"indexes_multi"`
	IndexesRanges [][]computation.Pair        `json:"indexes_ranges"`
	Components    []computation.ComponentInfo `json:"components"`
	Commands      []jsonCommand               `json:"commands"`
}

// jsonCommand is a Command in the form ["kPropagate", alpha, arg1, ..., arg7].
type jsonCommand struct{ computation.Command }

func (c *jsonCommand) UnmarshalJSON(data []byte) error {
	var fields []json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if len(fields) < 2 || len(fields) > 9 {
		return fmt.Errorf("a command has a type, alpha and at most seven arguments, not %d fields", len(fields))
	}
	var name string
	var alpha float32
	args := make([]int32, len(fields)-2)
	targets := []any{&name, &alpha}
	for i := range args {
		targets = append(targets, &args[i])
	}
	for i, field := range fields {
		if err := json.Unmarshal(field, targets[i]); err != nil {
			return err
		}
	}
	t := computation.CommandType(0)
	for "k"+t.String() != name {
		if t++; strings.Contains(t.String(), "(") { // a type without a name
			return fmt.Errorf("unknown command type %q", name)
		}
	}
	c.Command = computation.NewScaledCommand(t, alpha, args...)
	return nil
}

// ReadJSON reads a computation of a reference case, and the facts about the components that its commands
// name. Entries of precomputed indexes exist, but are empty. NeedModelDerivative is set if a Backprop
// (not BackpropNoModelUpdate) runs an updatable component, because the form does not tell.
func ReadJSON(r io.Reader) (*computation.Computation, []computation.ComponentInfo, error) {
	var in jsonComputation
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return nil, nil, err
	}
	c := &computation.Computation{Indexes: in.Indexes, IndexesMulti: in.IndexesMulti, IndexesRanges: in.IndexesRanges}
	for _, m := range in.Matrices {
		c.Matrices = append(c.Matrices, computation.MatrixInfo{Rows: m[0], Cols: m[1]})
	}
	for _, s := range in.Submatrices {
		c.Submatrices = append(c.Submatrices, computation.SubMatrixInfo{Matrix: s[0], RowOffset: s[1], NumRows: s[2], ColOffset: s[3], NumCols: s[4]})
	}
	slots := int32(0)
	for _, cmd := range in.Commands {
		c.Commands = append(c.Commands, cmd.Command)
		if cmd.Type == computation.Propagate || cmd.Type.IsBackprop() {
			slots = max(slots, cmd.Precomputed())
		}
		if cmd.Type == computation.Backprop && in.Components[cmd.Component()].Has(component.Updatable) {
			c.NeedModelDerivative = true
		}
	}
	c.PrecomputedIndexes = make([]computation.PrecomputedIndexesInfo, slots+1)
	return c, in.Components, nil
}
