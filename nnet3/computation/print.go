package computation

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/component"
)

// Printer writes commands for people to read. It takes any computation, also one that the Checker would refuse: a number
// that refers to nothing is printed as it is.
type Printer struct {
	c   *Computation
	net *NetworkInfo
	// MaxRuns bounds how many runs of rows are listed where a command names rows one by one; 0 means all of them.
	MaxRuns int
}

// NewPrinter returns a printer for the commands of c. Without net (nil) components and nodes go by their numbers.
func NewPrinter(c *Computation, net *NetworkInfo) *Printer {
	return &Printer{c: c, net: net}
}

// Print writes the computation as text: a line of totals, then the matrices with what their rows stand for (where that is
// known), then the commands. A command looks like
//
//	c12  m4(0:9, 0:31) = tdnn1.affine.Propagate(m2)
//
// where m4(0:9, 0:31) is rows 0 to 9 and columns 0 to 31 of matrix 4; += stands where a component adds to its output.
func Print(w io.Writer, c *Computation, net *NetworkInfo) error {
	p := NewPrinter(c, net)
	out := bufio.NewWriter(w)
	n := c.Counts()
	fmt.Fprintf(out, "# %d commands, %d matrices, %d sub-matrices, at most %d bytes\n", n.Commands, n.Matrices, n.Submatrices, n.MaxMemoryBytes)
	var line []byte
	for m := 1; m < len(c.Matrices); m++ {
		line = p.appendMatrixInfo(line[:0], int32(m))
		out.Write(append(line, '\n'))
	}
	for i := range c.Commands {
		line = append(line[:0], 'c')
		line = strconv.AppendInt(line, int64(i), 10)
		line = append(line, "  "...)
		line = p.appendCommand(line, c.Commands[i])
		out.Write(append(line, '\n'))
	}
	return out.Flush()
}

// Command returns the text of command number i.
func (p *Printer) Command(i int) string {
	if i < 0 || i >= len(p.c.Commands) {
		return "c" + strconv.Itoa(i)
	}
	return string(p.appendCommand(nil, p.c.Commands[i]))
}

// appendCommand appends the text of a command, without its number, to dst.
func (p *Printer) appendCommand(dst []byte, cmd Command) []byte {
	switch cmd.Type {
	case AllocMatrix:
		dst = append(p.appendSubmatrix(dst, cmd.Arg1), " = undefined"...)
		return p.appendSize(dst, cmd.Arg1)
	case DeallocMatrix:
		return append(p.appendSubmatrix(dst, cmd.Arg1), " = []"...)
	case SwapMatrix:
		dst = p.appendSubmatrix(append(dst, "swap("...), cmd.Arg1)
		return append(p.appendSubmatrix(append(dst, ", "...), cmd.Arg2), ')')
	case SetConst:
		dst = append(p.appendSubmatrix(dst, cmd.Arg1), " = "...)
		return appendFloat(dst, cmd.Alpha)
	case Propagate:
		return p.appendPropagate(dst, cmd)
	case Backprop, BackpropNoModelUpdate:
		return p.appendBackprop(dst, cmd)
	case MatrixCopy, MatrixAdd:
		dst = p.appendAssign(dst, cmd.Arg1, cmd.Type == MatrixAdd, cmd.Alpha)
		return p.appendSubmatrix(dst, cmd.Arg2)
	case CopyRows, AddRows:
		dst = p.appendAssign(dst, cmd.Arg1, cmd.Type == AddRows, cmd.Alpha)
		dst = p.appendSubmatrix(append(dst, "rows("...), cmd.Arg2)
		return append(p.appendIndexes(append(dst, ", "...), cmd.Arg3), ')')
	case CopyRowsMulti, AddRowsMulti:
		dst = p.appendAssign(dst, cmd.Arg1, cmd.Type == AddRowsMulti, cmd.Alpha)
		return append(p.appendMulti(append(dst, "rows("...), cmd.Arg2), ')')
	case CopyToRowsMulti, AddToRowsMulti:
		dst = append(p.appendMulti(append(dst, "rows("...), cmd.Arg2), ')')
		dst = appendAssignment(dst, cmd.Type == AddToRowsMulti, cmd.Alpha)
		return p.appendSubmatrix(dst, cmd.Arg1)
	case AddRowRanges:
		dst = p.appendAssign(dst, cmd.Arg1, true, cmd.Alpha)
		dst = p.appendSubmatrix(append(dst, "row_sums("...), cmd.Arg2)
		return append(p.appendRanges(append(dst, ", "...), cmd.Arg3), ')')
	case CompressMatrix:
		return p.appendCompress(dst, cmd)
	case DecompressMatrix:
		return p.appendSubmatrix(append(dst, "decompress "...), cmd.Arg1)
	case AcceptInput:
		dst = p.appendSubmatrix(append(dst, "accept "...), cmd.Arg1)
		return p.appendNode(dst, cmd)
	case ProvideOutput:
		dst = p.appendSubmatrix(append(dst, "provide "...), cmd.Arg1)
		return p.appendNode(dst, cmd)
	case NoOperation:
		return append(dst, "no-op"...)
	case NoOperationPermanent:
		return append(dst, "no-op (permanent)"...)
	case NoOperationMarker:
		return append(dst, "---- marker ----"...)
	case NoOperationLabel:
		return append(dst, "label"...)
	case GotoLabel:
		return strconv.AppendInt(append(dst, "goto c"...), int64(cmd.Arg1), 10)
	}
	return append(dst, cmd.Type.String()...)
}

// appendSubmatrix appends a sub-matrix: m4 for all of matrix 4, else m4(rows, columns) with inclusive ranges, where a colon
// alone stands for all.
func (p *Printer) appendSubmatrix(dst []byte, s int32) []byte {
	if s < 0 || int(s) >= len(p.c.Submatrices) || int(p.c.Submatrices[s].Matrix) >= len(p.c.Matrices) || p.c.Submatrices[s].Matrix < 0 {
		return strconv.AppendInt(append(dst, "submatrix#"...), int64(s), 10)
	}
	if s == 0 {
		return append(dst, "[]"...)
	}
	sub := p.c.Submatrices[s]
	m := p.c.Matrices[sub.Matrix]
	dst = strconv.AppendInt(append(dst, 'm'), int64(sub.Matrix), 10)
	if p.c.IsWhole(s) {
		return dst
	}
	dst = appendRange(append(dst, '('), sub.RowOffset, sub.NumRows, m.Rows)
	dst = appendRange(append(dst, ", "...), sub.ColOffset, sub.NumCols, m.Cols)
	return append(dst, ')')
}

// appendRange appends first:last, inclusive, or a colon for all.
func appendRange(dst []byte, offset, n, all int32) []byte {
	if offset == 0 && n == all {
		return append(dst, ':')
	}
	dst = append(strconv.AppendInt(dst, int64(offset), 10), ':')
	return strconv.AppendInt(dst, int64(offset)+int64(n)-1, 10)
}

func (p *Printer) appendSize(dst []byte, s int32) []byte {
	if s < 0 || int(s) >= len(p.c.Submatrices) {
		return dst
	}
	sub := p.c.Submatrices[s]
	dst = strconv.AppendInt(append(dst, '('), int64(sub.NumRows), 10)
	dst = strconv.AppendInt(append(dst, ", "...), int64(sub.NumCols), 10)
	return append(dst, ')')
}

// appendAssign appends "m4 = ", "m4 += ", "m4 = 0.5 * ".
func (p *Printer) appendAssign(dst []byte, s int32, adds bool, alpha float32) []byte {
	return appendAssignment(p.appendSubmatrix(dst, s), adds, alpha)
}

func appendAssignment(dst []byte, adds bool, alpha float32) []byte {
	if adds {
		dst = append(dst, " += "...)
	} else {
		dst = append(dst, " = "...)
	}
	if alpha != 1 {
		dst = append(appendFloat(dst, alpha), " * "...)
	}
	return dst
}

func appendFloat(dst []byte, f float32) []byte {
	return strconv.AppendFloat(dst, float64(f), 'g', -1, 32)
}

func (p *Printer) appendPropagate(dst []byte, cmd Command) []byte {
	info, _ := p.net.component(cmd.Arg1)
	dst = p.appendAssign(dst, cmd.Arg4, info.Has(component.PropagateAdds), 1)
	dst = append(append(dst, p.net.componentName(cmd.Arg1)...), ".Propagate("...)
	if cmd.Arg3 != 0 {
		dst = p.appendSubmatrix(dst, cmd.Arg3)
	}
	dst = appendNumber(dst, ", precomputed ", cmd.Arg2)
	dst = appendNumber(dst, ", memo ", cmd.Arg5)
	if cmd.Arg6 == 1 {
		dst = append(dst, ", store stats"...)
	}
	return append(dst, ')')
}

func (p *Printer) appendBackprop(dst []byte, cmd Command) []byte {
	info, _ := p.net.component(cmd.Arg1)
	if cmd.Arg6 != 0 {
		dst = p.appendAssign(dst, cmd.Arg6, info.Has(component.BackpropAdds), 1)
	}
	dst = append(append(dst, p.net.componentName(cmd.Arg1)...), '.')
	dst = append(append(dst, cmd.Type.String()...), '(')
	dst = p.appendSubmatrix(append(dst, "dy: "...), cmd.Arg5)
	if cmd.Arg3 != 0 {
		dst = p.appendSubmatrix(append(dst, ", x: "...), cmd.Arg3)
	}
	if cmd.Arg4 != 0 {
		dst = p.appendSubmatrix(append(dst, ", y: "...), cmd.Arg4)
	}
	dst = appendNumber(dst, ", precomputed ", cmd.Arg2)
	dst = appendNumber(dst, ", memo ", cmd.Arg7)
	return append(dst, ')')
}

// appendNumber appends what and the number, nothing where the number is none.
func appendNumber(dst []byte, what string, n int32) []byte {
	if n <= 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, what...), int64(n), 10)
}

func (p *Printer) appendCompress(dst []byte, cmd Command) []byte {
	dst = p.appendSubmatrix(append(dst, "compress "...), cmd.Arg1)
	switch cmd.Arg2 {
	case CompressInt8:
		dst = append(dst, " to int8"...)
	case CompressUint8:
		dst = append(dst, " to uint8"...)
	case CompressInt16:
		dst = append(dst, " to int16"...)
	case CompressUint16:
		dst = append(dst, " to uint16"...)
	default:
		dst = strconv.AppendInt(append(dst, " to type "...), int64(cmd.Arg2), 10)
	}
	if cmd.Alpha == 0 {
		dst = append(dst, ", sign only"...)
	} else {
		dst = appendFloat(append(dst, ", range "...), cmd.Alpha)
	}
	if cmd.Arg3 == 1 {
		dst = append(dst, ", truncated"...)
	}
	return dst
}

// appendNode appends which node the command deals with, and whether it is about the node's derivative where that is known.
func (p *Printer) appendNode(dst []byte, cmd Command) []byte {
	dst = append(append(dst, " for "...), p.net.nodeName(cmd.Arg2)...)
	if s := cmd.Arg1; s > 0 && int(s) < len(p.c.Submatrices) {
		if m := p.c.Submatrices[s].Matrix; m > 0 && int(m) < len(p.c.MatrixDebugInfo) && p.c.MatrixDebugInfo[m].IsDeriv {
			dst = append(dst, " (derivative)"...)
		}
	}
	return dst
}
