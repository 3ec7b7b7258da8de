package kaldiio

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
)

// TestArchiveAllocation reads archives that are large, or claim to be, from a stream, as matrices
// and as vectors.
func TestArchiveAllocation(t *testing.T) {
	const big = "\x04\xff\xff\xff\x7f"
	million := longtest.Of(1<<18, 1<<20)
	for name, data := range map[string]string{
		"text":        "k [ " + strings.Repeat("1 ", 4*million) + "]\n",
		"text rows":   "k [ " + strings.Repeat("1\n", 4*million) + "]\n",
		"many":        strings.Repeat("k [ 1 ]\n", million/4),
		"many empty":  strings.Repeat("k [ ]\n", million/4),
		"promise":     "k \x00BFM " + big + "\x04\x01\x00\x00\x00" + strings.Repeat("x", 1<<20),
		"promise CM":  "k \x00BCM " + strings.Repeat("\x00", 8) + "\xff\xff\xff\x7f\x01\x00\x00\x00" + strings.Repeat("x", 1<<20),
		"promise CM2": "k \x00BCM2 " + strings.Repeat("\x00", 8) + "\xff\xff\xff\x7f\x01\x00\x00\x00" + strings.Repeat("x", 1<<20),
		"CM3":         "k \x00BCM3 " + strings.Repeat("\x00", 8) + "\x00\x00\x40\x00\x01\x00\x00\x00" + strings.Repeat("x", 4<<20),
		"key":         strings.Repeat("k", 8<<20),
		"vector":      "k \x00BFV " + big + strings.Repeat("x", 1<<20),
	} {
		readAll := func(src io.Reader, vectors bool) {
			o := &Opener{Stdin: src}
			if vectors {
				if r, err := NewTableReader(o, "ark:-", VectorHolder()); err == nil {
					for r.Next() {
					}
					r.Close()
				}
				return
			}
			if r, err := NewTableReader(o, "ark:-", MatrixHolder()); err == nil {
				for r.Next() {
				}
				r.Close()
			}
		}
		for _, vectors := range []bool{false, true} {
			allocated := alloctest.Start()
			readAll(onlyReader{bytes.NewReader([]byte(data))}, vectors)
			if used := allocated() - uint64(len(data)); used > alloctest.Bound(len(data)) && used < math.MaxInt64 {
				t.Errorf("%s, vectors %v: %d bytes were allocated for %d", name, vectors, used, len(data))
			}
		}
	}
}

// TestSpare: a large matrix is read into memory that the reader was given, if that is large enough.
func TestSpare(t *testing.T) {
	m := Matrix{Rows: 300, Cols: 300, Stride: 300, Data: make([]float32, 90_000)}
	m.Data[7] = 7
	var b bytes.Buffer
	w := NewWriter(&b, true)
	w.Header()
	for range 3 {
		w.Matrix(m)
	}
	w.Flush()
	r, err := NewReader(&b, "")
	if err != nil {
		t.Fatal(err)
	}
	spare := make([]float32, 90_001)
	for i, give := range [][]float32{spare, nil, make([]float32, 89_999)} {
		r.Spare(give)
		got, err := r.Matrix()
		if err != nil || len(got.Data) != 90_000 || got.Data[7] != 7 {
			t.Fatal(len(got.Data), err)
		}
		if same := &got.Data[0] == &spare[0]; same != (i == 0) {
			t.Errorf("matrix %d: in the memory that was given: %v", i, same)
		}
	}
}
