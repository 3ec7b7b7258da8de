package kaldiio

import (
	"encoding/binary"
	"math"
)

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
