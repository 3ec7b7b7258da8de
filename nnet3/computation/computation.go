package computation

import (
	"iter"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

// CommandType says what a Command does. The values are Kaldi's: files hold them.
type CommandType int32

// The commands, in Kaldi's order, each with its arguments in the order of [Command.Args]. An
// argument is read with the method of its name: (view, source, vector) are c.View(), c.Source() and
// c.Vector(). A view is a sub-matrix; a whole one covers its matrix. row(v) is a row that a pair of
// IndexesMulti names.
const (
	AllocMatrix           CommandType = iota // (whole view): allocate, contents undefined
	DeallocMatrix                            // (whole view): free
	SwapMatrix                               // (whole view, whole source) of one size: exchange buffers
	SetConst                                 // (view): view := Alpha
	Propagate                                // (component, precomputed, input, output, memo, stores-stats flag)
	Backprop                                 // (component, precomputed, input, output, output deriv, input deriv, memo)
	BackpropNoModelUpdate                    // as Backprop, parameters untouched
	MatrixCopy                               // (view, source): view := Alpha·source
	MatrixAdd                                // (view, source): view += Alpha·source
	CopyRows                                 // (view, source, vector of Indexes): row i := Alpha·source row vector[i], zero where -1
	AddRows                                  // (view, source, vector of Indexes): row i += Alpha·source row vector[i], nothing where -1
	CopyRowsMulti                            // (view, vector of IndexesMulti): row i := Alpha·row(vector[i]), zero where (-1,-1)
	CopyToRowsMulti                          // (view, vector of IndexesMulti): row(vector[i]) := row i
	AddRowsMulti                             // (view, vector of IndexesMulti): row i += Alpha·row(vector[i])
	AddToRowsMulti                           // (view, vector of IndexesMulti): row(vector[i]) += Alpha·row i
	AddRowRanges                             // (view, source, vector of IndexesRanges): row i += Alpha·sum of source rows [first, second) of vector[i]
	CompressMatrix                           // (whole view, type, truncate flag), range Alpha
	DecompressMatrix                         // (whole view)
	AcceptInput                              // (whole view, node): take a matrix from the caller
	ProvideOutput                            // (whole view, node): make a matrix available to the caller
	NoOperation                              // nothing, may be removed
	NoOperationPermanent                     // nothing, end of the inputs of a pass
	NoOperationMarker                        // nothing, between forward and backward and between segments
	NoOperationLabel                         // nothing, where a loop begins
	GotoLabel                                // (target): continue at command target
	numCommandTypes
)

// Command is one instruction. Its methods name its arguments; each is meaningful for the types
// that have such an argument.
type Command struct {
	Type  CommandType
	Alpha float32
	Args  [7]int32 // as in Kaldi's files; 0 means no matrix in Propagate and Backprop
}

// MatrixInfo is the size of a matrix, a buffer of float32.
type MatrixInfo struct {
	Rows, Cols int32
	// StrideEqualNumCols demands that rows follow each other without gaps.
	StrideEqualNumCols bool
}

// Bytes returns the size of the matrix in bytes, without padding.
func (m MatrixInfo) Bytes() int64 { return int64(m.Rows) * int64(m.Cols) * 4 }

// MatrixDebugInfo says what the rows of a matrix stand for.
type MatrixDebugInfo struct {
	IsDeriv  bool
	Cindexes []index.Cindex
}

// SubMatrixInfo is a rectangle of a matrix.
type SubMatrixInfo struct {
	Matrix             int32
	RowOffset, NumRows int32
	ColOffset, NumCols int32
}

// Pair is a (sub-matrix, row) pair of IndexesMulti, or a range of rows [first, second) of
// IndexesRanges. (-1, -1) means none.
type Pair = [2]int32

// PrecomputedIndexesInfo holds the indexes of the input and output rows of a component that is not
// simple, and what the component computed from them.
type PrecomputedIndexesInfo struct {
	Data          component.Precomputed
	InputIndexes  []index.Index
	OutputIndexes []index.Index
}

// Computation is a compiled network: a list of commands over matrices and rectangles of them.
// Matrix 0, sub-matrix 0 and precomputed indexes 0 are reserved and empty.
type Computation struct {
	Matrices            []MatrixInfo
	MatrixDebugInfo     []MatrixDebugInfo // empty, or one entry a matrix
	Submatrices         []SubMatrixInfo
	PrecomputedIndexes  []PrecomputedIndexesInfo
	Indexes             [][]int32
	IndexesMulti        [][]Pair
	IndexesRanges       [][]Pair
	Commands            []Command
	NeedModelDerivative bool

	// Derived holds components that an optimizer fused or split from those of the network. In a
	// network of n components, a command's component number c means component c of the network if c
	// < n, and Derived[c-n] otherwise.
	Derived []component.Component
}

// New returns a computation that holds only the reserved entries.
func New() *Computation {
	return &Computation{
		Matrices:           make([]MatrixInfo, 1),
		Submatrices:        make([]SubMatrixInfo, 1),
		PrecomputedIndexes: make([]PrecomputedIndexesInfo, 1),
	}
}

// NewMatrix adds a matrix and returns the number of a sub-matrix that covers it.
func (c *Computation) NewMatrix(rows, cols int, strideEqualNumCols bool) int32 {
	m := int32(len(c.Matrices))
	c.Matrices = append(c.Matrices, MatrixInfo{Rows: int32(rows), Cols: int32(cols), StrideEqualNumCols: strideEqualNumCols})
	c.Submatrices = append(c.Submatrices, SubMatrixInfo{Matrix: m, NumRows: int32(rows), NumCols: int32(cols)})
	return int32(len(c.Submatrices) - 1)
}

// NewSubMatrix adds a view of the view base and returns its number. A count of -1 means all the
// rest.
func (c *Computation) NewSubMatrix(base int32, rowOffset, numRows, colOffset, numCols int) int32 {
	b := c.Submatrices[base]
	if numRows < 0 {
		numRows = int(b.NumRows) - rowOffset
	}
	if numCols < 0 {
		numCols = int(b.NumCols) - colOffset
	}
	c.Submatrices = append(c.Submatrices, SubMatrixInfo{
		Matrix:    b.Matrix,
		RowOffset: b.RowOffset + int32(rowOffset), NumRows: int32(numRows),
		ColOffset: b.ColOffset + int32(colOffset), NumCols: int32(numCols),
	})
	return int32(len(c.Submatrices) - 1)
}

// IsWhole reports whether the sub-matrix covers its matrix.
func (c *Computation) IsWhole(s int32) bool {
	sub := c.Submatrices[s]
	m := c.Matrices[sub.Matrix]
	return sub.RowOffset == 0 && sub.ColOffset == 0 && sub.NumRows == m.Rows && sub.NumCols == m.Cols
}

// MaxMemory returns the largest number of bytes that the matrices take at any time, see
// [Computation.LiveBytes].
func (c *Computation) MaxMemory() int64 {
	var most int64
	for bytes := range c.LiveBytes() {
		most = max(most, bytes)
	}
	return most
}

// LiveBytes yields the bytes that the matrices take after each command. It counts as Kaldi does: a
// matrix counts from its allocation or acceptance to its deallocation, a compressed one with one or
// two bytes an element, and a loop counts once.
func (c *Computation) LiveBytes() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		var live int64
		saved := map[int32]int64{} // by matrix, while it is compressed
		for _, cmd := range c.Commands {
			switch cmd.Type {
			case AllocMatrix, AcceptInput:
				_, bytes := c.matrixOf(cmd)
				live += bytes
			case DeallocMatrix:
				m, bytes := c.matrixOf(cmd)
				live -= bytes - saved[m]
				delete(saved, m)
			case CompressMatrix:
				m, bytes := c.matrixOf(cmd)
				// Remember what was saved, since the command that decompresses does not say how the
				// matrix was compressed.
				saved[m] = bytes - bytes/4*compressedBytes(cmd.compression())
				live -= saved[m]
			case DecompressMatrix:
				m, _ := c.matrixOf(cmd)
				live += saved[m]
				delete(saved, m)
			}
			if !yield(live) {
				return
			}
		}
	}
}

// matrixOf returns the matrix that a command is about, and its size.
func (c *Computation) matrixOf(cmd Command) (m int32, bytes int64) {
	m = c.Submatrices[cmd.View()].Matrix
	return m, c.Matrices[m].Bytes()
}

// IoSpecification is one input or output of a request.
type IoSpecification struct {
	Name    string
	Indexes []index.Index // one per row
	// HasDeriv asks for the derivative by an input, or promises the one by an output.
	HasDeriv bool
}

// Request says what to compute: which rows of which nodes are given and which are wanted.
type Request struct {
	Inputs, Outputs     []IoSpecification
	NeedModelDerivative bool
	StoreComponentStats bool
}

// The ways in which CompressMatrix packs elements: values of its second argument.
const (
	CompressInt8   = 1
	CompressUint8  = 2
	CompressInt16  = 3
	CompressUint16 = 4
)

// compressedBytes returns the size of a compressed element in bytes.
func compressedBytes(kind int32) int64 {
	if kind < CompressInt8 || kind > CompressUint16 {
		return 4
	}
	return [...]int64{CompressInt8: 1, CompressUint8: 1, CompressInt16: 2, CompressUint16: 2}[kind]
}

// Counts are figures to compare computations by. The JSON names are those of the reference cases.
type Counts struct {
	Commands int `json:"commands"`
	// Matrices and Submatrices do not count the reserved entries.
	Matrices    int `json:"matrices"`
	Submatrices int `json:"submatrices"`
	// MaxMemoryBytes is Computation.MaxMemory.
	MaxMemoryBytes int64 `json:"max_memory_bytes"`
	// ByType counts the commands of each type that occurs, under Kaldi's names.
	ByType map[string]int `json:"by_type"`
}

// Counts counts commands, in all and by type, matrices, sub-matrices and bytes.
func (c *Computation) Counts() Counts {
	n := Counts{
		Commands:       len(c.Commands),
		Matrices:       max(len(c.Matrices)-1, 0),
		Submatrices:    max(len(c.Submatrices)-1, 0),
		MaxMemoryBytes: c.MaxMemory(),
		ByType:         map[string]int{},
	}
	for _, cmd := range c.Commands {
		n.ByType[cmd.Type.kaldiName()]++
	}
	return n
}
