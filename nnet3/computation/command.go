package computation

import "fmt"

// commandNames are Kaldi's names without the leading k.
var commandNames = [...]string{
	AllocMatrix:           "AllocMatrix",
	DeallocMatrix:         "DeallocMatrix",
	SwapMatrix:            "SwapMatrix",
	SetConst:              "SetConst",
	Propagate:             "Propagate",
	Backprop:              "Backprop",
	BackpropNoModelUpdate: "BackpropNoModelUpdate",
	MatrixCopy:            "MatrixCopy",
	MatrixAdd:             "MatrixAdd",
	CopyRows:              "CopyRows",
	AddRows:               "AddRows",
	CopyRowsMulti:         "CopyRowsMulti",
	CopyToRowsMulti:       "CopyToRowsMulti",
	AddRowsMulti:          "AddRowsMulti",
	AddToRowsMulti:        "AddToRowsMulti",
	AddRowRanges:          "AddRowRanges",
	CompressMatrix:        "CompressMatrix",
	DecompressMatrix:      "DecompressMatrix",
	AcceptInput:           "AcceptInput",
	ProvideOutput:         "ProvideOutput",
	NoOperation:           "NoOperation",
	NoOperationPermanent:  "NoOperationPermanent",
	NoOperationMarker:     "NoOperationMarker",
	NoOperationLabel:      "NoOperationLabel",
	GotoLabel:             "GotoLabel",
}

// valid reports whether t is one of the command types.
func (t CommandType) valid() bool { return t >= 0 && t < numCommandTypes }

// String returns the name of the type: Propagate.
func (t CommandType) String() string {
	if !t.valid() {
		return fmt.Sprintf("CommandType(%d)", int32(t))
	}
	return commandNames[t]
}

// kaldiName returns Kaldi's name of the type: kPropagate.
func (t CommandType) kaldiName() string {
	if !t.valid() {
		return fmt.Sprintf("k%d", int32(t))
	}
	return "k" + commandNames[t]
}

// IsBackprop reports whether the type is Backprop or BackpropNoModelUpdate.
func (t CommandType) IsBackprop() bool { return t == Backprop || t == BackpropNoModelUpdate }

// IsMulti reports whether the type's vector is one of IndexesMulti.
func (t CommandType) IsMulti() bool { return t >= CopyRowsMulti && t <= AddToRowsMulti }

// NewCommand returns a command with alpha 1 and up to seven arguments; the others are -1.
func NewCommand(t CommandType, args ...int32) Command { return NewScaledCommand(t, 1, args...) }

// NewScaledCommand is NewCommand with another alpha. Both panic on more than seven arguments.
func NewScaledCommand(t CommandType, alpha float32, args ...int32) Command {
	c := Command{t, alpha, [7]int32{-1, -1, -1, -1, -1, -1, -1}}
	if copy(c.Args[:], args) < len(args) {
		panic("computation: a command has at most seven arguments")
	}
	return c
}

// View returns the sub-matrix that a command other than Propagate and Backprop is about: the one
// that it writes, except in CopyToRowsMulti, AddToRowsMulti and ProvideOutput, which read it.
func (c *Command) View() int32 { return c.Args[0] }

// Source returns the sub-matrix that a copy or an addition reads, or the second one of a swap.
func (c *Command) Source() int32 { return c.Args[1] }

// Vector returns the number of the vector of rows that a command names: in IndexesMulti for the
// Multi types, in IndexesRanges for AddRowRanges, in Indexes for CopyRows and AddRows.
func (c *Command) Vector() int32 {
	if c.Type.IsMulti() {
		return c.Args[1]
	}
	return c.Args[2]
}

// Component returns the number of the component that a Propagate or Backprop runs.
func (c *Command) Component() int32 { return c.Args[0] }

// Precomputed returns the entry of PrecomputedIndexes of a Propagate or Backprop, 0 for none.
func (c *Command) Precomputed() int32 { return c.Args[1] }

// Input returns the sub-matrix of a component's input value, 0 for none.
func (c *Command) Input() int32 { return c.Args[2] }

// Output returns the sub-matrix of a component's output value, 0 for none.
func (c *Command) Output() int32 { return c.Args[3] }

// OutputDeriv returns the sub-matrix of the output derivative that a Backprop reads.
func (c *Command) OutputDeriv() int32 { return c.Args[4] }

// InputDeriv returns the sub-matrix of the input derivative that a Backprop makes, 0 for none.
func (c *Command) InputDeriv() int32 { return c.Args[5] }

// Memo returns the memo slot that a Propagate writes or a Backprop consumes, 0 for none.
func (c *Command) Memo() int32 {
	if c.Type == Propagate {
		return max(c.Args[4], 0)
	}
	return max(c.Args[6], 0)
}

// StoresStats reports whether a Propagate stores statistics in its component.
func (c *Command) StoresStats() bool { return c.Args[5] == 1 }

// Node returns the network node of an AcceptInput or ProvideOutput.
func (c *Command) Node() int32 { return c.Args[1] }

// Target returns the number of the command to which a GotoLabel jumps.
func (c *Command) Target() int32 { return c.Args[0] }

// compression returns the way to compress of a CompressMatrix, truncates its flag.
func (c *Command) compression() int32 { return c.Args[1] }
func (c *Command) truncates() bool    { return c.Args[2] == 1 }

// argKind says what an argument of a command is, and for a sub-matrix, what the command does to it.
type argKind uint8

const (
	argNone        argKind = iota // not used
	argWhole                      // a sub-matrix that covers its matrix
	argView                       // a sub-matrix
	argOptional                   // a sub-matrix, or 0
	argComponent                  // a component
	argPrecomputed                // an entry of PrecomputedIndexes, 0 for none
	argMemo                       // a memo slot, 0 for none
	argFlag                       // 0 or 1; -1 means 0
	argIndexes                    // an entry of Indexes
	argMulti                      // an entry of IndexesMulti
	argRanges                     // an entry of IndexesRanges
	argNode                       // a network node
	argCompression                // a way to compress, CompressInt8 to CompressUint16
	argCommand                    // a command

	argAccess         = 4 // how far an accessKind is shifted in an argKind
	argReads  argKind = argKind(reads) << argAccess
	argWrites argKind = argKind(writes) << argAccess
	argAdds   argKind = argReads | argWrites
)

// split returns what an argument is, and what the command does to it.
func (k argKind) split() (what argKind, access accessKind) {
	return k & (1<<argAccess - 1), accessKind(k >> argAccess)
}

// argKinds says what the arguments of each type of command are. A component that adds to its output
// reads it, too.
//
// Three entries differ from Kaldi's table on purpose. CopyRows only writes, whatever its vector
// holds: a row of -1 is set to zero, which does not depend on its former contents. CopyToRowsMulti
// only writes a sub-matrix of which it writes every row. DecompressMatrix reads and writes, because
// what it restores comes from the matrix.
var argKinds = [numCommandTypes][7]argKind{
	AllocMatrix:           {argWhole},
	DeallocMatrix:         {argWhole},
	SwapMatrix:            {argWhole, argWhole},
	SetConst:              {argView | argWrites},
	Propagate:             {argComponent, argPrecomputed, argOptional | argReads, argView | argWrites, argMemo, argFlag},
	Backprop:              backpropArgs,
	BackpropNoModelUpdate: backpropArgs,
	MatrixCopy:            {argView | argWrites, argView | argReads},
	MatrixAdd:             {argView | argAdds, argView | argReads},
	CopyRows:              {argView | argWrites, argView | argReads, argIndexes},
	AddRows:               {argView | argAdds, argView | argReads, argIndexes},
	CopyRowsMulti:         {argView | argWrites, argMulti},
	CopyToRowsMulti:       {argView | argReads, argMulti},
	AddRowsMulti:          {argView | argAdds, argMulti},
	AddToRowsMulti:        {argView | argReads, argMulti},
	AddRowRanges:          {argView | argAdds, argView | argReads, argRanges},
	CompressMatrix:        {argWhole | argAdds, argCompression, argFlag},
	DecompressMatrix:      {argWhole | argAdds},
	AcceptInput:           {argWhole | argWrites, argNode},
	ProvideOutput:         {argWhole | argReads, argNode},
	GotoLabel:             {argCommand},
}

var backpropArgs = [7]argKind{argComponent, argPrecomputed, argOptional | argReads, argOptional | argReads,
	argView | argReads, argOptional | argWrites, argMemo}

// Submatrices yields a pointer to each argument that is the number of a sub-matrix other than 0, so
// that the caller can read or change it. It leaves out the sub-matrices in vectors of IndexesMulti.
func (c *Command) Submatrices(yield func(arg *int32) bool) {
	if !c.Type.valid() {
		return
	}
	for i, kind := range argKinds[c.Type] {
		kind, _ = kind.split()
		if kind >= argWhole && kind <= argOptional && c.Args[i] > 0 && !yield(&c.Args[i]) {
			return
		}
	}
}
