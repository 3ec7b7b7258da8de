package computation

import (
	"fmt"
	"slices"
)

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

// kaldiName returns Kaldi's name of the type, which the JSON form uses: kPropagate.
func (t CommandType) kaldiName() string {
	if !t.valid() {
		return fmt.Sprintf("k%d", int32(t))
	}
	return "k" + commandNames[t]
}

// parseCommandType returns the type with the given name, Kaldi's (kPropagate) or ours (Propagate).
func parseCommandType(name string) (CommandType, bool) {
	if len(name) > 1 && name[0] == 'k' {
		name = name[1:]
	}
	t := slices.Index(commandNames[:], name)
	return CommandType(max(t, 0)), t >= 0
}

// IsBackprop reports whether the type is Backprop or BackpropNoModelUpdate.
func (t CommandType) IsBackprop() bool { return t == Backprop || t == BackpropNoModelUpdate }

// NewCommand returns a command with alpha 1 and up to seven arguments; the others are -1.
func NewCommand(t CommandType, args ...int32) Command { return NewScaledCommand(t, 1, args...) }

// NewScaledCommand is NewCommand with another alpha. Both panic on more than seven arguments.
func NewScaledCommand(t CommandType, alpha float32, args ...int32) Command {
	a := [7]int32{-1, -1, -1, -1, -1, -1, -1}
	if copy(a[:], args) < len(args) {
		panic("computation: a command has at most seven arguments")
	}
	return Command{t, alpha, a[0], a[1], a[2], a[3], a[4], a[5], a[6]}
}

// Args returns the arguments in order.
func (c Command) Args() [7]int32 {
	return [7]int32{c.Arg1, c.Arg2, c.Arg3, c.Arg4, c.Arg5, c.Arg6, c.Arg7}
}

// argKind says what an argument of a command is.
type argKind uint8

const (
	argNone        argKind = iota // not used
	argWhole                      // a sub-matrix that covers its matrix
	argView                       // a sub-matrix
	argViewOrNone                 // a sub-matrix, or 0
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
)

// argKinds says what the arguments of each type of command are.
var argKinds = [numCommandTypes][7]argKind{
	AllocMatrix:           {argWhole},
	DeallocMatrix:         {argWhole},
	SwapMatrix:            {argWhole, argWhole},
	SetConst:              {argView},
	Propagate:             {argComponent, argPrecomputed, argViewOrNone, argView, argMemo, argFlag},
	Backprop:              {argComponent, argPrecomputed, argViewOrNone, argViewOrNone, argView, argViewOrNone, argMemo},
	BackpropNoModelUpdate: {argComponent, argPrecomputed, argViewOrNone, argViewOrNone, argView, argViewOrNone, argMemo},
	MatrixCopy:            {argView, argView},
	MatrixAdd:             {argView, argView},
	CopyRows:              {argView, argView, argIndexes},
	AddRows:               {argView, argView, argIndexes},
	CopyRowsMulti:         {argView, argMulti},
	CopyToRowsMulti:       {argView, argMulti},
	AddRowsMulti:          {argView, argMulti},
	AddToRowsMulti:        {argView, argMulti},
	AddRowRanges:          {argView, argView, argRanges},
	CompressMatrix:        {argWhole, argCompression, argFlag},
	DecompressMatrix:      {argWhole},
	AcceptInput:           {argWhole, argNode},
	ProvideOutput:         {argWhole, argNode},
	GotoLabel:             {argCommand},
}

// Submatrices yields a pointer to each argument that is the number of a sub-matrix other than 0, so
// that the caller can read or change it. It leaves out the sub-matrices in vectors of IndexesMulti.
func (c *Command) Submatrices(yield func(arg *int32) bool) {
	if !c.Type.valid() {
		return
	}
	args := [...]*int32{&c.Arg1, &c.Arg2, &c.Arg3, &c.Arg4, &c.Arg5, &c.Arg6, &c.Arg7}
	for i, kind := range argKinds[c.Type] {
		if kind >= argWhole && kind <= argViewOrNone && *args[i] > 0 && !yield(args[i]) {
			return
		}
	}
}
