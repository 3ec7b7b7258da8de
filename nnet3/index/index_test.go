package index

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

func TestOrder(t *testing.T) {
	s := []Index{{1, 0, 0}, {0, 0, 0}, {0, 0, 1}, {0, -1, 5}, {0, NoTime, 0}, {2, -1, 0}}
	slices.SortFunc(s, Compare)
	want := []Index{{0, NoTime, 0}, {2, -1, 0}, {0, -1, 5}, {0, 0, 0}, {1, 0, 0}, {0, 0, 1}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("by t, x, n: %s", diff)
	}
}

func TestAdd(t *testing.T) {
	if got, want := (Index{1, 2, 3}).Add(Index{0, -5, 1}), (Index{1, -3, 4}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (Index{1, NoTime, 0}).Add(Index{0, -5, 1}); got != (Index{1, NoTime, 1}) {
		t.Errorf("no time, shifted, is %v", got)
	}
	for _, c := range [][2]Index{
		{{1, math.MaxInt32, 0}, {0, 1, 0}},
		{{1, -5, 0}, {0, math.MinInt32, 0}},
		{{1, 0, math.MaxInt32}, {0, 0, 1}},
		{{1, 0, -1}, {0, 0, math.MinInt32}},
	} {
		if got := c[0].Add(c[1]); got.T != NoTime {
			t.Errorf("%v and %v add up to %v", c[0], c[1], got)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		in   []Index
		want string
	}{
		{nil, "[ ]"},
		{[]Index{{0, 5, 0}}, "[(0,5)]"},
		{[]Index{{0, -1, 0}, {0, 0, 0}, {0, 1, 0}, {1, -1, 0}, {1, 0, 0}, {1, 2, 0}}, "[(0,-1:1), (1,-1:0), (1,2)]"},
		{[]Index{{0, 0, 1}, {0, 1, 1}, {0, 2, 2}, {0, NoTime, 0}}, "[(0,0:1,1), (0,2,2), (0,no-time)]"},
	} {
		if got := Format(c.in); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
	names := func(i int) string { return []string{"input", "tdnn1"}[i] }
	got := FormatCindexes([]Cindex{{0, Index{0, 1, 0}}, {0, Index{0, 2, 0}}, {1, Index{0, 3, 0}}}, names)
	if want := "input[(0,1:2)]tdnn1[(0,3)]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (Cindex{1, Index{2, 3, 4}}).String(), "node1(2,3,4)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// written returns what write writes, with a header.
func written(t interface{ Fatal(...any) }, binary bool, write func(*kaldiio.Writer)) []byte {
	var out bytes.Buffer
	w := kaldiio.NewWriter(&out, binary)
	w.Header()
	write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBytes compares the binary form with Kaldi's, byte by byte.
func TestBytes(t *testing.T) {
	const header = "\x00B<I1V> \x04"
	general := func(n, tt, x byte) string {
		return string([]byte{127, 4, n, 0, 0, 0, 4, tt, 0, 0, 0, 4, x, 0, 0, 0})
	}
	for _, c := range []struct {
		in   []Index
		want string
	}{
		{nil, "\x00\x00\x00\x00"},
		{[]Index{{0, 0, 0}, {0, 124, 0}, {0, 0, 0}}, "\x03\x00\x00\x00\x00\x7c\x84"},
		{[]Index{{0, 125, 0}, {1, 125, 0}}, "\x02\x00\x00\x00" + general(0, 125, 0) + general(1, 125, 0)},
	} {
		if got := written(t, true, func(w *kaldiio.Writer) { WriteVector(w, c.in) }); string(got) != header+c.want {
			t.Errorf("%v: %q, want %q", c.in, got, header+c.want)
		}
	}
	for _, c := range []struct {
		in   []Cindex
		want string
	}{
		{[]Cindex{{3, Index{0, 124, 0}}, {3, Index{0, 1, 0}}, {3, Index{1, 1, 0}}, {4, Index{1, 1, 0}}},
			"\x04\x00\x00\x00|\x04\x03\x00\x00\x00\x7c\x85\x7e|\x04\x04\x00\x00\x00\x00"},
		{[]Cindex{{3, Index{1, 0, 0}}, {3, Index{1, 124, 0}}},
			"\x02\x00\x00\x00|\x04\x03\x00\x00\x00\x7e" + general(1, 124, 0)},
	} {
		if got := written(t, true, func(w *kaldiio.Writer) { WriteCindexes(w, c.in) }); string(got) != header+c.want {
			t.Errorf("%v: %q, want %q", c.in, got, header+c.want)
		}
	}
}

func drawIndex(t *rapid.T) Index {
	small := rapid.Int32Range(-130, 130)
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return Index{rapid.Int32().Draw(t, "n"), rapid.SampledFrom([]int32{NoTime, 1<<31 - 1, 0, -1}).Draw(t, "t"), rapid.Int32().Draw(t, "x")}
	}
	return Index{rapid.Int32Range(0, 2).Draw(t, "n"), small.Draw(t, "t"), rapid.Int32Range(0, 1).Draw(t, "x")}
}

func TestRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		binary := rapid.Bool().Draw(t, "binary")
		indexes := rapid.SliceOf(rapid.Custom(drawIndex)).Draw(t, "indexes")
		cindexes := make([]Cindex, len(indexes))
		for i := range cindexes {
			cindexes[i] = Cindex{rapid.Int32Range(0, 2).Draw(t, "node"), indexes[i]}
		}
		data := written(t, binary, func(w *kaldiio.Writer) {
			WriteVector(w, indexes)
			WriteCindexes(w, cindexes)
			write(w, Index{7, 8, 9})
		})
		r, err := kaldiio.NewReader(bytes.NewReader(data), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadVector(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(indexes, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		gotC, err := ReadCindexes(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cindexes, gotC, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if one, err := read(r); err != nil || one != (Index{7, 8, 9}) {
			t.Fatalf("%v, %v", one, err)
		}
	})
}

// TestBroken truncates vectors of indexes and flips their bits.
func TestBroken(t *testing.T) {
	v := []Cindex{{1, Index{0, 1, 0}}, {1, Index{1, 1, 0}}, {2, Index{0, 500, 1}}}
	for _, binary := range []bool{true, false} {
		data := written(t, binary, func(w *kaldiio.Writer) { WriteCindexes(w, v) })
		read := func(data []byte) error {
			r, err := kaldiio.NewReader(bytes.NewReader(data), "")
			if err == nil {
				_, err = ReadCindexes(r)
			}
			return err
		}
		for n := range data {
			if e := (*kaldiio.Error)(nil); !errors.As(read(data[:n]), &e) {
				t.Errorf("binary %v: %d bytes of %d are read without an error", binary, n, len(data))
			}
		}
		for i := range data {
			for bit := range 8 {
				data[i] ^= 1 << bit
				if e, err := (*kaldiio.Error)(nil), read(data); err != nil && !errors.As(err, &e) {
					t.Errorf("byte %d, bit %d: %v", i, bit, err)
				}
				data[i] ^= 1 << bit
			}
		}
	}
	huge := "\x00B<I1V> \x04\xff\xff\xff\x7f"
	r, err := kaldiio.NewReader(io.MultiReader(bytes.NewReader([]byte(huge))), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadVector(r); !errors.Is(err, kaldiio.ErrTruncated) {
		t.Errorf("a vector of 2³¹-1 indexes: %v", err)
	}
}
