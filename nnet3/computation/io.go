package computation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// fileVersion is the version of Kaldi's file format.
const fileVersion = 5

// maxFile bounds the size in bytes of a request or a computation in Kaldi's format.
const maxFile = 1 << 32

// errNotWritable is the error for writing a computation with components that no network has.
var errNotWritable = errors.New("computation can't be written")

// recomputed replaces a component's precomputed data in files. The data depends on how the
// component is implemented, so it is computed again from the indexes (see Precomputed).
const recomputed = "RecomputedIndexes>"

// Write writes the computation in Kaldi's format, version 5. Of precomputed indexes it writes only
// the indexes that they were computed from. A computation with Derived components can't be written:
// the error wraps errNotWritable, and the writer fails with it from then on.
func (c *Computation) Write(w *kaldiio.Writer) error {
	if len(c.Derived) > 0 {
		w.Fail(fmt.Errorf("%w: it has %d derived components; write it as compiled, and optimize it after reading", errNotWritable, len(c.Derived)))
		return w.Err()
	}
	c.fields(&wire{w: w})
	return w.Err()
}

// Read reads a computation in Kaldi's format, version 5, written by Write or by Kaldi. It skips the
// data that Kaldi precomputed for components; Precomputed computes it anew. Errors in the file are
// of type *kaldiio.Error. A computation with numbers out of range is refused with errStructure.
func Read(r *kaldiio.Reader) (*Computation, error) {
	r.Limit(maxFile)
	c, f := &Computation{}, &wire{r: r}
	if c.fields(f); f.err != nil {
		return nil, f.err
	}
	if err := c.checkStructure(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name(), err)
	}
	return c, nil
}

// The smallest number of bytes that an element of a list takes in a file: "[ ]" is an empty vector,
// everything else is between tokens.
const (
	vectorSize = 3
	recordSize = 16
)

func (c *Computation) fields(f *wire) {
	version := int32(fileVersion)
	f.tokens("<NnetComputation>")
	f.int32("<Version>", &version)
	if version != fileVersion {
		f.failf("version %d of the format of computations, only %d is known; compile again", version, fileVersion)
	}
	list(f, "<NumMatrices>", "<Matrices>", recordSize, &c.Matrices, (*wire).matrix)
	list(f, "<NumMatrixDebugInfo>", "<MatrixDebugInfo>", recordSize, &c.MatrixDebugInfo, (*wire).debugInfo)
	list(f, "<NumSubMatrices>", "<SubMatrices>", recordSize, &c.Submatrices, (*wire).submatrix)
	reserved := true // entry 0 is counted, but not in the file
	list(f, "<NumComponentPrecomputedIndexes>", "<PrecomputedIndexesInfo>", recordSize, &c.PrecomputedIndexes,
		func(f *wire, p *PrecomputedIndexesInfo) {
			if !reserved {
				f.precomputed(p)
			}
			reserved = false
		})
	list(f, "<NumIndexes>", "<Indexes>", vectorSize, &c.Indexes, (*wire).rows)
	list(f, "<NumIndexesMulti>", "<IndexesMulti>", vectorSize, &c.IndexesMulti, (*wire).pairs)
	list(f, "<NumIndexesRanges>", "<IndexesRanges>", vectorSize, &c.IndexesRanges, (*wire).pairs)
	list(f, "<NumCommands>", "<Commands>", recordSize, &c.Commands, (*wire).command)
	f.bool("<NeedModelDerivative>", &c.NeedModelDerivative)
	f.end("</NnetComputation>")
}

func (f *wire) matrix(m *MatrixInfo) {
	f.tokens("<MatrixInfo>")
	f.int32("<NumRows>", &m.Rows)
	f.int32("<NumCols>", &m.Cols)
	f.flag("<StrideEqualNumCols>", &m.StrideEqualNumCols, "</MatrixInfo>")
}

func (f *wire) debugInfo(d *MatrixDebugInfo) {
	f.tokens("<MatrixDebugInfo>")
	f.bool("<IsDeriv>", &d.IsDeriv)
	f.tokens("<Cindexes>")
	value(f, &d.Cindexes, index.ReadCindexes, index.WriteCindexes)
	f.end("</MatrixDebugInfo>")
}

func (f *wire) submatrix(s *SubMatrixInfo) {
	f.tokens("<SubMatrixInfo>")
	f.int32("<MatrixIndex>", &s.Matrix)
	f.int32("<RowOffset>", &s.RowOffset)
	f.int32("<NumRows>", &s.NumRows)
	f.int32("<ColOffset>", &s.ColOffset)
	f.int32("<NumCols>", &s.NumCols)
	f.end("</SubMatrixInfo>")
}

// precomputed carries the indexes. It skips what a component precomputed, from <Name> to </Name>.
func (f *wire) precomputed(p *PrecomputedIndexesInfo) {
	open := "<" + recomputed
	value(f, &open, (*kaldiio.Reader).Token, (*kaldiio.Writer).Token)
	if len(open) < 3 || open[0] != '<' || open[1] == '/' {
		f.failf("%q where precomputed indexes begin", open)
	}
	switch {
	case f.w != nil:
		f.w.Token("</" + recomputed)
	case f.err == nil:
		f.err = f.r.SkipPast("</" + open[1:])
	}
	f.indexes(&p.InputIndexes)
	f.indexes(&p.OutputIndexes)
	f.newline()
}

func (f *wire) rows(v *[]int32) {
	value(f, v, (*kaldiio.Reader).IntVector, (*kaldiio.Writer).IntVector)
	f.newline()
}

func (f *wire) pairs(v *[]Pair) {
	value(f, v, (*kaldiio.Reader).IntPairVector, (*kaldiio.Writer).IntPairVector)
	f.newline()
}

func (f *wire) command(cmd *Command) {
	f.tokens("<Cmd>")
	value(f, (*int32)(&cmd.Type), (*kaldiio.Reader).Int32, (*kaldiio.Writer).Int32)
	if f.reading() && !cmd.Type.valid() {
		f.failf("command type %d", int32(cmd.Type))
	}
	value(f, &cmd.Alpha, (*kaldiio.Reader).Float32, (*kaldiio.Writer).Float32)
	f.arguments(cmd)
	f.end("</Cmd>")
}

// arguments carries the arguments of a command without those of -1 at the end.
func (f *wire) arguments(cmd *Command) {
	if f.w != nil {
		args := cmd.Args[:]
		n := len(args)
		for n > 0 && args[n-1] == -1 {
			n--
		}
		f.w.IntVector(args[:n])
		return
	}
	var args []int32
	value(f, &args, (*kaldiio.Reader).IntVector, nil)
	if len(args) > 7 {
		f.failf("a command with %d arguments", len(args))
		return
	}
	*cmd = NewScaledCommand(cmd.Type, cmd.Alpha, args...)
}

// A wire carries values to or from a file in Kaldi's format, so that one list of fields both writes
// and reads a record. The first error in a file that is read stays in err, and nothing is read
// after it; a writer keeps its own.
type wire struct {
	r   *kaldiio.Reader // nil when writing
	w   *kaldiio.Writer // nil when reading
	err error
}

// reading reports whether values come from a file, without an error so far.
func (f *wire) reading() bool { return f.r != nil && f.err == nil }

// failf reports a fault of the file, unless it is not the first.
func (f *wire) failf(format string, args ...any) {
	if f.reading() {
		f.err = f.r.Errorf(format, args...)
	}
}

// value carries one value.
func value[T any](f *wire, v *T, read func(*kaldiio.Reader) (T, error), write func(*kaldiio.Writer, T)) {
	if f.w != nil {
		write(f.w, *v)
	} else if f.err == nil {
		*v, f.err = read(f.r)
	}
}

func (f *wire) tokens(tokens ...string) {
	if f.w != nil {
		for _, t := range tokens {
			f.w.Token(t)
		}
	} else if f.err == nil {
		f.err = f.r.Expect(tokens...)
	}
}

// end carries the last token of a record.
func (f *wire) end(token string) {
	f.tokens(token)
	f.newline()
}

func (f *wire) newline() {
	if f.w != nil {
		f.w.Newline()
	}
}

func (f *wire) int32(token string, v *int32) {
	f.tokens(token)
	value(f, v, (*kaldiio.Reader).Int32, (*kaldiio.Writer).Int32)
}

func (f *wire) bool(token string, v *bool) {
	f.tokens(token)
	value(f, v, (*kaldiio.Reader).Bool, (*kaldiio.Writer).Bool)
}

// flag carries a token that is in the file if *v is true, and the end of the record.
func (f *wire) flag(token string, v *bool, end string) {
	if f.reading() {
		var got string
		if got, f.err = f.r.ExpectOneOf(token, end); got == end {
			return
		}
		*v = true
	} else if *v {
		f.tokens(token)
	}
	f.end(end)
}

func (f *wire) indexes(v *[]index.Index) { value(f, v, index.ReadVector, index.WriteVector) }

// list carries a count and that many elements, each of at least size bytes. Memory grows with what
// is in the file, not with the count.
func list[T any](f *wire, count, token string, size int, s *[]T, element func(*wire, *T)) {
	n := uint64(len(*s))
	f.tokens(count)
	value(f, &n, (*kaldiio.Reader).Uint64, (*kaldiio.Writer).Uint64)
	f.tokens(token)
	f.newline()
	if f.w != nil {
		for i := range *s {
			element(f, &(*s)[i])
		}
		return
	}
	if f.err != nil || n == 0 {
		return
	}
	// The count is untrusted. Room is made for as many elements as the rest of the file can hold.
	read := make([]T, 0, f.r.Capacity(n, size))
	for range n {
		var zero T
		read = append(read, zero)
		if element(f, &read[len(read)-1]); f.err != nil {
			return
		}
	}
	*s = slices.Clip(read)
}
