package computation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nnopt/nnopt/nnet3/component"
)

// TestVariables: the grid of a matrix that two views cut.
func TestVariables(t *testing.T) {
	c := New()
	whole := c.NewMatrix(10, 6, false)
	top := c.NewSubMatrix(whole, 0, 4, 0, -1)
	right := c.NewSubMatrix(whole, 0, -1, 4, 2)
	other := c.NewMatrix(3, 3, false)
	v, err := NewVariables(c)
	if err != nil {
		t.Fatal(err)
	}
	if v.Len() != 5 {
		t.Fatalf("%d variables, want 5", v.Len())
	}
	for _, x := range []struct {
		view int32
		want []int32
	}{{0, nil}, {whole, []int32{0, 1, 2, 3}}, {top, []int32{0, 1}}, {right, []int32{1, 3}}, {other, []int32{4}}} {
		if got := slices.Collect(v.OfSubmatrix(x.view).All); !slices.Equal(got, x.want) {
			t.Errorf("view %d: variables %v, want %v", x.view, got, x.want)
		}
		if got := v.OfSubmatrix(x.view).Len(); got != len(x.want) {
			t.Errorf("view %d: %d variables, want %d", x.view, got, len(x.want))
		}
	}
	if got := v.Cell(3); got != (SubMatrixInfo{Matrix: 1, RowOffset: 4, NumRows: 6, ColOffset: 4, NumCols: 2}) {
		t.Errorf("variable 3 is %+v", got)
	}
	if got := v.Describe(c, 2); got != "m1(4:9, 0:3)" {
		t.Errorf("variable 2 is %s", got)
	}
	if rows, cols := v.Grid(1); !slices.Equal(rows, []int32{0, 4, 10}) || !slices.Equal(cols, []int32{0, 4, 6}) {
		t.Errorf("grid is %v %v", rows, cols)
	}
	if first, end := v.OfMatrix(2); first != 4 || end != 5 || v.Matrix(4) != 2 {
		t.Errorf("matrix 2 has [%d, %d)", first, end)
	}
	if !v.IsWhole(whole) || v.IsWhole(top) {
		t.Error("which views are whole is wrong")
	}
}

// TestVariablesBounded: views that would make a grid of 10^10 cells are refused.
func TestVariablesBounded(t *testing.T) {
	c := New()
	whole := c.NewMatrix(100000, 100000, false)
	for i := range 99999 {
		c.NewSubMatrix(whole, i, 1, i, 1)
	}
	if a, err := NewAnalyzer(c, nil); err == nil || a != nil {
		t.Error("10^10 variables are accepted")
	}
}

// TestAttributes: what each type of command reads and writes.
func TestAttributes(t *testing.T) {
	s, net := newSample(), sampleNetwork()
	a, err := NewAnalyzer(s.Computation, net)
	if err != nil {
		t.Fatal(err)
	}
	matrix := func(view int32) int32 { return s.Submatrices[view].Matrix }
	for _, x := range []struct {
		command     int
		read, write []int32 // sub-matrices
		effects     bool
	}{
		{s.at(AllocMatrix, 0), nil, nil, false},
		{s.at(SwapMatrix, 0), nil, nil, false},
		{s.at(SetConst, 0), nil, []int32{s.other}, false},
		{s.at(Propagate, 0), []int32{s.in}, []int32{s.pre}, false},
		{s.at(Propagate, 1), []int32{s.pre}, []int32{s.act}, true},
		{s.at(Backprop, 0), []int32{s.spliced, s.dout, s.dspliced}, []int32{s.dspliced}, true},
		{s.at(Backprop, 1), []int32{s.norm, s.dspliced}, []int32{s.dspliced}, false},
		{s.at(Backprop, 3), []int32{s.in, s.dnorm}, nil, true},
		{s.at(BackpropNoModelUpdate, 0), []int32{s.in, s.dpre, s.din}, []int32{s.din}, false},
		{s.at(MatrixCopy, 0), []int32{s.actRest}, []int32{s.otherRest}, false},
		{s.at(MatrixAdd, 0), []int32{s.spliced, s.other}, []int32{s.spliced}, false},
		{s.at(CopyRows, 0), []int32{s.norm}, []int32{s.spliced}, false},
		{s.at(AddRows, 0), []int32{s.norm, s.spliced}, []int32{s.spliced}, false},
		{s.at(AddRowRanges, 0), []int32{s.norm, s.spliced}, []int32{s.spliced}, false},
		{s.at(CopyRowsMulti, 0), []int32{s.actTop, s.actRest}, []int32{s.scratch}, false},
		{s.at(AddRowsMulti, 0), []int32{s.spliced, s.actTop, s.actRest}, []int32{s.spliced}, false},
		// All of otherTop is written, otherRest only in part.
		{s.at(CopyToRowsMulti, 0), []int32{s.scratch, s.otherRest}, []int32{s.otherTop, s.otherRest}, false},
		{s.at(AddToRowsMulti, 0), []int32{s.scratch, s.otherTop, s.otherRest}, []int32{s.otherTop, s.otherRest}, false},
		{s.at(CompressMatrix, 0), []int32{s.act}, []int32{s.act}, false},
		{s.at(AcceptInput, 0), nil, []int32{s.in}, false},
		{s.at(ProvideOutput, 0), []int32{s.out}, nil, false},
	} {
		got := a.Attributes[x.command]
		slices.Sort(x.read)
		slices.Sort(x.write)
		name := NewPrinter(s.Computation, net).Command(x.command)
		if diff := cmp.Diff([2][]int32{x.read, x.write}, [2][]int32{got.SubmatricesRead, got.SubmatricesWritten}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.HasSideEffects != x.effects {
			t.Errorf("%s: side effects %v", name, got.HasSideEffects)
		}
		for _, w := range x.write {
			m := matrix(w)
			if !slices.Contains(got.MatricesWritten, m) {
				t.Errorf("%s: does not write m%d", name, m)
			}
			if partly := !a.Variables.IsWhole(w); partly && !slices.Contains(got.MatricesRead, m) {
				t.Errorf("%s: writes a part of m%d and does not keep the rest", name, m)
			}
		}
	}
	if got := a.MatrixAccesses[matrix(s.in)]; got.Allocate != 0 || int(got.Deallocate) != s.of(DeallocMatrix, s.in) || !got.IsInput || got.IsOutput {
		t.Errorf("life of m1: %+v", got)
	}
	if got := a.MatrixAccesses[matrix(s.dspliced)]; int(got.Allocate) != s.at(SwapMatrix, 0) {
		t.Errorf("life of m8: %+v", got)
	}
}

// TestQueries compares the queries with ones that look at every command and element, on random computations.
func TestQueries(t *testing.T) {
	for seed := range uint64(60) {
		c, net := randomComputation(rand.New(rand.NewPCG(seed, 0)))
		a, err := NewAnalyzer(c, net)
		if err != nil {
			t.Fatal(err)
		}
		slow := newSlowAnalysis(c, net)
		n := len(c.Commands)
		for s := int32(1); int(s) < len(c.Submatrices); s++ {
			check := func(what string, got, want int) {
				if got != want {
					t.Fatalf("seed %d, %s(%d) is %d, want %d", seed, what, s, got, want)
				}
			}
			check("FirstAccess", a.FirstAccess(s), slow.first(s, func(i int, t AccessType) bool { return t != 0 }))
			check("FirstNontrivialAccess", a.FirstNontrivialAccess(s), slow.first(s, func(i int, t AccessType) bool { return t != 0 && !slow.zeroing(i) }))
			check("LastAccess", a.LastAccess(s), slow.last(s, func(t AccessType) bool { return t != 0 }))
			check("LastWriteAccess", a.LastWriteAccess(s), slow.last(s, func(t AccessType) bool { return t&WriteAccess != 0 }))
			for i := -1; i < n; i++ {
				want := slow.first(s, func(k int, t AccessType) bool { return k > i && t&WriteAccess != 0 })
				if d := int(a.MatrixAccesses[c.Submatrices[s].Matrix].Deallocate); d > i {
					want = min(want, d)
				}
				check(fmt.Sprintf("DataInvalidatedCommand(%d)", i), a.DataInvalidatedCommand(i, s), want)
			}
			if m := c.Submatrices[s].Matrix; c.IsWhole(s) {
				check("FirstNontrivialMatrixAccess", a.FirstNontrivialMatrixAccess(m), a.FirstNontrivialAccess(s))
				check("LastMatrixAccess", a.LastMatrixAccess(m), a.LastAccess(s))
			}
		}
	}
}

// slowAnalysis knows the access of every command to every element.
type slowAnalysis struct {
	c        *Computation
	accesses []map[[3]int32]AccessType // by command: (matrix, row, column)
}

func newSlowAnalysis(c *Computation, net *NetworkInfo) *slowAnalysis {
	s := &slowAnalysis{c: c}
	for _, cmd := range c.Commands {
		acc := map[[3]int32]AccessType{}
		touch := func(view int32, t AccessType) {
			sub := c.Submatrices[view]
			for i := range sub.NumRows {
				for j := range sub.NumCols {
					acc[[3]int32{sub.Matrix, sub.RowOffset + i, sub.ColOffset + j}] |= t
				}
			}
		}
		switch cmd.Type {
		case SetConst:
			touch(cmd.Arg1, WriteAccess)
		case MatrixCopy:
			touch(cmd.Arg2, ReadAccess)
			touch(cmd.Arg1, WriteAccess)
		case MatrixAdd:
			touch(cmd.Arg2, ReadAccess)
			touch(cmd.Arg1, ReadWriteAccess)
		case Propagate:
			touch(cmd.Arg3, ReadAccess)
			touch(cmd.Arg4, WriteAccess)
			if net.Components[cmd.Arg1].Has(component.PropagateAdds) {
				touch(cmd.Arg4, ReadAccess)
			}
		}
		s.accesses = append(s.accesses, acc)
	}
	return s
}

func (s *slowAnalysis) zeroing(i int) bool {
	return s.c.Commands[i].Type == SetConst && s.c.Commands[i].Alpha == 0
}

// of returns what command i does to the view, each element for itself.
func (s *slowAnalysis) any(i int, view int32, want func(AccessType) bool) bool {
	sub := s.c.Submatrices[view]
	for e, t := range s.accesses[i] {
		if e[0] == sub.Matrix && e[1] >= sub.RowOffset && e[1] < sub.RowOffset+sub.NumRows &&
			e[2] >= sub.ColOffset && e[2] < sub.ColOffset+sub.NumCols && want(t) {
			return true
		}
	}
	return false
}

func (s *slowAnalysis) first(view int32, want func(i int, t AccessType) bool) int {
	for i := range s.accesses {
		if s.any(i, view, func(t AccessType) bool { return want(i, t) }) {
			return i
		}
	}
	return len(s.accesses)
}

func (s *slowAnalysis) last(view int32, want func(t AccessType) bool) int {
	for i := len(s.accesses) - 1; i >= 0; i-- {
		if s.any(i, view, want) {
			return i
		}
	}
	return -1
}

// randomComputation makes a few matrices, views of them, and commands on them that need not make sense.
func randomComputation(r *rand.Rand) (*Computation, *NetworkInfo) {
	c := New()
	for range 1 + r.IntN(3) {
		c.NewMatrix(1+r.IntN(6), 1+r.IntN(6), false)
	}
	whole := len(c.Submatrices)
	for range r.IntN(6) {
		base := 1 + r.IntN(whole-1)
		sub := c.Submatrices[base]
		row, col := r.IntN(int(sub.NumRows)), r.IntN(int(sub.NumCols))
		c.NewSubMatrix(int32(base), row, 1+r.IntN(int(sub.NumRows)-row), col, 1+r.IntN(int(sub.NumCols)-col))
	}
	view := func() int32 { return int32(1 + r.IntN(len(c.Submatrices)-1)) }
	for m := 1; m < whole; m++ {
		c.Commands = append(c.Commands, NewCommand(AllocMatrix, int32(m)))
	}
	for range r.IntN(12) {
		switch r.IntN(5) {
		case 0:
			c.Commands = append(c.Commands, NewScaledCommand(SetConst, float32(r.IntN(2)), view()))
		case 1:
			c.Commands = append(c.Commands, NewCommand(MatrixCopy, view(), view()))
		case 2:
			c.Commands = append(c.Commands, NewCommand(MatrixAdd, view(), view()))
		default:
			c.Commands = append(c.Commands, NewCommand(Propagate, int32(r.IntN(2)), 0, view(), view(), 0, 0))
		}
	}
	for m := 1; m < whole; m++ {
		c.Commands = append(c.Commands, NewCommand(DeallocMatrix, int32(m)))
	}
	return c, &NetworkInfo{Components: []ComponentInfo{{Name: "a"}, {Name: "b", Properties: component.PropagateAdds}}}
}

// BenchmarkAnalyzer shows that the time grows with the computation and no faster: a chain of n layers.
func BenchmarkAnalyzer(b *testing.B) {
	for _, n := range []int{100, 10000, 100000} {
		c := New()
		net := sampleNetwork()
		last := c.NewMatrix(6, 3, false)
		c.Commands = append(c.Commands, NewCommand(AllocMatrix, last), NewScaledCommand(SetConst, 0, last))
		for range n {
			next := c.NewMatrix(6, 3, false)
			c.NewSubMatrix(next, 0, 2, 0, -1)
			c.Commands = append(c.Commands, NewCommand(AllocMatrix, next), NewCommand(Propagate, compReLU, 0, last, next, 0, 0), NewCommand(DeallocMatrix, last))
			last = next
		}
		c.Commands = append(c.Commands, NewScaledCommand(MatrixCopy, 2, last, last), NewCommand(DeallocMatrix, last))
		b.Run(fmt.Sprintf("layers=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(c, net, CheckOptions{Rewrite: false}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/layer")
		})
	}
}
