package computation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/component"
)

// ErrJSON is the kind of all errors about the JSON form of computations.
var ErrJSON = errors.New("invalid JSON computation")

// jsonComputation is the JSON form of a computation. It lacks debug information, precomputed
// indexes and NeedModelDerivative. It includes matrix 0 and sub-matrix 0.
type jsonComputation struct {
	Matrices      [][]int32       `json:"matrices"`
	Submatrices   [][]int32       `json:"submatrices"`
	Indexes       [][]int32       `json:"indexes"`
	IndexesMulti  [][]Pair        `json:"indexes_multi"`
	IndexesRanges [][]Pair        `json:"indexes_ranges"`
	Components    []ComponentInfo `json:"components"`
	Commands      []jsonCommand   `json:"commands"`
}

// jsonCommand is a Command in the form ["kPropagate", alpha, arg1, ..., arg7].
type jsonCommand struct{ Command }

func (c *jsonCommand) UnmarshalJSON(data []byte) error {
	var fields []json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if len(fields) < 2 || len(fields) > 9 {
		return fmt.Errorf("a command has a type, alpha and at most seven arguments, not %d fields", len(fields))
	}
	var name string
	if err := json.Unmarshal(fields[0], &name); err != nil {
		return err
	}
	t, ok := parseCommandType(name)
	if !ok {
		return fmt.Errorf("unknown command type %q", fileio.Excerpt(name, 0))
	}
	var alpha float32
	if err := json.Unmarshal(fields[1], &alpha); err != nil {
		return fmt.Errorf("alpha of %s: %w", name, err)
	}
	args := make([]int32, len(fields)-2)
	for i, field := range fields[2:] {
		if err := json.Unmarshal(field, &args[i]); err != nil {
			return fmt.Errorf("argument %d of %s: %w", i+1, name, err)
		}
	}
	c.Command = NewScaledCommand(t, alpha, args...)
	return nil
}

// ReadJSON reads a computation in the JSON form that WriteJSON writes and that the reference cases
// have, and the facts about the components that its commands name. The form lacks debug
// information, the stride demands of matrices, and precomputed indexes: their entries exist, but
// are empty. NeedModelDerivative is set if a Backprop (not BackpropNoModelUpdate) runs an updatable
// component, because the form does not tell.
//
// All numbers are in range. ReadJSON reads at most fileio.MaxText bytes. Errors wrap ErrJSON.
func ReadJSON(r io.Reader) (*Computation, []ComponentInfo, error) {
	dec := json.NewDecoder(fileio.Limit(r, "the computation", fileio.MaxText))
	var in jsonComputation
	if err := dec.Decode(&in); err != nil {
		return nil, nil, fmt.Errorf("%w: at byte %d: %w", ErrJSON, dec.InputOffset(), err)
	}
	c := &Computation{
		Matrices:      make([]MatrixInfo, len(in.Matrices)),
		Submatrices:   make([]SubMatrixInfo, len(in.Submatrices)),
		Indexes:       in.Indexes,
		IndexesMulti:  in.IndexesMulti,
		IndexesRanges: in.IndexesRanges,
		Commands:      make([]Command, len(in.Commands)),
	}
	for i, m := range in.Matrices {
		if len(m) != 2 {
			return nil, nil, fmt.Errorf("%w: matrix %d has %d numbers, want rows and columns", ErrJSON, i, len(m))
		}
		c.Matrices[i] = MatrixInfo{Rows: m[0], Cols: m[1]}
	}
	for i, s := range in.Submatrices {
		if len(s) != 5 {
			return nil, nil, fmt.Errorf("%w: sub-matrix %d has %d numbers, want matrix, row offset, rows, column offset, columns", ErrJSON, i, len(s))
		}
		c.Submatrices[i] = SubMatrixInfo{Matrix: s[0], RowOffset: s[1], NumRows: s[2], ColOffset: s[3], NumCols: s[4]}
	}
	infos, slots := in.Components, int32(0)
	for i, cmd := range in.Commands {
		c.Commands[i] = cmd.Command
		if cmd.Type == Propagate || cmd.Type.IsBackprop() {
			slots = max(slots, cmd.Precomputed())
		}
		if cmd.Type == Backprop && cmd.Component() >= 0 && int(cmd.Component()) < len(infos) && infos[cmd.Component()].Has(component.Updatable) {
			c.NeedModelDerivative = true
		}
	}
	// A compiler makes at most one entry a command. More is a mistake, which must not cost memory.
	if int(slots) > len(c.Commands) {
		return nil, nil, fmt.Errorf("%w: %d commands use precomputed indexes number %d", ErrJSON, len(c.Commands), slots)
	}
	c.PrecomputedIndexes = make([]PrecomputedIndexesInfo, slots+1)
	if err := c.checkStructure(&NetworkInfo{Components: infos}); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrJSON, err)
	}
	return c, infos, nil
}

// WriteJSON writes a computation in the form that ReadJSON reads, one command a line.
func WriteJSON(w io.Writer, c *Computation, components []ComponentInfo) error {
	out := bufio.NewWriter(w)
	head := jsonComputation{ // with lists that are empty, not nil, so that they print as []
		Matrices:      make([][]int32, len(c.Matrices)),
		Submatrices:   make([][]int32, len(c.Submatrices)),
		Indexes:       append([][]int32{}, c.Indexes...),
		IndexesMulti:  append([][]Pair{}, c.IndexesMulti...),
		IndexesRanges: append([][]Pair{}, c.IndexesRanges...),
		Components:    append([]ComponentInfo{}, components...),
		Commands:      []jsonCommand{},
	}
	for i, m := range c.Matrices {
		head.Matrices[i] = []int32{m.Rows, m.Cols}
	}
	for i, s := range c.Submatrices {
		head.Submatrices[i] = []int32{s.Matrix, s.RowOffset, s.NumRows, s.ColOffset, s.NumCols}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJSON, err)
	}
	// The commands come last in the object, and are empty so far: the text ends in []}.
	out.Write(text[:len(text)-2])
	var line []byte
	for i, cmd := range c.Commands {
		alpha, err := json.Marshal(cmd.Alpha)
		if err != nil {
			return fmt.Errorf("%w: alpha of command %d: %w", ErrJSON, i, err)
		}
		line = fmt.Appendf(line[:0], "\n[%q,%s", cmd.Type.kaldiName(), alpha)
		for _, a := range cmd.Args {
			line = strconv.AppendInt(append(line, ','), int64(a), 10)
		}
		line = append(line, ']')
		if i+1 < len(c.Commands) {
			line = append(line, ',')
		}
		out.Write(line)
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}
