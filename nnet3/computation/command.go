package computation

import "fmt"

// commandNames are Kaldi's names without their k.
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

// Valid reports whether t is one of the command types.
func (t CommandType) Valid() bool { return t >= 0 && t < numCommandTypes }

// String returns our name of the type: Propagate.
func (t CommandType) String() string {
	if !t.Valid() {
		return fmt.Sprintf("CommandType(%d)", int32(t))
	}
	return commandNames[t]
}

// KaldiName returns Kaldi's name of the type, which the JSON form uses: kPropagate.
func (t CommandType) KaldiName() string {
	if !t.Valid() {
		return fmt.Sprintf("k%d", int32(t))
	}
	return "k" + commandNames[t]
}

// ParseCommandType returns the type with the given name, Kaldi's (kPropagate) or ours (Propagate).
func ParseCommandType(name string) (CommandType, bool) {
	if len(name) > 1 && name[0] == 'k' {
		name = name[1:]
	}
	for t, n := range commandNames {
		if n == name {
			return CommandType(t), true
		}
	}
	return 0, false
}

// IsBackprop reports whether the type is one of the two that run a component backward.
func (t CommandType) IsBackprop() bool { return t == Backprop || t == BackpropNoModelUpdate }

// IsNoOperation reports whether the type is one of the four that leave everything as it is.
func (t CommandType) IsNoOperation() bool { return t >= NoOperation && t <= NoOperationLabel }

// IsIO reports whether a command of the type deals with the caller: AcceptInput, ProvideOutput.
func (t CommandType) IsIO() bool { return t == AcceptInput || t == ProvideOutput }

// NewCommand returns a command with alpha 1 and the given arguments, the others -1. It panics if there are more than
// seven.
func NewCommand(t CommandType, args ...int32) Command {
	return NewScaledCommand(t, 1, args...)
}

// NewScaledCommand is NewCommand with another alpha.
func NewScaledCommand(t CommandType, alpha float32, args ...int32) Command {
	all := [7]int32{-1, -1, -1, -1, -1, -1, -1}
	if len(args) > len(all) {
		panic("computation: a command has at most seven arguments")
	}
	copy(all[:], args)
	c := Command{Type: t, Alpha: alpha}
	c.SetArgs(all)
	return c
}

// Args returns the arguments in order.
func (c Command) Args() [7]int32 {
	return [7]int32{c.Arg1, c.Arg2, c.Arg3, c.Arg4, c.Arg5, c.Arg6, c.Arg7}
}

// SetArgs sets the arguments in order.
func (c *Command) SetArgs(a [7]int32) {
	c.Arg1, c.Arg2, c.Arg3, c.Arg4, c.Arg5, c.Arg6, c.Arg7 = a[0], a[1], a[2], a[3], a[4], a[5], a[6]
}

// argKind says what an argument of a command refers to.
type argKind uint8

const (
	argNone        argKind = iota // not used
	argWhole                      // a sub-matrix that covers its matrix
	argView                       // a sub-matrix
	argViewOrNone                 // a sub-matrix, or 0
	argComponent                  // a component
	argPrecomputed                // an entry of PrecomputedIndexes, 0 for none
	argMemo                       // a memo slot, 0 for none
	argFlag                       // 0 or 1 (-1 counts as 0)
	argIndexes                    // an entry of Indexes
	argMulti                      // an entry of IndexesMulti
	argRanges                     // an entry of IndexesRanges
	argNode                       // a network node
	argCompression                // how to compress, 1 to 4
	argCommand                    // a command
)

// argKinds says what the arguments of each command type are. The checker, the printer, the rewriters of sub-matrix
// numbers and the reader of files all go by this table.
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

// Submatrices calls yield with a pointer to each argument of the command that is the number of a sub-matrix other than 0,
// so that a caller can read or change it. The sub-matrices inside an IndexesMulti vector are not among them.
func (c *Command) Submatrices(yield func(arg *int32) bool) {
	if !c.Type.Valid() {
		return
	}
	args := [...]*int32{&c.Arg1, &c.Arg2, &c.Arg3, &c.Arg4, &c.Arg5, &c.Arg6, &c.Arg7}
	for i, kind := range argKinds[c.Type] {
		if kind >= argWhole && kind <= argViewOrNone && *args[i] > 0 && !yield(args[i]) {
			return
		}
	}
}
