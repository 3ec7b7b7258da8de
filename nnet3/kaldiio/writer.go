package kaldiio

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"strconv"
)

// Writer writes Kaldi's encodings. The first error sticks: later calls do nothing, and Flush
// returns it. Before Flush, nothing is certain to have been written.
type Writer struct {
	w       *bufio.Writer
	binary  bool
	err     error
	failed  error  // the error, if it comes from Fail
	n       int64  // bytes so far
	scratch []byte // with room for a number in text or binary
}

// NewWriter returns a writer on w. It does not write the binary header; Header does.
func NewWriter(w io.Writer, binary bool) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, bufferSize), binary: binary, scratch: make([]byte, 0, 64)}
}

// Binary reports whether the output is binary.
func (w *Writer) Binary() bool { return w.binary }

// written returns how many of the w.n bytes so far have left the buffer.
func (w *Writer) written() int64 { return w.n - int64(w.w.Buffered()) }

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// Fail sets the error of the writer, unless it already has one.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err, w.failed = err, err
	}
}

// Flush writes out the buffer and returns the first error.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// Raw writes s as it is, in both modes.
func (w *Writer) Raw(s string) {
	if w.err == nil {
		var k int
		k, w.err = w.w.WriteString(s)
		w.n += int64(k)
	}
}

func (w *Writer) bytes(b []byte) {
	if w.err == nil {
		var k int
		k, w.err = w.w.Write(b)
		w.n += int64(k)
	}
}

// Byte writes one byte as it is.
func (w *Writer) Byte(c byte) {
	if w.err == nil {
		if w.err = w.w.WriteByte(c); w.err == nil {
			w.n++
		}
	}
}

// Header writes the two bytes that mark binary data; in text, nothing.
func (w *Writer) Header() {
	if w.binary {
		w.Raw("\x00B")
	}
}

// Newline ends a line in text; in binary it writes nothing.
func (w *Writer) Newline() {
	if !w.binary {
		w.Byte('\n')
	}
}

// Token writes a token and a space.
func (w *Writer) Token(token string) {
	w.Raw(token)
	w.Byte(' ')
}

// Int32 writes a signed 32-bit integer.
func (w *Writer) Int32(v int32) {
	if !w.binary {
		w.textInt(v)
		return
	}
	w.bytes(binary.LittleEndian.AppendUint32(append(w.scratch[:0], 4), uint32(v)))
}

// Int writes v as a signed 32-bit integer.
func (w *Writer) Int(v int) { w.Int32(int32(v)) }

// Uint64 writes an unsigned 64-bit integer, Kaldi's size_t.
func (w *Writer) Uint64(v uint64) {
	if !w.binary {
		w.bytes(append(strconv.AppendUint(w.scratch[:0], v, 10), ' '))
		return
	}
	w.bytes(binary.LittleEndian.AppendUint64(append(w.scratch[:0], 0xf8), v)) // size byte -8: unsigned
}

// Float32 writes a number in single precision.
func (w *Writer) Float32(v float32) { writeReal(w, v) }

// Float64 writes a number in double precision.
func (w *Writer) Float64(v float64) { writeReal(w, v) }

func writeReal[T real](w *Writer, v T) {
	if !w.binary {
		w.textFloat(float64(v))
		return
	}
	w.bytes(appendReal(append(w.scratch[:0], byte(bitsOf[T]()/8)), v))
}

// Bool writes T or F.
func (w *Writer) Bool(v bool) {
	text := "F"
	if v {
		text = "T"
	}
	w.Raw(text)
	if !w.binary {
		w.Byte(' ')
	}
}

func (w *Writer) textInt(v int32) {
	w.bytes(append(strconv.AppendInt(w.scratch[:0], int64(v), 10), ' '))
}

func (w *Writer) textFloat(v float64) { w.bytes(append(appendFloat(w.scratch[:0], v), ' ')) }

// appendFloat appends v as Kaldi writes numbers in text, with seven significant digits.
func appendFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		if math.Signbit(v) {
			return append(dst, "-nan"...)
		}
		return append(dst, "nan"...)
	case math.IsInf(v, 1):
		return append(dst, "inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, v, 'g', 7, 64)
}

// Vector writes a vector in single precision.
func (w *Writer) Vector(v []float32) { writeVector(w, v, "FV") }

// DoubleVector writes a vector in double precision.
func (w *Writer) DoubleVector(v []float64) { writeVector(w, v, "DV") }

func writeVector[T real](w *Writer, v []T, token string) {
	if w.binary {
		w.Token(token)
		w.Int(len(v))
		writeReals(w, v)
		return
	}
	w.Raw(" [ ")
	for _, x := range v {
		w.textFloat(float64(x))
	}
	w.Raw("]\n")
}

// Matrix writes a matrix in single precision.
func (w *Writer) Matrix(m Matrix) { writeMatrix(w, m.Rows, m.Cols, m.Stride, m.Data, "FM") }

// DoubleMatrix writes a matrix in double precision.
func (w *Writer) DoubleMatrix(m DoubleMatrix) {
	writeMatrix(w, m.Rows, m.Cols, m.Stride, m.Data, "DM")
}

func writeMatrix[T real](w *Writer, rows, cols, stride int, data []T, token string) {
	w.beginMatrix(rows, cols, token)
	writeRows(w, rows, cols, stride, data)
	w.EndMatrix()
}

// BeginMatrix begins a matrix in single precision whose rows come later: as many as are announced,
// by calls of Rows, and then EndMatrix.
func (w *Writer) BeginMatrix(rows, cols int) { w.beginMatrix(rows, cols, "FM") }

// Rows writes rows of the matrix that was begun.
func (w *Writer) Rows(m Matrix) { writeRows(w, m.Rows, m.Cols, m.Stride, m.Data) }

// EndMatrix ends the matrix that was begun.
func (w *Writer) EndMatrix() {
	if !w.binary {
		w.Raw("]\n")
	}
}

func (w *Writer) beginMatrix(rows, cols int, token string) {
	if !w.binary {
		w.Raw(" [")
		if cols == 0 {
			w.Byte(' ')
		}
		return
	}
	w.Token(token)
	w.Int(rows)
	w.Int(cols)
}

func writeRows[T real](w *Writer, rows, cols, stride int, data []T) {
	if cols == 0 {
		return
	}
	if w.binary && stride == cols {
		writeReals(w, data[:rows*cols])
		return
	}
	for i := range rows {
		row := data[i*stride : i*stride+cols]
		if w.binary {
			writeReals(w, row)
			continue
		}
		w.Raw("\n  ")
		for _, x := range row {
			w.textFloat(float64(x))
		}
	}
}

// writeReals writes numbers without size bytes.
func writeReals[T real](w *Writer, v []T) {
	if b := bytesOf(v); b != nil {
		w.bytes(b)
		return
	}
	for _, x := range v {
		w.bytes(appendReal(w.scratch[:0], x))
	}
}

func appendReal[T real](b []byte, x T) []byte {
	if bitsOf[T]() == 32 {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(x)))
}
