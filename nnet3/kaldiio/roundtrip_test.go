package kaldiio

import (
	"bytes"
	"io"
	"math"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

// onlyReader hides the length of its reader.
type onlyReader struct{ io.Reader }

// sources returns readers of data with different behaviour.
func sources(data []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"known length":   bytes.NewReader(data),
		"unknown length": onlyReader{bytes.NewReader(data)},
		"byte by byte":   iotest.OneByteReader(bytes.NewReader(data)),
		"data with EOF":  iotest.DataErrReader(bytes.NewReader(data)),
	}
}

// everything has one value of each kind that can be written.
type everything struct {
	Token   string
	I32     int32
	U64     uint64
	F32     float32
	F64     float64
	B       bool
	V       []float32
	DV      []float64
	IV      []int32
	PV      [][2]int32
	M       Matrix
	DM      DoubleMatrix
	Padding int // columns of M that are not part of it
}

func (e *everything) write(w *Writer) {
	w.Header()
	w.Token(e.Token)
	w.Int32(e.I32)
	w.Uint64(e.U64)
	w.Float32(e.F32)
	w.Float64(e.F64)
	w.Bool(e.B)
	w.Vector(e.V)
	w.DoubleVector(e.DV)
	w.IntVector(e.IV)
	w.IntPairVector(e.PV)
	w.Matrix(e.M)
	w.DoubleMatrix(e.DM)
	w.Token("end")
}

func readEverything(r *Reader) (e everything, err error) {
	read := func(steps ...func() error) {
		for _, s := range steps {
			if err == nil {
				err = s()
			}
		}
	}
	read(
		func() error { e.Token, err = r.Token(); return err },
		func() error { e.I32, err = r.Int32(); return err },
		func() error { e.U64, err = r.Uint64(); return err },
		func() error { e.F32, err = r.Float32(); return err },
		func() error { e.F64, err = r.Float64(); return err },
		func() error { e.B, err = r.Bool(); return err },
		func() error { e.V, err = r.Vector(); return err },
		func() error { e.DV, err = r.DoubleVector(); return err },
		func() error { e.IV, err = r.IntVector(); return err },
		func() error { e.PV, err = r.IntPairVector(); return err },
		func() error { e.M, err = r.Matrix(); return err },
		func() error { e.DM, err = r.DoubleMatrix(); return err },
		func() error { return r.Expect("end") },
	)
	return e, err
}

// drawEverything draws values that survive in text: numbers with few digits, infinities and NaN.
func drawEverything(t *rapid.T) everything {
	number := rapid.Custom(func(t *rapid.T) float64 {
		switch rapid.IntRange(0, 20).Draw(t, "kind") {
		case 0:
			return math.NaN()
		case 1:
			return math.Inf(1)
		case 2:
			return math.Inf(-1)
		}
		return float64(rapid.IntRange(-4096, 4096).Draw(t, "n")) / 8
	})
	floats := func(n int, label string) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(number.Draw(t, label))
		}
		return v
	}
	doubles := func(n int, label string) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = number.Draw(t, label)
		}
		return v
	}
	size := rapid.IntRange(0, 5)
	shape := func(label string) (int, int) {
		r := size.Draw(t, label+" rows")
		if r == 0 {
			return 0, 0
		}
		return r, size.Draw(t, label+" columns") + 1
	}
	e := everything{
		Token: rapid.StringMatching(`</?[A-Za-z]{1,12}>`).Draw(t, "token"),
		I32:   rapid.Int32().Draw(t, "i32"),
		U64:   rapid.Uint64().Draw(t, "u64"),
		F32:   float32(number.Draw(t, "f32")),
		F64:   number.Draw(t, "f64"),
		B:     rapid.Bool().Draw(t, "bool"),
		V:     floats(size.Draw(t, "vector"), "v"),
		DV:    doubles(size.Draw(t, "double vector"), "dv"),
		IV:    rapid.SliceOfN(rapid.Int32(), 0, 5).Draw(t, "iv"),
	}
	e.PV = make([][2]int32, size.Draw(t, "pairs"))
	for i := range e.PV {
		e.PV[i] = [2]int32{rapid.Int32().Draw(t, "first"), rapid.Int32().Draw(t, "second")}
	}
	e.Padding = rapid.IntRange(0, 2).Draw(t, "padding")
	rows, cols := shape("matrix")
	e.M = Matrix{Rows: rows, Cols: cols, Stride: cols + e.Padding, Data: floats(rows*(cols+e.Padding), "m")}
	rows, cols = shape("double matrix")
	e.DM = DoubleMatrix{Rows: rows, Cols: cols, Stride: cols, Data: doubles(rows*cols, "dm")}
	return e
}

// packed removes the gaps between rows.
func packed(m Matrix) Matrix {
	p := Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Cols, Data: []float32{}}
	for i := range m.Rows {
		p.Data = append(p.Data, m.Row(i)...)
	}
	return p
}

// TestRoundTrip writes one of everything and reads it back, in both modes, from all sources.
func TestRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		e := drawEverything(t)
		for _, binary := range []bool{true, false} {
			var out bytes.Buffer
			w := NewWriter(&out, binary)
			e.write(w)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if w.n != int64(out.Len()) {
				t.Fatalf("the writer counted %d bytes of %d", w.n, out.Len())
			}
			want := e
			want.M = packed(e.M)
			want.Padding = 0
			for name, src := range sources(out.Bytes()) {
				r, err := NewReader(src, name)
				if err != nil {
					t.Fatal(err)
				}
				if r.Binary() != binary {
					t.Fatalf("%s: Binary is %v", name, r.Binary())
				}
				got, err := readEverything(r)
				if err != nil {
					t.Fatalf("%s, binary %v: %v", name, binary, err)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s, binary %v: -want +got\n%s", name, binary, diff)
				}
				if !r.atEOF() || r.Offset() != int64(out.Len()) {
					t.Fatalf("%s: stopped at byte %d of %d", name, r.Offset(), out.Len())
				}
			}
		}
	})
}

// TestBigMatrix exceeds the reader's buffer and the chunks that it allocates for unknown lengths.
func TestBigMatrix(t *testing.T) {
	m := Matrix{Rows: 701, Cols: 503, Stride: 503, Data: make([]float32, 701*503)}
	for i := range m.Data {
		m.Data[i] = float32(i)
	}
	for _, binary := range []bool{true, false} {
		var out bytes.Buffer
		w := NewWriter(&out, binary)
		w.Header()
		w.Matrix(m)
		w.Token("after")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for name, src := range map[string]io.Reader{"known": bytes.NewReader(out.Bytes()), "unknown": onlyReader{bytes.NewReader(out.Bytes())}} {
			r, err := NewReader(src, "big")
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Matrix()
			if err != nil {
				t.Fatal(err)
			}
			if got.Rows != m.Rows || got.Cols != m.Cols || got.Stride != m.Stride || !slices.Equal(got.Data, m.Data) {
				t.Errorf("binary %v, length %s: the matrix changed", binary, name)
			}
			if err := r.Expect("after"); err != nil {
				t.Error(err)
			}
			if binary && name == "known" && cap(got.Data) != len(got.Data) {
				t.Errorf("room for %d elements, want %d", cap(got.Data), len(got.Data))
			}
		}
	}
}

// TestPrecisions reads numbers of one precision as the other.
func TestPrecisions(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, true)
	w.Header()
	w.Float64(1.5)
	w.Float32(2.5)
	w.DoubleVector([]float64{1, 2.25})
	w.Vector([]float32{3, 4.5})
	w.DoubleMatrix(DoubleMatrix{1, 2, 2, []float64{5, 6}})
	w.Matrix(Matrix{1, 2, 2, []float32{7, 8}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&out, "")
	if err != nil {
		t.Fatal(err)
	}
	f, err1 := r.Float32()
	d, err2 := r.Float64()
	v, err3 := r.Vector()
	dv, err4 := r.DoubleVector()
	m, err5 := r.Matrix()
	dm, err6 := r.DoubleMatrix()
	for _, err := range []error{err1, err2, err3, err4, err5, err6} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := []any{f, d, v, dv, m, dm}
	want := []any{float32(1.5), 2.5, []float32{1, 2.25}, []float64{3, 4.5}, Matrix{1, 2, 2, []float32{5, 6}}, DoubleMatrix{1, 2, 2, []float64{7, 8}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestConvertedAgreesWithDirect compares the two ways of reading and writing raw numbers.
func TestConvertedAgreesWithDirect(t *testing.T) {
	values := []float32{0, 1, -2.5, 1e-40, float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32}
	raw := bytesOf(values)
	if raw == nil {
		t.Skip("this machine has one way only")
	}
	var converted []byte
	for _, v := range values {
		converted = appendReal(converted, v)
	}
	if !bytes.Equal(raw, converted) {
		t.Errorf("memory is %x, converted %x", raw, converted)
	}
	got := make([]float32, len(values))
	r := newReader(bytes.NewReader(raw), "")
	if err := readConverted(r, got, false, "numbers"); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(values[i]) {
			t.Errorf("element %d is %v, want %v", i, got[i], values[i])
		}
	}
}

// TestTextForms reads forms of text that Kaldi accepts but does not write.
func TestTextForms(t *testing.T) {
	for _, c := range []struct {
		text string
		want Matrix
	}{
		{"[]", Matrix{Data: []float32{}}},
		{"[ ]\n", Matrix{Data: []float32{}}},
		{" [ 1 2\n 3 4 ]\n", Matrix{2, 2, 2, []float32{1, 2, 3, 4}}},
		{"[1 2; 3 4]", Matrix{2, 2, 2, []float32{1, 2, 3, 4}}},
		{"[\n\n 1e3\t-.5 \r\n +2 4.\n]", Matrix{2, 2, 2, []float32{1000, -.5, 2, 4}}},
		{"[ inf -Infinity 1e99 ]", Matrix{1, 3, 3, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Inf(1))}}},
	} {
		r, err := NewReader(bytes.NewReader([]byte(c.text)), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Matrix()
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", c.text, diff)
		}
	}
}

// TestTextNumbers compares our text with what C's streams print at seven digits.
func TestTextNumbers(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "-0"}, {1, "1"}, {100000, "100000"}, {1e6, "1000000"}, {1e7, "1e+07"}, {12345678, "1.234568e+07"},
		{1e-4, "0.0001"}, {1e-5, "1e-05"}, {0.66, "0.66"}, {float64(float32(0.1)), "0.1"}, {-0.28768207, "-0.2876821"},
		{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"},
	} {
		if got := string(appendFloat(nil, c.v)); got != c.want {
			t.Errorf("%v is written %s, want %s", c.v, got, c.want)
		}
	}
}
