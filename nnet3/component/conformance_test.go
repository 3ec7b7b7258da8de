package component

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TestPropagateProperties checks what the properties say about Propagate, with and without gaps
// between the rows.
func TestPropagateProperties(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		p := k.c.Properties()
		want, memo := k.propagate(t, k.c, k.in)
		if memo != nil && !p.Has(UsesMemo) {
			t.Error("there is a memo, against the properties")
		}
		in, inWhole := spread(k.in)
		out, outWhole := spread(k.empty())
		if _, err := Propagate(k.c, k.workspace(), ForwardPass{Pre: k.pre}, in, out); err != nil {
			t.Fatal(err)
		}
		if !near(want, out, 1e-6) {
			t.Error("gaps between rows change the result")
		}
		if !gapsIntact(outWhole, out.Rows, out.Cols) || !gapsIntact(inWhole, in.Rows, in.Cols) {
			t.Error("the gaps were written to")
		}
		if p.Has(PropagateAdds) {
			start := randomMatrix(rand.New(rand.NewPCG(7, 8)), k.rows, want.Cols)
			y := kernel.Clone(start)
			if _, err := Propagate(k.c, k.workspace(), ForwardPass{Pre: k.pre}, k.in, y); err != nil {
				t.Fatal(err)
			}
			kernel.Add(start, 1, want)
			if !near(start, y, 1e-5) {
				t.Error("the output isn't added to")
			}
		}
		if p.Has(PropagateInPlace) {
			y := kernel.Clone(k.in)
			if _, err := Propagate(k.c, k.workspace(), ForwardPass{Pre: k.pre}, y, y); err != nil {
				t.Fatal(err)
			}
			if !equalBits(want, y) {
				t.Error("in place the result is another")
			}
		}
		if id, ok := k.c.(Identity); ok && id.IsIdentity() && !equalBits(want, k.in) {
			t.Error("the identity doesn't copy its input")
		}
		if p.Has(reordersIndexes) {
			t.Error("the component wants to reorder its indexes")
		}
		if _, ok := k.c.(StatsStorer); ok != p.Has(StoresStats) && k.name != "BatchNormComponent" {
			t.Error("properties and methods disagree about statistics")
		}
		if u, ok := k.c.(UpdatableComponent); p.Has(Updatable) && (!ok || NumParameters(u) == 0) || !p.Has(Updatable) && ok && NumParameters(u) > 0 {
			t.Error("properties and methods disagree about parameters")
		}
	})
}

// TestBackpropProperties checks what the properties say about Backprop.
func TestBackpropProperties(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		b := k.c.(Backpropper)
		p := k.c.Properties()
		rnd := rand.New(rand.NewPCG(9, 10))
		y, memo := k.propagate(t, k.c, k.in)
		dy := randomMatrix(rnd, y.Rows, y.Cols)
		want := k.backprop(t, b, y, dy, memo, nil, rnd)

		_, memo = k.propagate(t, k.c, k.in)
		in, _ := spread(k.in)
		out, _ := spread(y)
		d, _ := spread(dy)
		dx, whole := spread(kernel.New(k.in.Rows, k.in.Cols))
		if err := Backprop(b, k.workspace(), BackwardPass{Pre: k.pre, InValue: in, OutValue: out, OutDeriv: d, Memo: memo, ToUpdate: NewGradient(k.c), InDeriv: dx}); err != nil {
			t.Fatal(err)
		}
		if !near(want, dx, 1e-5) {
			t.Error("gaps between rows change the result")
		}
		if !gapsIntact(whole, dx.Rows, dx.Cols) {
			t.Error("the gaps were written to")
		}
		if p.Has(BackpropInPlace) {
			_, memo = k.propagate(t, k.c, k.in)
			dx := kernel.Clone(dy)
			if err := Backprop(b, k.workspace(), BackwardPass{Pre: k.pre, InValue: k.in, OutValue: y, OutDeriv: dx, Memo: memo, InDeriv: dx}); err != nil {
				t.Fatal(err)
			}
			if !near(want, dx, 1e-6) {
				t.Error("in place the result is another")
			}
		}
		// Parameters are updated even if the derivative of the input isn't wanted.
		g := NewGradient(k.c)
		_, memo = k.propagate(t, k.c, k.in)
		if err := Backprop(b, k.workspace(), BackwardPass{Pre: k.pre, InValue: k.in, OutValue: y, OutDeriv: dy, Memo: memo, ToUpdate: g}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRowsAreIndependent checks that in simple components the result for a row depends on nothing
// but the row, bit for bit, unless it depends on chance or on the statistics of a minibatch.
func TestRowsAreIndependent(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		p := k.c.Properties()
		if !p.Has(Simple) || p.Has(Random) || p.Has(UsesMemo) || strings.Contains(Info(k.c), "test-mode=false") {
			t.Skip("rows depend on each other, or on chance")
		}
		rnd := rand.New(rand.NewPCG(3, 3))
		in := randomMatrix(rnd, 70, k.c.InputDim())
		all, one := kernel.New(70, k.c.OutputDim()), kernel.New(1, k.c.OutputDim())
		w := &Workspace{}
		if _, err := Propagate(k.c, w, ForwardPass{}, in, all); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 33, 69} {
			kernel.Fill(one, 0)
			if _, err := Propagate(k.c, w, ForwardPass{}, kernel.Rows(in, i, 1), one); err != nil {
				t.Fatal(err)
			}
			if !equalBits(kernel.Rows(all, i, 1), one) {
				t.Errorf("row %d alone gives another result", i)
			}
		}
	})
}

// TestNoRows checks that components accept matrices without rows.
func TestNoRows(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		var pre Precomputed
		if n, ok := k.c.(NonSimple); ok {
			var err error
			if pre, err = n.PrecomputeIndexes(nil, nil, true); err != nil {
				t.Fatal(err)
			}
		}
		w := &Workspace{}
		x, y := kernel.New(0, k.c.InputDim()), kernel.New(0, k.c.OutputDim())
		memo, err := Propagate(k.c, w, ForwardPass{Pre: pre}, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if err := Backprop(k.c.(Backpropper), w, BackwardPass{Pre: pre, InValue: x, OutValue: y, OutDeriv: y, Memo: memo, ToUpdate: NewGradient(k.c), InDeriv: x}); err != nil {
			t.Fatal(err)
		}
		if s, ok := Copy(k.c).(StatsStorer); ok {
			s.StoreStats(x, y, memo)
		}
	})
}

// TestWrongArguments checks that wrong sizes, missing precomputed indexes and missing memos are
// errors, not panics.
func TestWrongArguments(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		w := &Workspace{}
		good := k.empty()
		for _, m := range []kernel.Matrix{kernel.New(k.rows, k.c.OutputDim()+1), kernel.New(k.rows+1, k.c.OutputDim())} {
			if ignoresInput(k.c) && m.Rows > k.rows {
				continue
			}
			if _, err := Propagate(k.c, w, ForwardPass{Pre: k.pre}, k.in, m); err == nil {
				t.Errorf("propagate took an output of %d×%d", m.Rows, m.Cols)
			}
		}
		if k.pre != nil && !isIdentity(k.c) && k.name != "BackpropTruncationComponent" {
			if _, err := Propagate(k.c, w, ForwardPass{}, k.in, good); err == nil {
				t.Error("propagate did without precomputed indexes")
			}
		}
		b := k.c.(Backpropper)
		if err := Backprop(b, w, BackwardPass{Pre: k.pre, InValue: k.in, OutValue: good, OutDeriv: good, ToUpdate: &odd{}, InDeriv: k.in}); err == nil {
			t.Error("backprop took a component of another type to update")
		}
		err := Backprop(b, w, BackwardPass{Pre: k.pre, InValue: k.in, OutValue: good, OutDeriv: kernel.New(k.rows, k.c.OutputDim()+1), InDeriv: kernel.New(k.in.Rows, k.in.Cols)})
		if err == nil {
			t.Error("backprop took a derivative that is too wide")
		}
		if _, memo := k.propagate(t, k.c, k.in); memo != nil {
			if err := Backprop(b, w, BackwardPass{Pre: k.pre, InValue: k.in, OutValue: good, OutDeriv: good, InDeriv: kernel.New(k.in.Rows, k.in.Cols)}); err == nil {
				t.Error("backprop did without its memo")
			}
		}
	})
}

// odd is a component of a type of its own.
type odd struct{ noOpComponent }

func (*odd) Type() string { return "OddComponent" }

func isIdentity(c Component) bool {
	id, ok := c.(Identity)
	return ok && id.IsIdentity()
}

// TestRoundTripOfTypes checks that text and binary files preserve what was written, and that a copy
// of a component writes the same.
func TestRoundTripOfTypes(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		if s, ok := k.c.(StatsStorer); ok {
			y, memo := k.propagate(t, k.c, k.in)
			s.StoreStats(k.in, y, memo)
		}
		for _, binary := range []bool{true, false} {
			first := written(t, Copy(k.c), binary)
			second := written(t, readBack(t, first, k.c.Type()), binary)
			if !bytes.Equal(first, second) {
				t.Errorf("binary %t: wrote\n%q\nthen\n%q", binary, first, second)
			}
			back := readBack(t, second, k.c.Type())
			if back.Properties() != k.c.Properties() || back.InputDim() != k.c.InputDim() || back.OutputDim() != k.c.OutputDim() {
				t.Errorf("binary %t: read back as %s, was %s", binary, Info(back), Info(k.c))
			}
		}
		if !strings.HasPrefix(Info(k.c), k.c.Type()) {
			t.Errorf("description: %s", Info(k.c))
		}
	})
}

func written(t *testing.T, c Component, binary bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w := kaldiio.NewWriter(&b, binary)
	if binary {
		b.WriteString("\x00B")
	}
	if err := Write(c, w); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readBack(t *testing.T, data []byte, typ string) Component {
	t.Helper()
	c, err := readComponent(data, typ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readComponent(data []byte, typ string) (Component, error) {
	r, err := kaldiio.NewReader(bytes.NewReader(data), "test")
	if err != nil {
		return nil, err
	}
	if err := r.Expect("<" + typ + ">"); err != nil {
		return nil, err
	}
	c, _ := kaldi.New(typ)
	return c, kaldi.Read(c, r)
}

// TestBrokenFiles checks that files that were cut off or changed give an error or a component that
// answers questions, but never a panic.
func TestBrokenFiles(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		data := written(t, k.c, true)
		for n := 0; n < len(data); n += longtest.Of(7, 1) {
			if _, err := readComponent(data[:n], k.c.Type()); err == nil {
				t.Fatalf("the first %d of %d bytes are enough", n, len(data))
			}
		}
		rnd := rand.New(rand.NewPCG(1, 9))
		for range longtest.Of(50, 500) {
			broken := bytes.Clone(data)
			for range 1 + rnd.IntN(3) {
				broken[2+rnd.IntN(len(broken)-2)] = byte(rnd.Uint32())
			}
			c, err := readComponent(broken, k.c.Type())
			if err != nil {
				continue
			}
			_, _ = Info(c), c.Properties()
			if n, ok := c.(NonSimple); ok && c.InputDim() < 1000 {
				n.InputIndexes(index.Index{T: 5}, nil)
			}
		}
	})
}

// TestPrepare checks that a prepared component and a copy of it compute the same as before, and
// that they follow an update.
func TestPrepare(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		p, ok := k.c.(Preparer)
		if !ok {
			t.Skip("there is nothing to prepare")
		}
		want, _ := k.propagate(t, k.c, k.in)
		p.Prepare()
		for _, c := range []Component{k.c, Copy(k.c)} {
			if got, _ := k.propagate(t, c, k.in); !near(want, got, 1e-6) {
				t.Error("preparation changes the result")
			}
		}
		u, ok := k.c.(UpdatableComponent)
		if !ok {
			return
		}
		ScaleParams(u, 0)
		want, _ = k.propagate(t, readBack(t, written(t, k.c, true), k.c.Type()), k.in)
		if got, _ := k.propagate(t, k.c, k.in); !near(want, got, 1e-6) {
			t.Error("the prepared form outlives a change of the parameters")
		}
	})
}

// TestRelease checks that a component whose parameters are released computes the same bits forward
// and backward, is written and copied as before, and can be trained.
func TestRelease(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		p, ok := k.c.(Releaser)
		if !ok {
			t.Skip("there is nothing to release")
		}
		file := written(t, k.c, true)
		k.c.(Preparer).Prepare()
		want, _ := k.propagate(t, k.c, k.in)
		p.Release()
		k.c.(Preparer).Prepare()
		for _, c := range []Component{k.c, Copy(k.c)} {
			if got, _ := k.propagate(t, c, k.in); !equalBits(want, got) {
				t.Error("a release changes the result")
			}
			if !bytes.Equal(written(t, c, true), file) {
				t.Error("a release changes the parameters")
			}
		}
		u, ok := k.c.(UpdatableComponent)
		if !ok {
			return
		}
		whole := readBack(t, file, k.c.Type()).(UpdatableComponent)
		for _, c := range []UpdatableComponent{u, whole} {
			c.SetLearningRate(0.1)
			y, memo := k.propagate(t, c, k.in)
			pass := BackwardPass{Pre: k.pre, InValue: k.in, OutValue: y, OutDeriv: y, Memo: memo, ToUpdate: c, InDeriv: kernel.New(k.in.Rows, k.in.Cols)}
			if err := Backprop(c.(Backpropper), k.workspace(), pass); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(written(t, u, true), written(t, whole, true)) {
			t.Error("a release changes an update")
		}
		want, _ = k.propagate(t, whole, k.in)
		if got, _ := k.propagate(t, u, k.in); !near(want, got, 1e-6) {
			t.Error("the prepared form outlives an update")
		}
		u.(Preparer).Prepare()
		p.Release()
		ScaleParams(u, 2)
		ScaleParams(whole, 2)
		if !bytes.Equal(written(t, u, true), written(t, whole, true)) {
			t.Error("a release changes parameters that are scaled")
		}
	})
}

// TestParameters checks that parameters can be read, set, scaled and added.
func TestParameters(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		u, ok := k.c.(UpdatableComponent)
		if !ok {
			t.Skip("there are no parameters")
		}
		v := Copy(k.c).(UpdatableComponent)
		params := Vectorize(u, nil)
		if len(params) != NumParameters(u) {
			t.Fatalf("%d values for %d parameters", len(params), NumParameters(u))
		}
		ScaleParams(v, 0)
		if rest, err := UnVectorize(v, append(params, 7)); err != nil || len(rest) != 1 {
			t.Errorf("%d values are left, error %v", len(rest), err)
		}
		if !bytes.Equal(written(t, u, true), written(t, v, true)) {
			t.Error("the parameters that were put back are others")
		}
		if n := NumParameters(u); n > 0 {
			if _, err := UnVectorize(v, params[:n-1]); err == nil {
				t.Error("too few values are enough")
			}
		}
	})
}

// TestPropagateDoesNotAllocate checks that Propagate allocates nothing when it is repeated.
func TestPropagateDoesNotAllocate(t *testing.T) {
	eachCase(t, func(t *testing.T, k *testCase) {
		w, y := k.workspace(), k.empty()
		once := func() {
			if _, err := Propagate(k.c, w, ForwardPass{Pre: k.pre, DropMemo: true}, k.in, y); err != nil {
				t.Fatal(err)
			}
		}
		once()
		if n := testing.AllocsPerRun(10, once); n != 0 && !raceDetector {
			t.Errorf("%g allocations", n)
		}
	})
}
