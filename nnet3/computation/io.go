package computation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// fileVersion is the version of the file format, Kaldi's.
const fileVersion = 5

// ErrNotWritable is the error of writing a computation with components that no network has.
var ErrNotWritable = errors.New("computation can't be written")

// recomputed stands in files in the place of what a component precomputed: that depends on how the component is
// implemented, and is made again from the indexes (Precompute).
const recomputed = "RecomputedIndexes>"

// Write writes the computation in Kaldi's format, version 5. Precomputed indexes are left out, only the indexes that they
// were made from are written. A computation with Derived components can't be written: the error, which is also the
// writer's from then on, wraps ErrNotWritable.
func (c *Computation) Write(w *kaldiio.Writer) error {
	if len(c.Derived) > 0 {
		w.Fail(fmt.Errorf("%w: it has %d derived components; write it as compiled, and optimize it after reading", ErrNotWritable, len(c.Derived)))
		return w.Err()
	}
	w.Token("<NnetComputation>")
	w.Token("<Version>")
	w.Int32(fileVersion)
	writeList(w, "<NumMatrices>", "<Matrices>", c.Matrices, writeMatrixInfo)
	writeList(w, "<NumMatrixDebugInfo>", "<MatrixDebugInfo>", c.MatrixDebugInfo, writeDebugInfo)
	writeList(w, "<NumSubMatrices>", "<SubMatrices>", c.Submatrices, writeSubMatrixInfo)
	w.Token("<NumComponentPrecomputedIndexes>")
	w.Uint64(uint64(len(c.PrecomputedIndexes)))
	w.Token("<PrecomputedIndexesInfo>")
	w.Newline()
	for _, p := range c.PrecomputedIndexes[min(1, len(c.PrecomputedIndexes)):] {
		w.Token("<" + recomputed)
		w.Token("</" + recomputed)
		index.WriteVector(w, p.InputIndexes)
		index.WriteVector(w, p.OutputIndexes)
		w.Newline()
	}
	writeList(w, "<NumIndexes>", "<Indexes>", c.Indexes, (*kaldiio.Writer).IntVector)
	writeList(w, "<NumIndexesMulti>", "<IndexesMulti>", c.IndexesMulti, writePairs)
	writeList(w, "<NumIndexesRanges>", "<IndexesRanges>", c.IndexesRanges, writePairs)
	writeList(w, "<NumCommands>", "<Commands>", c.Commands, writeCommand)
	w.Token("<NeedModelDerivative>")
	w.Bool(c.NeedModelDerivative)
	w.Token("</NnetComputation>")
	w.Newline()
	return w.Err()
}

// writeList writes a count, as Kaldi writes a size_t, and the elements.
func writeList[T any](w *kaldiio.Writer, count, list string, s []T, write func(*kaldiio.Writer, T)) {
	w.Token(count)
	w.Uint64(uint64(len(s)))
	w.Token(list)
	w.Newline()
	for _, x := range s {
		write(w, x)
		w.Newline()
	}
}

func writeMatrixInfo(w *kaldiio.Writer, m MatrixInfo) {
	w.Token("<MatrixInfo>")
	w.Token("<NumRows>")
	w.Int32(m.Rows)
	w.Token("<NumCols>")
	w.Int32(m.Cols)
	if m.StrideEqualNumCols {
		w.Token("<StrideEqualNumCols>")
	}
	w.Token("</MatrixInfo>")
}

func writeDebugInfo(w *kaldiio.Writer, d MatrixDebugInfo) {
	w.Token("<MatrixDebugInfo>")
	w.Token("<IsDeriv>")
	w.Bool(d.IsDeriv)
	w.Token("<Cindexes>")
	index.WriteCindexes(w, d.Cindexes)
	w.Token("</MatrixDebugInfo>")
}

// subMatrixFields are the numbers of a SubMatrixInfo in the order of the file.
var subMatrixFields = [...]struct {
	token string
	field func(*SubMatrixInfo) *int32
}{
	{"<MatrixIndex>", func(s *SubMatrixInfo) *int32 { return &s.Matrix }},
	{"<RowOffset>", func(s *SubMatrixInfo) *int32 { return &s.RowOffset }},
	{"<NumRows>", func(s *SubMatrixInfo) *int32 { return &s.NumRows }},
	{"<ColOffset>", func(s *SubMatrixInfo) *int32 { return &s.ColOffset }},
	{"<NumCols>", func(s *SubMatrixInfo) *int32 { return &s.NumCols }},
}

func writeSubMatrixInfo(w *kaldiio.Writer, s SubMatrixInfo) {
	w.Token("<SubMatrixInfo>")
	for _, f := range subMatrixFields {
		w.Token(f.token)
		w.Int32(*f.field(&s))
	}
	w.Token("</SubMatrixInfo>")
}

func writePairs(w *kaldiio.Writer, v []Pair) {
	plain := make([][2]int32, len(v))
	for i, p := range v {
		plain[i] = p
	}
	w.IntPairVector(plain)
}

func writeCommand(w *kaldiio.Writer, cmd Command) {
	w.Token("<Cmd>")
	w.Int32(int32(cmd.Type))
	w.Float32(cmd.Alpha)
	args := cmd.Args()
	n := len(args)
	for n > 0 && args[n-1] == -1 {
		n--
	}
	w.IntVector(args[:n])
	w.Token("</Cmd>")
}

// maxFile bounds the bytes of a request or a computation in Kaldi's format.
const maxFile = 1 << 32

// Read reads a computation in Kaldi's format, version 5, written by Write or by Kaldi. What Kaldi precomputed for
// components is passed over; Precompute makes ours. Errors of the file are *kaldiio.Error; a computation whose numbers
// refer to nothing is refused with ErrStructure.
func Read(r *kaldiio.Reader) (*Computation, error) {
	r.Limit(maxFile)
	c := &Computation{}
	if err := c.read(r); err != nil {
		return nil, err
	}
	if err := c.checkStructure(nil); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name(), err)
	}
	return c, nil
}

func (c *Computation) read(r *kaldiio.Reader) error {
	if err := r.Expect("<NnetComputation>", "<Version>"); err != nil {
		return err
	}
	if version, err := r.Int32(); err != nil {
		return err
	} else if version != fileVersion {
		return r.Errorf("version %d of the format of computations, only %d is known; compile again", version, fileVersion)
	}
	var err error
	if c.Matrices, err = readList(r, "<NumMatrices>", "<Matrices>", recordWire, readMatrixInfo); err != nil {
		return err
	}
	if c.MatrixDebugInfo, err = readList(r, "<NumMatrixDebugInfo>", "<MatrixDebugInfo>", recordWire, readDebugInfo); err != nil {
		return err
	}
	if c.Submatrices, err = readList(r, "<NumSubMatrices>", "<SubMatrices>", recordWire, readSubMatrixInfo); err != nil {
		return err
	}
	first := true // slot 0 is counted, and not in the file
	slot := func(r *kaldiio.Reader) (PrecomputedIndexesInfo, error) {
		if first {
			first = false
			return PrecomputedIndexesInfo{}, nil
		}
		return readPrecomputed(r)
	}
	if c.PrecomputedIndexes, err = readList(r, "<NumComponentPrecomputedIndexes>", "<PrecomputedIndexesInfo>", recordWire, slot); err != nil {
		return err
	}
	if c.Indexes, err = readList(r, "<NumIndexes>", "<Indexes>", vectorWire, (*kaldiio.Reader).IntVector); err != nil {
		return err
	}
	if c.IndexesMulti, err = readList(r, "<NumIndexesMulti>", "<IndexesMulti>", vectorWire, readPairs); err != nil {
		return err
	}
	if c.IndexesRanges, err = readList(r, "<NumIndexesRanges>", "<IndexesRanges>", vectorWire, readPairs); err != nil {
		return err
	}
	if c.Commands, err = readList(r, "<NumCommands>", "<Commands>", recordWire, readCommand); err != nil {
		return err
	}
	if err := r.Expect("<NeedModelDerivative>"); err != nil {
		return err
	}
	if c.NeedModelDerivative, err = r.Bool(); err != nil {
		return err
	}
	return r.Expect("</NnetComputation>")
}

// What an element of a list takes in a file at least, in bytes: "[ ]" is an empty vector, anything else stands between tokens.
const (
	vectorWire = 3
	recordWire = 16
)

// readList reads a count and that many elements, each of at least wire bytes. Memory grows with what is there, not with the
// count.
func readList[T any](r *kaldiio.Reader, count, list string, wire int, read func(*kaldiio.Reader) (T, error)) ([]T, error) {
	if err := r.Expect(count); err != nil {
		return nil, err
	}
	n, err := r.Uint64()
	if err != nil {
		return nil, err
	}
	if err := r.Expect(list); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, nil
	}
	s := make([]T, 0, r.Capacity(n, wire))
	for range n {
		x, err := read(r)
		if err != nil {
			return nil, err
		}
		s = append(s, x)
	}
	return slices.Clip(s), nil
}

func readMatrixInfo(r *kaldiio.Reader) (m MatrixInfo, err error) {
	if err := r.Expect("<MatrixInfo>", "<NumRows>"); err != nil {
		return m, err
	}
	if m.Rows, err = r.Int32(); err != nil {
		return m, err
	}
	if err := r.Expect("<NumCols>"); err != nil {
		return m, err
	}
	if m.Cols, err = r.Int32(); err != nil {
		return m, err
	}
	end, err := r.ExpectOneOf("<StrideEqualNumCols>", "</MatrixInfo>")
	if err != nil || end == "</MatrixInfo>" {
		return m, err
	}
	m.StrideEqualNumCols = true
	return m, r.Expect("</MatrixInfo>")
}

func readDebugInfo(r *kaldiio.Reader) (d MatrixDebugInfo, err error) {
	if err := r.Expect("<MatrixDebugInfo>", "<IsDeriv>"); err != nil {
		return d, err
	}
	if d.IsDeriv, err = r.Bool(); err != nil {
		return d, err
	}
	if err := r.Expect("<Cindexes>"); err != nil {
		return d, err
	}
	if d.Cindexes, err = index.ReadCindexes(r); err != nil {
		return d, err
	}
	return d, r.Expect("</MatrixDebugInfo>")
}

func readSubMatrixInfo(r *kaldiio.Reader) (s SubMatrixInfo, err error) {
	if err := r.Expect("<SubMatrixInfo>"); err != nil {
		return s, err
	}
	for _, f := range subMatrixFields {
		if err := r.Expect(f.token); err != nil {
			return s, err
		}
		if *f.field(&s), err = r.Int32(); err != nil {
			return s, err
		}
	}
	return s, r.Expect("</SubMatrixInfo>")
}

// readPrecomputed passes over what a component precomputed, <Name> to </Name>, and reads the indexes.
func readPrecomputed(r *kaldiio.Reader) (p PrecomputedIndexesInfo, err error) {
	name, err := r.Token()
	if err != nil {
		return p, err
	}
	if len(name) < 3 || name[0] != '<' || name[1] == '/' {
		return p, r.Errorf("%q where precomputed indexes begin", name)
	}
	if err := r.SkipPast("</" + name[1:]); err != nil {
		return p, err
	}
	if p.InputIndexes, err = index.ReadVector(r); err != nil {
		return p, err
	}
	p.OutputIndexes, err = index.ReadVector(r)
	return p, err
}

func readPairs(r *kaldiio.Reader) ([]Pair, error) {
	plain, err := r.IntPairVector()
	if err != nil {
		return nil, err
	}
	v := make([]Pair, len(plain))
	for i, p := range plain {
		v[i] = p
	}
	return v, nil
}

func readCommand(r *kaldiio.Reader) (cmd Command, err error) {
	if err := r.Expect("<Cmd>"); err != nil {
		return cmd, err
	}
	t, err := r.Int32()
	if err != nil {
		return cmd, err
	}
	if cmd.Type = CommandType(t); !cmd.Type.Valid() {
		return cmd, r.Errorf("command type %d", t)
	}
	if cmd.Alpha, err = r.Float32(); err != nil {
		return cmd, err
	}
	args, err := r.IntVector()
	if err != nil {
		return cmd, err
	}
	all := [7]int32{-1, -1, -1, -1, -1, -1, -1}
	if len(args) > len(all) {
		return cmd, r.Errorf("a command with %d arguments", len(args))
	}
	copy(all[:], args)
	cmd.SetArgs(all)
	return cmd, r.Expect("</Cmd>")
}
