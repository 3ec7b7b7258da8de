package computation

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/component"
)

// Printer prints commands. It takes any computation, even one that Check refuses: numbers that are
// out of range are printed as they are.
type Printer struct {
	c   *Computation
	net *NetworkInfo
	// MaxRuns bounds how many runs of a vector of rows are listed; 0 means all.
	MaxRuns int
}

// NewPrinter returns a printer for the commands of c. A nil net has them show numbers, not names.
func NewPrinter(c *Computation, net *NetworkInfo) *Printer { return &Printer{c: c, net: net} }

// Print writes the computation as text: a line of totals, the matrices with the meaning of their
// rows where it is known, and the commands. A command looks like
//
//	c12  m4(0:9, 0:31) = tdnn1.affine.Propagate(m2)
//
// where m4(0:9, 0:31) is rows 0 to 9 and columns 0 to 31 of matrix 4; a component with += adds.
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
		line = append(appendInt(line[:0], "c", i), "  "...)
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

// forms are the texts of the commands without components. The verbs: %1 and %2 are the view
// and the source, %s the size of the view, %a Alpha, %* "Alpha * " unless Alpha is 1, %i, %m and %r
// vectors, %n a node, and %c the number of a command.
var forms = [numCommandTypes]string{
	AllocMatrix:          "%1 = undefined%s",
	DeallocMatrix:        "%1 = []",
	SwapMatrix:           "swap(%1, %2)",
	SetConst:             "%1 = %a",
	MatrixCopy:           "%1 = %*%2",
	MatrixAdd:            "%1 += %*%2",
	CopyRows:             "%1 = %*rows(%2, %i)",
	AddRows:              "%1 += %*rows(%2, %i)",
	CopyRowsMulti:        "%1 = %*rows(%m)",
	CopyToRowsMulti:      "rows(%m) = %*%1",
	AddRowsMulti:         "%1 += %*rows(%m)",
	AddToRowsMulti:       "rows(%m) += %*%1",
	AddRowRanges:         "%1 += %*row_sums(%2, %r)",
	DecompressMatrix:     "decompress %1",
	AcceptInput:          "accept %1 for %n",
	ProvideOutput:        "provide %1 for %n",
	NoOperation:          "no-op",
	NoOperationPermanent: "no-op (permanent)",
	NoOperationMarker:    "---- marker ----",
	NoOperationLabel:     "label",
	GotoLabel:            "goto c%c",
}

// appendCommand appends the text of a command, without its number.
func (p *Printer) appendCommand(dst []byte, cmd Command) []byte {
	switch {
	case cmd.Type == Propagate:
		return p.appendPropagate(dst, cmd)
	case cmd.Type.IsBackprop():
		return p.appendBackprop(dst, cmd)
	case cmd.Type == CompressMatrix:
		return p.appendCompress(dst, cmd)
	case !cmd.Type.valid():
		return append(dst, cmd.Type.String()...)
	}
	verb := false
	for _, x := range []byte(forms[cmd.Type]) {
		switch {
		case x == '%':
			verb = true
			continue
		case !verb:
			dst = append(dst, x)
		case x == '1':
			dst = p.appendSubmatrix(dst, cmd.View())
		case x == '2':
			dst = p.appendSubmatrix(dst, cmd.Source())
		case x == 's' && cmd.View() >= 0 && int(cmd.View()) < len(p.c.Submatrices):
			sub := p.c.Submatrices[cmd.View()]
			dst = append(appendInt(appendInt(dst, "(", sub.NumRows), ", ", sub.NumCols), ')')
		case x == 'a':
			dst = appendFloat(dst, cmd.Alpha)
		case x == '*' && cmd.Alpha != 1:
			dst = append(appendFloat(dst, cmd.Alpha), " * "...)
		case x == 'i':
			dst = p.appendIndexes(dst, cmd.Vector())
		case x == 'm':
			dst = p.appendMulti(dst, cmd.Vector())
		case x == 'r':
			dst = p.appendRanges(dst, cmd.Vector())
		case x == 'n':
			dst = p.appendNode(dst, cmd)
		case x == 'c':
			dst = appendInt(dst, "", cmd.Target())
		}
		verb = false
	}
	return dst
}

// appendInt appends text and a number.
func appendInt[T int | int32](dst []byte, text string, n T) []byte {
	return strconv.AppendInt(append(dst, text...), int64(n), 10)
}

func appendFloat(dst []byte, f float32) []byte {
	return strconv.AppendFloat(dst, float64(f), 'g', -1, 32)
}

// appendSubmatrix appends a sub-matrix: m4 for all of matrix 4, else m4(rows, columns) with
// inclusive ranges, where a lone colon means all.
func (p *Printer) appendSubmatrix(dst []byte, s int32) []byte {
	if s < 0 || int(s) >= len(p.c.Submatrices) || int(p.c.Submatrices[s].Matrix) >= len(p.c.Matrices) || p.c.Submatrices[s].Matrix < 0 {
		return appendInt(dst, "submatrix#", s)
	}
	if s == 0 {
		return append(dst, "[]"...)
	}
	sub := p.c.Submatrices[s]
	m := p.c.Matrices[sub.Matrix]
	dst = appendInt(dst, "m", sub.Matrix)
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
	return appendInt(appendInt(dst, "", offset), ":", int(offset)+int(n)-1)
}

// appendRun appends "m4 = relu.Propagate(" for an output s, with += if the component adds.
func (p *Printer) appendRun(dst []byte, cmd Command, s int32, adds component.Properties) []byte {
	info, known := p.net.component(cmd.Component())
	if s != 0 || cmd.Type == Propagate {
		equals := " = "
		if info.Has(adds) {
			equals = " += "
		}
		dst = append(p.appendSubmatrix(dst, s), equals...)
	}
	if !known {
		info.Name = fmt.Sprintf("component%d", cmd.Component())
	}
	dst = append(append(dst, info.Name...), '.')
	return append(append(dst, cmd.Type.String()...), '(')
}

func (p *Printer) appendPropagate(dst []byte, cmd Command) []byte {
	dst = p.appendRun(dst, cmd, cmd.Output(), component.PropagateAdds)
	if cmd.Input() != 0 {
		dst = p.appendSubmatrix(dst, cmd.Input())
	}
	dst = appendPositive(dst, ", precomputed ", cmd.Precomputed())
	dst = appendPositive(dst, ", memo ", cmd.Memo())
	if cmd.StoresStats() {
		dst = append(dst, ", store stats"...)
	}
	return append(dst, ')')
}

func (p *Printer) appendBackprop(dst []byte, cmd Command) []byte {
	dst = p.appendRun(dst, cmd, cmd.InputDeriv(), component.BackpropAdds)
	dst = p.appendSubmatrix(append(dst, "dy: "...), cmd.OutputDeriv())
	if cmd.Input() != 0 {
		dst = p.appendSubmatrix(append(dst, ", x: "...), cmd.Input())
	}
	if cmd.Output() != 0 {
		dst = p.appendSubmatrix(append(dst, ", y: "...), cmd.Output())
	}
	dst = appendPositive(dst, ", precomputed ", cmd.Precomputed())
	dst = appendPositive(dst, ", memo ", cmd.Memo())
	return append(dst, ')')
}

// appendPositive appends text and a number, or nothing unless the number is positive.
func appendPositive(dst []byte, text string, n int32) []byte {
	if n <= 0 {
		return dst
	}
	return appendInt(dst, text, n)
}

func (p *Printer) appendCompress(dst []byte, cmd Command) []byte {
	dst = p.appendSubmatrix(append(dst, "compress "...), cmd.View())
	if k := cmd.compression(); k >= CompressInt8 && k <= CompressUint16 {
		dst = append(dst, [...]string{CompressInt8: " to int8", CompressUint8: " to uint8", CompressInt16: " to int16", CompressUint16: " to uint16"}[k]...)
	} else {
		dst = appendInt(dst, " to type ", k)
	}
	if cmd.Alpha == 0 {
		dst = append(dst, ", sign only"...)
	} else {
		dst = appendFloat(append(dst, ", range "...), cmd.Alpha)
	}
	if cmd.truncates() {
		dst = append(dst, ", truncated"...)
	}
	return dst
}

// appendNode appends the node of an input or output, and whether that is a derivative, if known.
func (p *Printer) appendNode(dst []byte, cmd Command) []byte {
	dst = append(dst, p.net.nodeName(cmd.Node())...)
	if s := cmd.View(); s > 0 && int(s) < len(p.c.Submatrices) {
		if m := p.c.Submatrices[s].Matrix; m > 0 && int(m) < len(p.c.MatrixDebugInfo) && p.c.MatrixDebugInfo[m].IsDeriv {
			dst = append(dst, " (derivative)"...)
		}
	}
	return dst
}
