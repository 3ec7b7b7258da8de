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
	v, err := newVariables(c)
	if err != nil {
		t.Fatal(err)
	}
	if v.len() != 5 {
		t.Fatalf("%d variables, want 5", v.len())
	}
	for _, x := range []struct {
		view int32
		want []int32
	}{{0, nil}, {whole, []int32{0, 1, 2, 3}}, {top, []int32{0, 1}}, {right, []int32{1, 3}}, {other, []int32{4}}} {
		if got := slices.Collect(v.rects[x.view].all); !slices.Equal(got, x.want) {
			t.Errorf("view %d: variables %v, want %v", x.view, got, x.want)
		}
		if r := v.rects[x.view]; int(r.rows*r.cols) != len(x.want) {
			t.Errorf("view %d: %d rows and %d columns of variables, want %d in all", x.view, r.rows, r.cols, len(x.want))
		}
	}
	if got := v.cell(3); got != (SubMatrixInfo{Matrix: 1, RowOffset: 4, NumRows: 6, ColOffset: 4, NumCols: 2}) {
		t.Errorf("variable 3 is %+v", got)
	}
	if got := v.describe(c, 2); got != "m1(4:9, 0:3)" {
		t.Errorf("variable 2 is %s", got)
	}
	if rows, cols := v.rows.of(1), v.cols.of(1); !slices.Equal(rows, []int32{0, 4, 10}) || !slices.Equal(cols, []int32{0, 4, 6}) {
		t.Errorf("grid is %v %v", rows, cols)
	}
	if first, end := v.first[2], v.first[3]; first != 4 || end != 5 || v.cell(4).Matrix != 2 {
		t.Errorf("matrix 2 has [%d, %d)", first, end)
	}
	if !c.IsWhole(whole) || c.IsWhole(top) {
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
	if a, err := newAnalyzer(c, nil); err == nil || a != nil {
		t.Error("10^10 variables are accepted")
	}
}

// TestAttributes: what each type of command reads and writes.
func TestAttributes(t *testing.T) {
	s, net := newSample(), sampleNetwork()
	a, err := newAnalyzer(s.Computation, net)
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
		got := a.effects[x.command]
		slices.Sort(x.read)
		slices.Sort(x.write)
		name := NewPrinter(s.Computation, net).Command(x.command)
		if diff := cmp.Diff([2][]int32{x.read, x.write}, [2][]int32{got.submatrices.read, got.submatrices.written}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.lasting != x.effects {
			t.Errorf("%s: side effects %v", name, got.lasting)
		}
		for _, w := range x.write {
			m := matrix(w)
			if !slices.Contains(got.matrices.written, m) {
				t.Errorf("%s: does not write m%d", name, m)
			}
			if partly := !s.IsWhole(w); partly && !slices.Contains(got.matrices.read, m) {
				t.Errorf("%s: writes a part of m%d and does not keep the rest", name, m)
			}
		}
	}
	if got := a.lives[matrix(s.in)]; got.allocate != 0 || int(got.deallocate) != s.of(DeallocMatrix, s.in) || !got.isInput || got.isOutput {
		t.Errorf("life of m1: %+v", got)
	}
	if got := a.lives[matrix(s.dspliced)]; int(got.allocate) != s.at(SwapMatrix, 0) {
		t.Errorf("life of m8: %+v", got)
	}
}

// TestQueries compares the queries with ones that look at every command and element, on random
// computations.
func TestQueries(t *testing.T) {
	for seed := range uint64(60) {
		c, net := randomComputation(rand.New(rand.NewPCG(seed, 0)))
		a, err := newAnalyzer(c, net)
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
			check("firstAccess", a.firstAccess(s), slow.first(s, func(i int, t accessKind) bool { return t != 0 }))
			check("firstNontrivialAccess", a.firstNontrivialAccess(s), slow.first(s, func(i int, t accessKind) bool { return t != 0 && !slow.zeroing(i) }))
			check("lastAccess", a.lastAccess(s), slow.last(s, func(t accessKind) bool { return t != 0 }))
			check("lastWriteAccess", a.lastWriteAccess(s), slow.last(s, func(t accessKind) bool { return t&writes != 0 }))
			for i := -1; i < n; i++ {
				want := slow.first(s, func(k int, t accessKind) bool { return k > i && t&writes != 0 })
				if d := int(a.lives[c.Submatrices[s].Matrix].deallocate); d > i {
					want = min(want, d)
				}
				check(fmt.Sprintf("dataInvalidatedCommand(%d)", i), a.dataInvalidatedCommand(i, s), want)
			}
			if m := c.Submatrices[s].Matrix; c.IsWhole(s) {
				check("firstNontrivialMatrixAccess", a.firstNontrivialMatrixAccess(m), a.firstNontrivialAccess(s))
				check("lastMatrixAccess", a.lastMatrixAccess(m), a.lastAccess(s))
			}
		}
	}
}

// newAnalyzer analyzes c, and fails on any fault.
func newAnalyzer(c *Computation, net *NetworkInfo) (*analyzer, error) {
	r := newReport(c, net)
	if r.structure(); r.bad() {
		return nil, r.err()
	}
	a, err := analyze(r)
	if err == nil {
		err = r.err()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// The queries below are about all commands that touch any part of sub-matrix s.

// firstAccess returns the first of them, the number of commands if there is none.
func (a *analyzer) firstAccess(s int32) int {
	return a.firstOf(s, func(access) bool { return true })
}

// firstNontrivialAccess returns the first of them that is not zeroing.
func (a *analyzer) firstNontrivialAccess(s int32) int { return a.firstOf(s, a.nontrivial) }

func (a *analyzer) firstOf(s int32, want func(access) bool) int {
	first := len(a.effects)
	for v := range a.variables.rects[s].all {
		if i := slices.IndexFunc(a.accesses[v], want); i >= 0 {
			first = min(first, int(a.accesses[v][i].command))
		}
	}
	return first
}

func (a *analyzer) nontrivial(x access) bool {
	cmd := &a.c.Commands[x.command]
	return cmd.Type != SetConst || cmd.Alpha != 0
}

// lastAccess returns the last of them, -1 if there is none.
func (a *analyzer) lastAccess(s int32) int { return a.lastOf(s, readsWrites) }

// lastWriteAccess returns the last of them that writes, -1 if there is none.
func (a *analyzer) lastWriteAccess(s int32) int { return a.lastOf(s, writes) }

func (a *analyzer) lastOf(s int32, kind accessKind) int {
	last := -1
	for v := range a.variables.rects[s].all {
		for _, x := range a.accesses[v] {
			if x.kind&kind != 0 {
				last = max(last, int(x.command))
			}
		}
	}
	return last
}

// dataInvalidatedCommand returns the first command after c that writes any part of sub-matrix s, or
// frees its matrix.
func (a *analyzer) dataInvalidatedCommand(c int, s int32) int {
	end := a.firstOf(s, func(x access) bool { return int(x.command) > c && x.kind&writes != 0 })
	if d := int(a.lives[a.c.Submatrices[s].Matrix].deallocate); d > c {
		end = min(end, d)
	}
	return end
}

// firstNontrivialMatrixAccess returns the first command that accesses matrix m and is not zeroing.
func (a *analyzer) firstNontrivialMatrixAccess(m int32) int {
	i := slices.IndexFunc(a.lives[m].accesses, a.nontrivial)
	if i < 0 {
		return len(a.effects)
	}
	return int(a.lives[m].accesses[i].command)
}

// lastMatrixAccess returns the last command that accesses matrix m, -1 if none does.
func (a *analyzer) lastMatrixAccess(m int32) int {
	list := a.lives[m].accesses
	if len(list) == 0 {
		return -1
	}
	return int(list[len(list)-1].command)
}

// slowAnalysis knows the access of every command to every element.
type slowAnalysis struct {
	c        *Computation
	accesses []map[[3]int32]accessKind // by command: (matrix, row, column)
}

func newSlowAnalysis(c *Computation, net *NetworkInfo) *slowAnalysis {
	s := &slowAnalysis{c: c}
	for _, cmd := range c.Commands {
		acc := map[[3]int32]accessKind{}
		touch := func(view int32, t accessKind) {
			sub := c.Submatrices[view]
			for i := range sub.NumRows {
				for j := range sub.NumCols {
					acc[[3]int32{sub.Matrix, sub.RowOffset + i, sub.ColOffset + j}] |= t
				}
			}
		}
		switch cmd.Type {
		case SetConst:
			touch(cmd.Args[0], writes)
		case MatrixCopy:
			touch(cmd.Args[1], reads)
			touch(cmd.Args[0], writes)
		case MatrixAdd:
			touch(cmd.Args[1], reads)
			touch(cmd.Args[0], readsWrites)
		case Propagate:
			touch(cmd.Args[2], reads)
			touch(cmd.Args[3], writes)
			if net.Components[cmd.Args[0]].Has(component.PropagateAdds) {
				touch(cmd.Args[3], reads)
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
func (s *slowAnalysis) any(i int, view int32, want func(accessKind) bool) bool {
	sub := s.c.Submatrices[view]
	for e, t := range s.accesses[i] {
		if e[0] == sub.Matrix && e[1] >= sub.RowOffset && e[1] < sub.RowOffset+sub.NumRows &&
			e[2] >= sub.ColOffset && e[2] < sub.ColOffset+sub.NumCols && want(t) {
			return true
		}
	}
	return false
}

func (s *slowAnalysis) first(view int32, want func(i int, t accessKind) bool) int {
	for i := range s.accesses {
		if s.any(i, view, func(t accessKind) bool { return want(i, t) }) {
			return i
		}
	}
	return len(s.accesses)
}

func (s *slowAnalysis) last(view int32, want func(t accessKind) bool) int {
	for i := len(s.accesses) - 1; i >= 0; i-- {
		if s.any(i, view, want) {
			return i
		}
	}
	return -1
}

// randomComputation makes a few matrices, views of them, and commands on them that need not make
// sense.
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

// BenchmarkAnalyzer shows that the time grows with the computation and no faster: a chain of n
// layers.
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
