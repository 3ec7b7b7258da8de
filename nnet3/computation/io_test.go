package computation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

func encode(t testing.TB, binary bool, write func(w *kaldiio.Writer)) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := kaldiio.NewWriter(&buf, binary)
	w.Header()
	write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func decode[T any](data []byte, read func(*kaldiio.Reader) (T, error)) (T, error) {
	r, err := kaldiio.NewReader(bytes.NewReader(data), "test")
	if err != nil {
		var none T
		return none, err
	}
	return read(r)
}

// TestReadWrite: what is written is read back, in both forms; writing it again gives the same
// bytes.
func TestReadWrite(t *testing.T) {
	for name, c := range map[string]*Computation{"sample": newSample().Computation, "loop": newLoop().Computation, "empty": New()} {
		for _, binary := range []bool{true, false} {
			data := encode(t, binary, func(w *kaldiio.Writer) { c.Write(w) })
			again, err := decode(data, Read)
			if err != nil {
				t.Fatalf("%s, binary %v: %v", name, binary, err)
			}
			if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, binary %v:\n%s", name, binary, diff)
			}
			if second := encode(t, binary, func(w *kaldiio.Writer) { again.Write(w) }); !bytes.Equal(data, second) {
				t.Errorf("%s, binary %v: written again it differs", name, binary)
			}
		}
	}
}

// TestReadForeign: what Kaldi precomputed for components is passed over.
func TestReadForeign(t *testing.T) {
	c := newSample().Computation
	text := string(encode(t, false, func(w *kaldiio.Writer) { c.Write(w) }))
	kaldis := strings.Replace(text, "<RecomputedIndexes> </RecomputedIndexes>", "<TdnnComponentPrecomputedIndexes> <RowOffsets> [ 0 1 2 ] </TdnnComponentPrecomputedIndexes>", 1)
	if kaldis == text {
		t.Fatal("nothing was replaced")
	}
	again, err := decode([]byte(kaldis), Read)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestReadFaults: faults of a file are told apart, and a file that was cut off is never taken for a
// whole one.
func TestReadFaults(t *testing.T) {
	c := newSample().Computation
	text := string(encode(t, false, func(w *kaldiio.Writer) { c.Write(w) }))
	for _, f := range []struct {
		old, new string
		want     error
	}{
		{"<Version> 5", "<Version> 4", kaldiio.ErrCorrupt},
		{"<NumCommands> 55", "<NumCommands> 56", kaldiio.ErrCorrupt},
		{"<NumMatrices> 15", "<NumMatrices> 18446744073709551615", kaldiio.ErrCorrupt},
		{"<Cmd> 18", "<Cmd> 25", kaldiio.ErrCorrupt},
		{"<MatrixIndex> 3", "<MatrixIndex> 33", errStructure},
	} {
		broken := strings.Replace(text, f.old, f.new, 1)
		if broken == text {
			t.Fatalf("%q is not in the text", f.old)
		}
		if _, err := decode([]byte(broken), Read); !errors.Is(err, f.want) {
			t.Errorf("%s: got %v, want %v", f.new, err, f.want)
		}
	}
	for _, binary := range []bool{true, false} {
		data := encode(t, binary, func(w *kaldiio.Writer) { c.Write(w) })
		for n := 0; n < len(data)-2; n += 7 {
			if _, err := decode(data[:n], Read); err == nil {
				t.Fatalf("binary %v: the first %d of %d bytes are accepted", binary, n, len(data))
			}
		}
	}
}

func TestWriteDerived(t *testing.T) {
	c := New()
	c.Derived = make([]component.Component, 1)
	if err := c.Write(kaldiio.NewWriter(&bytes.Buffer{}, true)); !errors.Is(err, errNotWritable) {
		t.Errorf("got %v", err)
	}
}

func TestRequestReadWrite(t *testing.T) {
	req := sampleRequest()
	for _, binary := range []bool{true, false} {
		again, err := decode(encode(t, binary, req.Write), ReadRequest)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(req, again); diff != "" {
			t.Error(diff)
		}
	}
}

func FuzzRead(f *testing.F) {
	c := newSample().Computation
	for _, binary := range []bool{true, false} {
		f.Add(encode(f, binary, func(w *kaldiio.Writer) { c.Write(w) }))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c *Computation
		var err error
		alloctest.Check(t, "reading", len(data), func() { c, err = decode(data, Read) })
		if err != nil {
			if e := (*kaldiio.Error)(nil); !errors.As(err, &e) && !errors.Is(err, errStructure) {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		// What is read can be checked, counted and printed, whatever it is.
		alloctest.Check(t, "checking and printing", len(data), func() {
			_ = Check(c, nil, CheckOptions{Rewrite: true})
			if err := Print(io.Discard, c, nil); err != nil {
				t.Fatal(err)
			}
		})
		for _, binary := range []bool{true, false} {
			written := encode(t, binary, func(w *kaldiio.Writer) { c.Write(w) })
			if again, err := decode(written, Read); err != nil || len(again.Commands) != len(c.Commands) {
				t.Fatalf("binary %v: what was written can't be read: %v", binary, err)
			}
		}
	})
}

// FuzzReadRequest reads requests in Kaldi's form.
func FuzzReadRequest(f *testing.F) {
	for _, binary := range []bool{true, false} {
		f.Add(encode(f, binary, sampleRequest().Write))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var req *Request
		var err error
		alloctest.Check(t, "reading", len(data), func() { req, err = decode(data, ReadRequest) })
		if err != nil {
			if e := (*kaldiio.Error)(nil); !errors.As(err, &e) {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		for _, binary := range []bool{true, false} {
			again, err := decode(encode(t, binary, req.Write), ReadRequest)
			if err != nil || !req.Equal(again) {
				t.Fatalf("binary %v: what was written reads differently: %v", binary, err)
			}
		}
		_ = req.Validate(sampleNetwork())
	})
}

// TestReadAllocation reads computations and requests that are large, or promise to be.
func TestReadAllocation(t *testing.T) {
	const n = 2 << 20
	many := longtest.Of(n/4, n)
	list := func(count, list, element string, n int) string {
		return fmt.Sprintf("%s %d %s ", count, n, list) + strings.Repeat(element, n)
	}
	none := func(counts ...string) (s string) {
		for _, c := range counts {
			s += "<Num" + c + "> 0 <" + c + "> "
		}
		return s
	}
	head := "<NnetComputation> <Version> 5 "
	upTo := head + none("Matrices", "MatrixDebugInfo", "SubMatrices") + "<NumComponentPrecomputedIndexes> 0 <PrecomputedIndexesInfo> "
	bytesOf := func(count string) string { // so many binary indexes of a request's input, a byte each
		return "\x00B<ComputationRequest> <NumInputs> \xf8\x01\x00\x00\x00\x00\x00\x00\x00<Inputs> <IoSpecification> a <NumIndexes> \xf8" + count + "\x00\x00\x00\x00<Indexes> <I1V> \x04" + count
	}
	debug := "\x00B<NnetComputation> <Version> \x04\x05\x00\x00\x00<NumMatrices> \xf8\x00\x00\x00\x00\x00\x00\x00\x00<Matrices> " +
		"<NumMatrixDebugInfo> \xf8\x01\x00\x00\x00\x00\x00\x00\x00<MatrixDebugInfo> <MatrixDebugInfo> <IsDeriv> T<Cindexes> <I1V> \x04\x00\x00\x20\x00"
	for name, text := range map[string]string{
		"vectors":   upTo + list("<NumIndexes>", "<Indexes>", "[ ]\n", many),
		"commands":  upTo + none("Indexes", "IndexesMulti", "IndexesRanges") + list("<NumCommands>", "<Commands>", "<Cmd> 0 0 [ ]\n</Cmd> ", many/4),
		"matrices":  head + list("<NumMatrices>", "<Matrices>", "<MatrixInfo> <NumRows> 1 <NumCols> 1 </MatrixInfo> ", many/8),
		"promise":   head + "<NumMatrices> 1152921504606846976 <Matrices> ",
		"cindexes":  debug + "|\x04\x00\x00\x00\x00" + strings.Repeat("\x01", n),
		"indexes":   bytesOf("\x00\x00\x20\x00") + strings.Repeat("\x01", n),
		"promised":  bytesOf("\xff\xff\xff\x7f") + strings.Repeat("\x01", 100),
		"no source": bytesOf("\xff\xff\xff\x7f"),
	} {
		alloctest.Check(t, name, len(text), func() {
			_, err1 := decode([]byte(text), Read)
			_, err2 := decode([]byte(text), ReadRequest)
			if err1 == nil || err2 == nil {
				t.Errorf("%s: no error", name)
			}
		})
	}
}

func sampleRequest() *Request {
	rows := func(first, end int32) []index.Index {
		var v []index.Index
		for n := range int32(2) {
			for t := first; t < end; t++ {
				v = append(v, index.Index{N: n, T: t})
			}
		}
		return v
	}
	return &Request{
		Inputs:              []IoSpecification{{Name: "input", Indexes: rows(-2, 5), HasDeriv: true}},
		Outputs:             []IoSpecification{{Name: "output", Indexes: rows(0, 3), HasDeriv: true}},
		NeedModelDerivative: true,
	}
}
