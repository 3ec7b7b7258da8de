package computation

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
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

// appendRuns divides n rows into maximal runs and appends the text of each, separated by commas,
// but of no more than most runs (0: all), and then how many rows it left out. same reports whether
// row i+1 continues a run that begins at first and holds i.
func appendRuns(dst []byte, n, most int, same func(first, i int) bool, run func(dst []byte, first, last int) []byte) []byte {
	count := 0
	for first := 0; first < n; count++ {
		if most > 0 && count == most {
			return append(appendInt(dst, ", ... ", n-first), " more"...)
		}
		last := first
		for last+1 < n && same(first, last) {
			last++
		}
		if first > 0 {
			dst = append(dst, ", "...)
		}
		dst = run(dst, first, last)
		first = last + 1
	}
	return dst
}

// appendTimes appends how often an item is repeated, nothing for once.
func appendTimes(dst []byte, n int) []byte {
	if n == 1 {
		return dst
	}
	return appendInt(dst, " x", n)
}

// appendIndexes appends a vector of row numbers in brackets, - for -1.
func (p *Printer) appendIndexes(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.Indexes) {
		return appendInt(dst, "indexes#", vector)
	}
	v := p.c.Indexes[vector]
	return append(appendRowList(append(dst, '['), len(v), p.MaxRuns, func(i int) int { return int(v[i]) }), ']')
}

// appendRowList appends n row numbers as arithmetic progressions: 7, 0:9, 0:27:3, 5 x10.
func appendRowList(dst []byte, n, most int, row func(i int) int) []byte {
	same := func(first, i int) bool {
		// A run is all -1, or begins with two numbers whose distance the others keep.
		if row(first) < 0 || row(i+1) < 0 {
			return row(first) == row(i+1)
		}
		return i == first || row(i+1)-row(i) == row(first+1)-row(first)
	}
	return appendRuns(dst, n, most, same, func(dst []byte, first, last int) []byte {
		if row(first) < 0 {
			return appendTimes(append(dst, '-'), last-first+1)
		}
		dst = appendInt(dst, "", row(first))
		if last == first || row(first+1) == row(first) {
			return appendTimes(dst, last-first+1)
		}
		dst = appendInt(dst, ":", row(last))
		if step := row(first+1) - row(first); step != 1 {
			dst = appendInt(dst, ":", step)
		}
		return dst
	})
}

// appendMulti appends a vector of (sub-matrix, row) pairs: m3[0:9], m4(:, 0:31)[2], -.
func (p *Printer) appendMulti(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.IndexesMulti) {
		return appendInt(dst, "indexes_multi#", vector)
	}
	v := p.c.IndexesMulti[vector]
	same := func(first, i int) bool { return v[first][0] == v[i+1][0] }
	return appendRuns(dst, len(v), p.MaxRuns, same, func(dst []byte, first, last int) []byte {
		if v[first][0] < 0 {
			return appendTimes(append(dst, '-'), last-first+1)
		}
		dst = append(p.appendSubmatrix(dst, v[first][0]), '[')
		dst = appendRowList(dst, last-first+1, p.MaxRuns, func(i int) int { return int(v[first+i][1]) })
		return append(dst, ']')
	})
}

// appendRanges appends a vector of ranges of rows, with inclusive ends, - for an empty one.
func (p *Printer) appendRanges(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.IndexesRanges) {
		return appendInt(dst, "indexes_ranges#", vector)
	}
	v := p.c.IndexesRanges[vector]
	same := func(first, i int) bool { return v[first] == v[i+1] }
	return appendRuns(dst, len(v), p.MaxRuns, same, func(dst []byte, first, last int) []byte {
		if r := v[first]; r[0] < 0 || r[0] == r[1] {
			dst = append(dst, '-')
		} else {
			dst = appendRange(dst, r[0], r[1]-r[0], -1)
		}
		return appendTimes(dst, last-first+1)
	})
}

// appendMatrixInfo appends the size of matrix m and the meaning of its rows where it is known:
//
//	m2  33x48  value of tdnn1.affine_input(0,-16:16)
func (p *Printer) appendMatrixInfo(dst []byte, m int32) []byte {
	info := p.c.Matrices[m]
	dst = fmt.Appendf(dst, "m%d  %dx%d", m, info.Rows, info.Cols)
	if info.StrideEqualNumCols {
		dst = append(dst, " (stride = columns)"...)
	}
	if int(m) >= len(p.c.MatrixDebugInfo) {
		return dst
	}
	debug := p.c.MatrixDebugInfo[m]
	if debug.IsDeriv {
		dst = append(dst, "  derivative of "...)
	} else {
		dst = append(dst, "  value of "...)
	}
	return append(dst, index.FormatCindexes(debug.Cindexes, func(node int) string { return p.net.nodeName(int32(node)) })...)
}
