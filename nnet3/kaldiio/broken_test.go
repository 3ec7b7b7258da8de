package kaldiio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/fileio"
)

// sample returns the encoding of a fixed everything.
func sample(t testing.TB, binary bool) []byte {
	t.Helper()
	e := everything{
		Token: "<Sample>", I32: -7, U64: 9, F32: 0.5, F64: -0.25, B: true,
		V: []float32{1, 2, 3}, DV: []float64{4, 5}, IV: []int32{6, 7}, PV: [][2]int32{{8, 9}},
		M:  Matrix{2, 2, 2, []float32{1, 2, 3, 4}},
		DM: DoubleMatrix{1, 2, 2, []float64{5, 6}},
	}
	var out bytes.Buffer
	w := NewWriter(&out, binary)
	e.write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTruncated truncates a file at every byte. The result is an error that says so, never a value.
func TestTruncated(t *testing.T) {
	for _, binary := range []bool{true, false} {
		data := sample(t, binary)
		for n := range data {
			for name, src := range sources(data[:n]) {
				r, err := NewReader(src, "cut")
				if err == nil {
					_, err = readEverything(r)
				}
				if err == nil {
					t.Fatalf("binary %v, %d bytes of %d, %s: no error", binary, n, len(data), name)
				}
				var e *Error
				if !errors.As(err, &e) || e.name != "cut" || e.offset > int64(n) {
					t.Fatalf("binary %v, %d bytes of %d, %s: %#v", binary, n, len(data), name, err)
				}
				if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%d bytes of %d: %v is of no kind", n, len(data), err)
				}
			}
		}
	}
}

// TestFlipped flips every bit of a file. The result is values or an *Error.
func TestFlipped(t *testing.T) {
	for _, binary := range []bool{true, false} {
		data := sample(t, binary)
		for i := range data {
			for bit := range 8 {
				data[i] ^= 1 << bit
				r, err := NewReader(onlyReader{bytes.NewReader(data)}, "flipped")
				if err == nil {
					_, err = readEverything(r)
				}
				if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
					t.Errorf("byte %d, bit %d: %v is no *Error", i, bit, err)
				}
				data[i] ^= 1 << bit
			}
		}
	}
}

// TestAbsurdSizes reads headers that claim more than there is. Memory must stay small.
func TestAbsurdSizes(t *testing.T) {
	size := func(n int32) string { return "\x04" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	compressed := func(rows, cols int32) string {
		b := make([]byte, 8)
		b = binary.LittleEndian.AppendUint32(b, uint32(rows))
		return string(binary.LittleEndian.AppendUint32(b, uint32(cols)))
	}
	const most = 1<<31 - 1
	const some = 1 << 29
	matrix := func(r *Reader) error { _, err := r.Matrix(); return err }
	vector := func(r *Reader) error { _, err := r.Vector(); return err }
	doubles := func(r *Reader) error { _, err := r.DoubleVector(); return err }
	ints := func(r *Reader) error { _, err := r.IntVector(); return err }
	pairs := func(r *Reader) error { _, err := r.IntPairVector(); return err }
	for _, c := range []struct {
		data string
		read func(*Reader) error
		want error
	}{
		{"FM " + size(most) + size(most), matrix, ErrCorrupt},
		{"FM " + size(most) + size(2), matrix, ErrCorrupt},
		{"FM " + size(some) + size(2), matrix, ErrTruncated},
		{"FM " + size(-1) + size(2), matrix, ErrCorrupt},
		{"FM " + size(0) + size(2), matrix, ErrCorrupt},
		{"DM " + size(1) + size(some), matrix, ErrTruncated},
		{"CM " + compressed(most, 1), matrix, ErrCorrupt},
		{"CM " + compressed(some, 1), matrix, ErrTruncated},
		{"CM " + compressed(most, most), matrix, ErrCorrupt},
		{"CM2 " + compressed(1, some), matrix, ErrTruncated},
		{"CM3 " + compressed(some, 2), matrix, ErrTruncated},
		{"CM3 " + compressed(-1, -1), matrix, ErrCorrupt},
		{"CM4 " + compressed(1, 1), matrix, ErrCorrupt},
		{"FV " + size(most), vector, ErrCorrupt},
		{"FV " + size(some), vector, ErrTruncated},
		{"FV " + size(-5), vector, ErrCorrupt},
		{"DV " + size(some), doubles, ErrTruncated},
		{size(most), ints, ErrCorrupt},
		{size(some), ints, ErrTruncated},
		{size(-2), ints, ErrCorrupt},
		{"\x08" + size(1), ints, ErrCorrupt},
		{size(some), pairs, ErrTruncated},
	} {
		for _, known := range []bool{true, false} {
			data := "\x00B" + c.data + strings.Repeat("\x00", 100)
			var src io.Reader = strings.NewReader(data)
			if !known {
				src = onlyReader{src}
			}
			r, err := NewReader(src, "absurd")
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = c.read(r)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) && !(c.want == ErrTruncated && errors.Is(err, ErrCorrupt) && strings.HasPrefix(c.data, "SM")) {
				t.Errorf("%q, length known %v: %v, want %v", c.data, known, err, c.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
				t.Errorf("%q, length known %v: %d bytes were allocated", c.data, known, used)
			}
		}
	}
}

// TestErrorsSayWhere checks the position, context and wording of errors.
func TestErrorsSayWhere(t *testing.T) {
	for _, c := range []struct {
		data string
		read func(*Reader) error
		want string
	}{
		{"<A> <C> ", func(r *Reader) error { return r.Expect("<A>", "<B>") },
			`f: line 1 (byte 4): expected token <B>, got "<C>" (after <A>)`},
		{"\x00B<Dim> \x08abcdefgh", func(r *Reader) error {
			if err := r.Expect("<Dim>"); err != nil {
				return err
			}
			_, err := r.Int32()
			return err
		}, "f: byte 8: reading a 32-bit integer: size byte is 8, want 4 (after <Dim>)"},
		{"\n\n[ 1 2\n 3 ]", func(r *Reader) error { _, err := r.Matrix(); return err },
			"f: line 4 (byte 11): row 1 of a matrix has 1 columns, the rows before it have 2"},
		{"[ 1 x ]", func(r *Reader) error { _, err := r.Vector(); return err },
			`f: line 1 (byte 4): expected a number, got "x"`},
		{"\x00Bx", func(r *Reader) error { _, err := r.Bool(); return err }, `f: byte 2: expected T or F, got "x"`},
		{"<A> ", func(r *Reader) error { return r.Expect("<A>", "<B>") },
			"f: line 1 (byte 4): reading <B> (after <A>): input ends too early"},
		{"[ 1 2", func(r *Reader) error { _, err := r.IntVector(); return err },
			"f: line 1 (byte 5): reading a vector of integers: input ends too early"},
	} {
		r, err := NewReader(strings.NewReader(c.data), "f")
		if err != nil {
			t.Fatal(err)
		}
		err = c.read(r)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.data, err, c.want)
		}
	}
}

var errDisk = errors.New("disk on fire")

type failing struct{ data io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if err == io.EOF {
		err = errDisk
	}
	return n, err
}

// TestSourceError checks that errors of the source are passed on.
func TestSourceError(t *testing.T) {
	data := sample(t, true)
	for n := range data {
		r, err := NewReader(failing{bytes.NewReader(data[:n])}, "disk")
		if err == nil {
			_, err = readEverything(r)
		}
		if !errors.Is(err, errDisk) && n > 2 {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// TestSkipPast finds a token wherever it lies in the buffer.
func TestSkipPast(t *testing.T) {
	const token = "</OtherComponent>"
	for _, before := range []int{0, 1, 100, bufferSize - 20, bufferSize - 10, bufferSize, 3*bufferSize - 5} {
		data := "<x" + strings.Repeat("<", before) + "</OtherComponents> " + token + " <Next> "
		r := newReader(onlyReader{strings.NewReader(data)}, "")
		if err := r.SkipPast(token); err != nil {
			t.Fatalf("%d bytes before: %v", before, err)
		}
		if err := r.Expect("<Next>"); err != nil {
			t.Errorf("%d bytes before: %v", before, err)
		}
	}
	r := newReader(strings.NewReader("</OtherComponent"), "")
	if err := r.SkipPast(token); !errors.Is(err, ErrTruncated) {
		t.Errorf("got %v, want %v", err, ErrTruncated)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(sample(f, true))
	f.Add(sample(f, false))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, src := range []io.Reader{bytes.NewReader(data), onlyReader{bytes.NewReader(data)}} {
			allocated := alloctest.Start()
			r, err := NewReader(src, "fuzz")
			if err == nil {
				_, err = readEverything(r)
			}
			if used := allocated(); used > alloctest.Bound(len(data)) {
				t.Errorf("%d bytes were allocated for %d", used, len(data))
			}
			if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
				t.Errorf("%v is no *Error", err)
			}
		}
	})
}

// TestReaderLimit checks that a limit holds for reads through the buffer and past it.
func TestReaderLimit(t *testing.T) {
	endless := "\x00BFV \x04" + "\x00\x00\x10\x00" // 2²⁰ elements
	for _, limit := range []int64{100, bufferSize, 1 << 20} {
		r, err := NewReader(io.MultiReader(strings.NewReader(endless), zeroReader{}), "endless")
		if err != nil {
			t.Fatal(err)
		}
		r.Limit(limit)
		if _, err := r.Vector(); !errors.Is(err, fileio.ErrLimit) || !strings.Contains(err.Error(), "endless") {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	long, err := NewReader(io.MultiReader(strings.NewReader("x"), zeroReader{}), "endless")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := long.Line(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the limit") {
		t.Error(err)
	}
}

// zeroReader never ends.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
