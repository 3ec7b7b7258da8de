package kaldiio

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// CompressionMethod says how a matrix is compressed. The values are Kaldi's.
type CompressionMethod int

// The methods.
const (
	CompressAuto          CompressionMethod = iota + 1 // compressSpeech for more than 8 rows, else compressTwoByte
	compressSpeech                                     // a byte an element, along the percentiles of its column
	compressTwoByte                                    // two bytes, evenly from the least to the greatest element
	compressTwoByteSigned                              // two bytes, the integers from -32768 to 32767
	compressOneByte                                    // a byte, evenly from the least to the greatest element
	compressOneByteUint                                // a byte, the integers from 0 to 255
	compressOneByteUnit                                // a byte, evenly from 0 to 1
)

// compressedForms has the token of each method and its range of values. Scale 0 means the range of
// the matrix.
var compressedForms = map[CompressionMethod]struct {
	token      string
	min, scale float32
}{
	compressSpeech:        {token: "CM"},
	compressTwoByte:       {token: "CM2"},
	compressTwoByteSigned: {token: "CM2", min: -32768, scale: 65535},
	compressOneByte:       {token: "CM3"},
	compressOneByteUint:   {token: "CM3", scale: 255},
	compressOneByteUnit:   {token: "CM3", scale: 1},
}

// CompressedMatrix writes a matrix in compressed form; in text it writes an ordinary matrix.
// Elements beyond the range of the method are clipped to it. Unknown methods fail (ErrSpecifier).
func (w *Writer) CompressedMatrix(m Matrix, method CompressionMethod) {
	if !w.binary {
		w.Matrix(m)
		return
	}
	if method == CompressAuto {
		method = compressTwoByte
		if m.Rows > 8 {
			method = compressSpeech
		}
	}
	form, ok := compressedForms[method]
	if !ok {
		w.Fail(fmt.Errorf("compression method %d: %w", method, ErrSpecifier))
		return
	}
	h := matrixHeader{rows: m.Rows, cols: m.Cols, min: form.min, scale: form.scale}
	if h.scale == 0 {
		h.min, h.scale = extent(m)
	}
	if m.Rows == 0 {
		h.min, h.scale = 0, 0
	}
	w.Token(form.token)
	w.header(h)
	if form.token == "CM" {
		w.speech(h, m)
		return
	}
	twoBytes := form.token == "CM2"
	for i := range m.Rows {
		w.scratch = w.scratch[:0]
		for _, v := range m.Row(i) {
			if twoBytes {
				w.scratch = binary.LittleEndian.AppendUint16(w.scratch, h.quantize16(v))
			} else {
				w.scratch = append(w.scratch, byte(h.quantize(v, 255)))
			}
		}
		w.bytes(w.scratch)
	}
}

// extent returns the least element and its distance to the greatest, made positive.
func extent(m Matrix) (least, distance float32) {
	if m.Rows == 0 {
		return 0, 0
	}
	least, most := m.Data[0], m.Data[0]
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			least, most = min(least, v), max(most, v)
		}
	}
	if most == least {
		most = least + float32(1+math.Abs(float64(least)))
	}
	return least, most - least
}

func (w *Writer) header(h matrixHeader) {
	b := binary.LittleEndian.AppendUint32(w.scratch[:0], math.Float32bits(h.min))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(h.scale))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.rows))
	w.bytes(binary.LittleEndian.AppendUint32(b, uint32(h.cols)))
}

// quantize maps a value to the nearest integer from 0 to top.
func (h matrixHeader) quantize(v float32, top int) int {
	f := (v - h.min) / h.scale
	switch {
	// The comparison is negated to catch NaN, whose conversion to an integer differs between
	// processors.
	case !(f > 0): // NaN too
		f = 0
	case f > 1:
		f = 1
	}
	// Kaldi adds 0.499, not 0.5, in double precision. This way its bytes and ours agree.
	return int(float64(float32(f*float32(top))) + 0.499)
}

func (h matrixHeader) quantize16(v float32) uint16 { return uint16(h.quantize(v, 65535)) }

// speech writes the percentiles and the bytes of all columns.
func (w *Writer) speech(h matrixHeader, m Matrix) {
	percentiles := make([][4]uint16, m.Cols)
	column := make([]float32, m.Rows)
	w.scratch = w.scratch[:0]
	for j := range m.Cols {
		for i := range column {
			column[i] = m.Data[i*m.Stride+j]
		}
		slices.Sort(column)
		percentiles[j] = h.percentiles(column)
		for _, p := range percentiles[j] {
			w.scratch = binary.LittleEndian.AppendUint16(w.scratch, p)
		}
	}
	w.bytes(w.scratch)
	for j := range m.Cols {
		var p [4]float32
		for k := range p {
			p[k] = h.percentile(percentiles[j][k])
		}
		w.scratch = w.scratch[:0]
		for i := range m.Rows {
			w.scratch = append(w.scratch, speechByte(p, m.Data[i*m.Stride+j]))
		}
		w.bytes(w.scratch)
	}
}

// percentiles returns the 0th, 25th, 75th and 100th percentiles of a sorted column, all different.
func (h matrixHeader) percentiles(sorted []float32) [4]uint16 {
	n := len(sorted)
	at := [4]int{0, n / 4, 3 * (n / 4), n - 1}
	if n < 5 {
		at = [4]int{0, 1, 2, 3}
	}
	var p [4]uint16
	for k := range p {
		if at[k] < n {
			p[k] = h.quantize16(sorted[at[k]])
		}
		if k > 0 {
			// The four must differ, because the reader divides by nothing but the writer divides by
			// their distances. The upper bounds 65532+k leave room for those that follow.
			p[k] = max(p[k], p[k-1]+1)
		}
		p[k] = min(p[k], uint16(65532+k))
	}
	return p
}

// speechByte is the inverse of speechValue.
func speechByte(p [4]float32, v float32) byte {
	step := func(from, to float32, base, steps int) byte {
		n := base + int(float64(float32((v-from)/(to-from)*float32(steps)))+0.5)
		return byte(min(max(n, base), base+steps))
	}
	switch {
	case v < p[1]:
		return step(p[0], p[1], 0, 64)
	case v < p[2]:
		return step(p[1], p[2], 64, 128)
	case v >= p[2]:
		return step(p[2], p[3], 192, 63)
	}
	return 0 // NaN
}

// percentileBytes is the size of the percentiles of a column in format CM.
const percentileBytes = 8

// readCompressed reads a compressed matrix after its header. The formulas are Kaldi's, with a
// product and a sum rounded once, as a compiler that fuses them does it. So values agree with
// Kaldi's to the bit on every machine.
func readCompressed[T real](r *Reader, h matrixHeader) (m dense[T], err error) {
	if h.rows == 0 {
		return dense[T]{Data: []T{}}, nil
	}
	m = dense[T]{Rows: h.rows, Cols: h.cols, Stride: h.cols}
	n := h.rows * h.cols
	what := h.what()
	if h.token == "CM" {
		m.Data, err = readSpeech[T](r, h, what)
		return m, err
	}
	width, steps := 1, 1.0/255.0
	if h.token == "CM2" {
		width, steps = 2, 1.0/65535.0
	}
	raw, err := r.temporary(width*n, what)
	if err != nil {
		return m, err
	}
	m.Data = elements[T](r, n)
	step := float32(float64(h.scale) * steps)
	for i := range m.Data {
		if width == 2 {
			m.Data[i] = T(h.at(step, int(binary.LittleEndian.Uint16(raw[2*i:]))))
		} else {
			m.Data[i] = T(h.at(step, int(raw[i])))
		}
	}
	return m, nil
}

func (r *Reader) compressedHeader(h *matrixHeader) error {
	var b [16]byte
	if err := r.readFull(b[:], "the header of a compressed matrix"); err != nil {
		return err
	}
	h.min = math.Float32frombits(binary.LittleEndian.Uint32(b[0:]))
	h.scale = math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
	rows, cols := int32(binary.LittleEndian.Uint32(b[8:])), int32(binary.LittleEndian.Uint32(b[12:]))
	if rows < 0 || cols < 0 {
		return r.Errorf("a compressed matrix of %d by %d", rows, cols)
	}
	h.rows, h.cols = int(rows), int(cols)
	_, err := r.area(h.rows, h.cols)
	return err
}

// raw reads n bytes.
func (r *Reader) raw(n int, what string) ([]byte, error) {
	return readArray(r, n, 1, what, func(dst []byte) error { return r.readFull(dst, what) })
}

// readSpeech reads format CM: four percentiles a column, then a byte an element, column by column.
func readSpeech[T real](r *Reader, h matrixHeader, what string) ([]T, error) {
	percentiles, err := r.raw(percentileBytes*h.cols, what)
	if err != nil {
		return nil, err
	}
	raw, err := r.temporary(h.rows*h.cols, what)
	if err != nil {
		return nil, err
	}
	data := elements[T](r, h.rows*h.cols)
	var value [256]T
	for j := range h.cols {
		var p [4]float32
		for k := range p {
			p[k] = h.percentile(binary.LittleEndian.Uint16(percentiles[percentileBytes*j+2*k:]))
		}
		for v := range value {
			// A column has 256 possible values, and usually more rows than that.
			value[v] = T(speechValue(p, v))
		}
		for i, v := range raw[j*h.rows : (j+1)*h.rows] {
			data[i*h.cols+j] = value[v]
		}
	}
	return data, nil
}

// temporary reads n bytes, which are valid until the next call.
func (r *Reader) temporary(n int, what string) (raw []byte, err error) {
	if n <= cap(r.scratch) {
		raw = r.scratch[:n]
		return raw, r.readFull(raw, what)
	}
	raw, err = r.raw(n, what)
	if n <= maxScratch {
		r.scratch = raw
	}
	return raw, err
}

// maxScratch bounds the bytes that a reader keeps for the next matrix.
const maxScratch = 1 << 20

// elements returns n elements, in spare memory if there is some.
func elements[T real](r *Reader, n int) []T {
	if v := spare[T](r, n); v != nil {
		return v
	}
	return make([]T, n)
}

// percentile decodes one percentile of a column.
func (h matrixHeader) percentile(u uint16) float32 {
	return h.at(float32(h.scale*float32(1.52590218966964e-05)), int(u))
}

// at returns the least value plus n steps. The product is exact in float64.
func (h matrixHeader) at(step float32, n int) float32 {
	return float32(float64(h.min) + float64(float64(step)*float64(n)))
}

// speechValue decodes one byte of a column with the given 0th, 25th, 75th and 100th percentiles.
func speechValue(p [4]float32, v int) float32 {
	switch {
	case v <= 64:
		return float32(float64(p[0]) + float64(float64(float32((p[1]-p[0])*float32(v)))*(1/64.0)))
	case v <= 192:
		return float32(float64(p[1]) + float64(float64(float32((p[2]-p[1])*float32(v-64)))*(1/128.0)))
	}
	return float32(float64(p[2]) + float64(float64(float32((p[3]-p[2])*float32(v-192)))*(1/63.0)))
}
