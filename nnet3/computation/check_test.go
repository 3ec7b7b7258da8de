package computation

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/nnet3/index"
)

// TestCheckMutations breaks a sound computation in one way at a time, and expects the check for it
// to fire.
func TestCheckMutations(t *testing.T) {
	if err := Check(newSample().Computation, sampleNetwork(), CheckOptions{}); err != nil {
		t.Fatalf("the sample is not sound: %v", err)
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			s, net := newSample(), sampleNetwork()
			m.do(s, net)
			err := Check(s.Computation, net, CheckOptions{})
			if !errors.Is(err, m.want) {
				t.Fatalf("got %v, want %v", err, m.want)
			}
			if !strings.Contains(err.Error(), m.text) {
				t.Errorf("got %v, want a mention of %q", err, m.text)
			}
		})
	}
}

var mutations = []struct {
	name string
	do   func(s *sample, net *NetworkInfo)
	want error
	text string
}{
	// Structure.
	{"reserved matrix", func(s *sample, _ *NetworkInfo) { s.Matrices[0].Rows = 1 }, errStructure, "reserved"},
	{"reserved slot", func(s *sample, _ *NetworkInfo) { s.PrecomputedIndexes = nil }, errStructure, "reserved"},
	{"empty matrix", func(s *sample, _ *NetworkInfo) { s.Matrices[3].Rows = 0 }, errStructure, "m3 has size 0x3"},
	{"huge matrix", func(s *sample, _ *NetworkInfo) { s.Matrices[3] = MatrixInfo{math.MaxInt32, math.MaxInt32, false} }, errStructure, "m3 has size"},
	{"sub-matrix of nothing", func(s *sample, _ *NetworkInfo) { s.Submatrices[s.actTop].Matrix = 99 }, errStructure, "matrix 99"},
	{"sub-matrix too long", func(s *sample, _ *NetworkInfo) { s.Submatrices[s.actTop].NumRows = 7 }, errStructure, "m3, which is 6x3"},
	{"sub-matrix overflow", func(s *sample, _ *NetworkInfo) { s.Submatrices[s.actTop].RowOffset = math.MaxInt32 }, errStructure, "m3"},
	{"sub-matrix too wide", func(s *sample, _ *NetworkInfo) { s.Submatrices[s.actTop].ColOffset = 1 }, errStructure, "m3"},
	{"debug count", func(s *sample, _ *NetworkInfo) { s.MatrixDebugInfo = s.MatrixDebugInfo[:3] }, errStructure, "debug"},
	{"unknown command", func(s *sample, _ *NetworkInfo) { s.Commands[4].Type = 77 }, errStructure, "unknown command type 77"},
	{"view out of range", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[3] = 99 }, errStructure, "argument 4 is 99"},
	{"view 0 where one is needed", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[3] = 0 }, errStructure, "argument 4 is 0"},
	{"negative view", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[2] = -1 }, errStructure, "argument 3 is -1"},
	{"component out of range", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[0] = 4 }, errStructure, "components"},
	{"precomputed out of range", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Propagate, 3)].Args[1] = 2 }, errStructure, "precomputed"},
	{"memo out of range", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Propagate, 2)].Args[4] = 1 << 20 }, errStructure, "memo"},
	{"flag", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[5] = 2 }, errStructure, "flag"},
	{"index vector out of range", func(s *sample, _ *NetworkInfo) { s.first(CopyRows).Args[2] = 2 }, errStructure, "index vectors"},
	{"pairs out of range", func(s *sample, _ *NetworkInfo) { s.first(AddRowsMulti).Args[1] = 2 }, errStructure, "indexes_multi"},
	{"ranges out of range", func(s *sample, _ *NetworkInfo) { s.first(AddRowRanges).Args[2] = 1 }, errStructure, "indexes_ranges"},
	{"pair of no sub-matrix", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[0][0][0] = 99 }, errStructure, "sub-matrix 99"},
	{"pair of no row", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[0][0][1] = 2 }, errStructure, "row 2 of sub-matrix"},
	{"half a pair", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[0][2] = Pair{-1, 0} }, errStructure, "sub-matrix -1"},
	{"node out of range", func(s *sample, _ *NetworkInfo) { s.first(AcceptInput).Args[1] = 4 }, errStructure, "nodes"},
	{"compression type", func(s *sample, _ *NetworkInfo) { s.first(CompressMatrix).Args[1] = 5 }, errStructure, "ways to compress"},
	{"alloc of a part", func(s *sample, _ *NetworkInfo) { s.Commands[s.of(AllocMatrix, s.act)].Args[0] = s.actTop }, errStructure, "all of it"},
	{"free of a part", func(s *sample, _ *NetworkInfo) { s.Commands[s.of(DeallocMatrix, s.act)].Args[0] = s.actTop }, errStructure, "all of it"},
	{"swap of a part", func(s *sample, _ *NetworkInfo) { s.first(SwapMatrix).Args[1] = s.otherTop }, errStructure, "all of it"},
	{"compression of a part", func(s *sample, _ *NetworkInfo) { s.first(CompressMatrix).Args[0] = s.actTop }, errStructure, "all of it"},
	{"decompression of a part", func(s *sample, _ *NetworkInfo) { s.first(DecompressMatrix).Args[0] = s.actTop }, errStructure, "all of it"},

	// Sizes.
	{"swap sizes", func(s *sample, _ *NetworkInfo) { s.first(SwapMatrix).Args[1] = s.out }, errSize, "6x3 and 5x2"},
	{"copy sizes", func(s *sample, _ *NetworkInfo) { s.first(MatrixCopy).Args[1] = s.actTop }, errSize, "4x3 and 2x3"},
	{"add sizes", func(s *sample, _ *NetworkInfo) { s.first(MatrixAdd).Args[1] = s.otherTop }, errSize, "6x3 and 2x3"},
	{"input dimension", func(_ *sample, net *NetworkInfo) { net.Components[compAffine].InputDim = 5 }, errSize, "the input has 4 columns"},
	{"output dimension", func(_ *sample, net *NetworkInfo) { net.Components[compSplice].OutputDim = 3 }, errSize, "the output derivative has 2 columns"},
	{"rows of a simple component", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Propagate, 1)].Args[2] = s.actTop }, errSize, "2 rows in and 6 rows out"},
	{"rows of values and derivatives", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[3] = s.otherTop }, errSize, "2 and 6 rows of output value"},
	{"rows of precomputed input", func(s *sample, _ *NetworkInfo) { s.PrecomputedIndexes[1].InputIndexes = make([]index.Index, 7) }, errSize, "7 input rows"},
	{"rows of precomputed output", func(s *sample, _ *NetworkInfo) { s.PrecomputedIndexes[1].OutputIndexes = make([]index.Index, 7) }, errSize, "7 output rows"},
	{"columns of rows", func(s *sample, _ *NetworkInfo) { s.first(CopyRows).Args[1] = s.in }, errSize, "3 and 4 columns"},
	{"columns of ranges", func(s *sample, _ *NetworkInfo) { s.first(AddRowRanges).Args[1] = s.in }, errSize, "3 and 4 columns"},
	{"columns of pairs", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[0][0] = Pair{s.in, 0} }, errSize, "row 0 is of m1 with 4 columns"},
	{"columns of a node", func(_ *sample, net *NetworkInfo) { net.Nodes[nodeInput].Dim = 5 }, errSize, "node input of dimension 5"},
	{"alpha of copying to rows", func(s *sample, _ *NetworkInfo) { s.first(CopyToRowsMulti).Alpha = 2 }, errSize, "must be 1"},
	{"alpha not a number", func(s *sample, _ *NetworkInfo) { s.first(MatrixAdd).Alpha = float32(math.NaN()) }, errSize, "alpha is NaN"},

	// Components.
	{"simple with precomputed", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[1] = 1 }, errComponent, "no precomputed"},
	{"simple without input", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[2] = 0 }, errComponent, "needs an input"},
	{"backprop simple with precomputed", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[1] = 1 }, errComponent, "no precomputed"},
	{"input value missing", func(s *sample, _ *NetworkInfo) { s.first(Backprop).Args[2] = 0 }, errComponent, "needs its input value"},
	{"output value missing", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[3] = 0 }, errComponent, "needs its output value"},
	{"no effect", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[5] = 0 }, errComponent, "no effect"},
	{"no statistics", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[5] = 1 }, errComponent, "no statistics"},

	// Rows.
	{"too few row numbers", func(s *sample, _ *NetworkInfo) { s.Indexes[0] = s.Indexes[0][:5] }, errRows, "5 row numbers for 6 rows"},
	{"row number", func(s *sample, _ *NetworkInfo) { s.Indexes[0][3] = 6 }, errRows, "row 3 comes from row 6 of 6"},
	{"negative row number", func(s *sample, _ *NetworkInfo) { s.Indexes[0][3] = -2 }, errRows, "row -2"},
	{"too few ranges", func(s *sample, _ *NetworkInfo) { s.IndexesRanges[0] = s.IndexesRanges[0][:5] }, errRows, "5 ranges for 6 rows"},
	{"range end", func(s *sample, _ *NetworkInfo) { s.IndexesRanges[0][1][1] = 7 }, errRows, "[2, 7)"},
	{"range backward", func(s *sample, _ *NetworkInfo) { s.IndexesRanges[0][1] = Pair{3, 2} }, errRows, "[3, 2)"},
	{"too few pairs", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[0] = s.IndexesMulti[0][:5] }, errRows, "5 pairs for 6 rows"},

	// Overlap.
	{"in place without the flag", func(s *sample, net *NetworkInfo) {
		net.Components[compReLU].Properties &^= net.Components[compNorm].Properties // takes in-place away, among others
		s.Commands[s.at(Propagate, 1)].Args[2] = s.act
	}, errOverlap, "does not work in place"},
	{"backprop in place without the flag", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 2)].Args[5] = s.dact }, errOverlap, "does not work in place"},
	{"input value overwritten", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[3] = s.dspliced }, errOverlap, "share elements"},
	{"operands shifted by a row", func(s *sample, _ *NetworkInfo) {
		a, b := s.NewSubMatrix(s.act, 0, 5, 0, -1), s.NewSubMatrix(s.act, 1, 5, 0, -1)
		s.insert(s.at(NoOperationPermanent, 0), NewCommand(Propagate, compReLU, 0, a, b, 0, 0))
	}, errOverlap, "different views"},
	{"copy to itself", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(MatrixCopy, 1)].Alpha = 1 }, errOverlap, "does nothing"},
	{"copy within", func(s *sample, _ *NetworkInfo) {
		s.first(MatrixCopy).Args[1] = s.NewSubMatrix(s.other, 1, 4, 0, -1)
	}, errOverlap, "share elements"},
	{"add to itself", func(s *sample, _ *NetworkInfo) { s.first(MatrixAdd).Args[1] = s.spliced }, errOverlap, "share elements"},
	{"rows of itself", func(s *sample, _ *NetworkInfo) { s.first(AddRows).Args[1] = s.spliced }, errOverlap, "share elements"},
	{"ranges of itself", func(s *sample, _ *NetworkInfo) { s.first(AddRowRanges).Args[1] = s.spliced }, errOverlap, "share elements"},
	{"swap with itself", func(s *sample, _ *NetworkInfo) { s.first(SwapMatrix).Args[1] = s.dspliced }, errOverlap, "itself"},
	{"pair of itself", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[0][0] = Pair{s.scratch, 1} }, errOverlap, "own rows"},
	{"pair twice", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[1][4] = Pair{s.otherRest, 0} }, errOverlap, "row 2 of m13 is written twice"},
	{"pair twice by another name", func(s *sample, _ *NetworkInfo) { s.IndexesMulti[1][4] = Pair{s.other, 5} }, errOverlap, "row 5 of m13 is written twice"},

	// Memos.
	{"memo twice", func(s *sample, _ *NetworkInfo) {
		i := s.at(Propagate, 2)
		s.insert(i+1, s.Commands[i])
	}, errMemo, "second time"},
	{"memo of a component without", func(s *sample, _ *NetworkInfo) { s.first(Propagate).Args[4] = 2 }, errMemo, "makes no memo"},
	{"memo consumed before it is written", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[6] = 2 }, errMemo, "has not been written"},
	{"memo consumed twice", func(s *sample, _ *NetworkInfo) { s.first(Backprop).Args[6] = 1 }, errMemo, "consumed a second time"},
	{"memo of another component", func(s *sample, _ *NetworkInfo) { s.first(Backprop).Args[6] = 1 }, errMemo, "another component's"},
	{"memo needed", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 1)].Args[6] = 0 }, errMemo, "needs its memo"},
	{"memo left", func(s *sample, _ *NetworkInfo) { s.remove(s.at(Backprop, 1)) }, errMemo, "never consumed"},

	// Input, output, jumps.
	{"node without input", func(s *sample, _ *NetworkInfo) { s.first(AcceptInput).Args[1] = nodeHidden }, errIO, "hidden"},
	{"label without jump", func(s *sample, _ *NetworkInfo) { s.insert(3, NewCommand(NoOperationLabel)) }, errLoop, "does not jump"},
	{"jump in the middle", func(s *sample, _ *NetworkInfo) { s.insert(9, NewCommand(GotoLabel, 3)) }, errLoop, "last command"},
	{"jump to no label", func(s *sample, _ *NetworkInfo) { s.insert(len(s.Commands), NewCommand(GotoLabel, 3)) }, errLoop, "not a label"},

	// Lives.
	{"never allocated", func(s *sample, _ *NetworkInfo) { s.remove(s.of(AllocMatrix, s.dact)) }, errLifetime, "m10 is never allocated"},
	{"allocated twice", func(s *sample, _ *NetworkInfo) { s.insert(8, NewCommand(AllocMatrix, s.act)) }, errLifetime, "already allocated by command c3"},
	{"never freed", func(s *sample, _ *NetworkInfo) { s.remove(s.of(DeallocMatrix, s.dact)) }, errLifetime, "m10 is never freed"},
	{"freed twice", func(s *sample, _ *NetworkInfo) { s.insert(len(s.Commands), NewCommand(DeallocMatrix, s.dact)) }, errLifetime, "already freed"},
	{"freed first", func(s *sample, _ *NetworkInfo) { s.swap(s.of(AllocMatrix, s.scratch), s.of(DeallocMatrix, s.scratch)) }, errLifetime, "freed before it is allocated"},
	{"used too early", func(s *sample, _ *NetworkInfo) {
		s.swap(s.of(AllocMatrix, s.pre), s.at(Propagate, 0))
	}, errLifetime, "m2 is not allocated yet"},
	{"used too late", func(s *sample, _ *NetworkInfo) { s.insert(5, NewCommand(DeallocMatrix, s.act)) }, errLifetime, "freed already"},

	// Compression.
	{"compression range", func(s *sample, _ *NetworkInfo) { s.first(CompressMatrix).Alpha = 1001 }, errCompression, "1001"},
	{"compression undone never", func(s *sample, _ *NetworkInfo) { s.remove(s.at(DecompressMatrix, 0)) }, errCompression, "not decompressed"},
	{"compression undone twice", func(s *sample, _ *NetworkInfo) {
		s.insert(s.at(DecompressMatrix, 0), NewCommand(DecompressMatrix, s.act))
	}, errCompression, "m3 is not compressed"},
	{"compression after the marker", func(s *sample, _ *NetworkInfo) { s.swap(s.at(CompressMatrix, 0), s.at(NoOperationMarker, 0)) }, errCompression, "before and decompressed after"},
	{"sign of a value", func(s *sample, _ *NetworkInfo) { s.Commands[s.at(Backprop, 2)].Args[4] = s.act }, errCompression, "signs"},
	{"sign for another component", func(_ *sample, net *NetworkInfo) { net.Components[compReLU].Type = "SigmoidComponent" }, errCompression, "signs"},
	{"sign for another use", func(s *sample, _ *NetworkInfo) {
		s.insert(s.at(DecompressMatrix, 0)+1, NewCommand(MatrixCopy, s.dact, s.act))
	}, errCompression, "signs"},

	// Values.
	{"undefined", func(s *sample, _ *NetworkInfo) { s.remove(s.at(SetConst, 1)) }, errUndefined, "m8(:, :) has not been written"},
	{"partly undefined", func(s *sample, _ *NetworkInfo) { s.remove(s.at(SetConst, 0)) }, errUndefined, "m13(0:1, :) has not been written"},
	{"part unused", func(s *sample, _ *NetworkInfo) { s.useRows(7) }, errUnused, "m15(7:9, :)"},
	{"only set", func(s *sample, _ *NetworkInfo) {
		m := s.NewMatrix(2, 2, false)
		s.MatrixDebugInfo = nil
		s.insert(0, NewCommand(AllocMatrix, m), NewScaledCommand(SetConst, 0, m), NewCommand(DeallocMatrix, m))
	}, errUnused, "m15 is never used"},

	// Debug information.
	{"debug rows", func(s *sample, _ *NetworkInfo) { s.MatrixDebugInfo[1].Cindexes = s.MatrixDebugInfo[1].Cindexes[:5] }, errDebugInfo, "5 rows described of m1"},
	{"debug node", func(s *sample, _ *NetworkInfo) { s.MatrixDebugInfo[1].Cindexes[2].Node = 4 }, errDebugInfo, "node 4"},
	{"debug n", func(s *sample, _ *NetworkInfo) { s.MatrixDebugInfo[1].Cindexes[2].Index.N = -1 }, errDebugInfo, "n -1"},
}

// useRows adds a matrix of ten rows of which only the first n are used.
func (s *sample) useRows(n int) {
	m := s.NewMatrix(10, 2, false)
	part := s.NewSubMatrix(m, 0, n, 0, -1)
	s.MatrixDebugInfo = nil
	s.insert(0, NewCommand(AllocMatrix, m), NewScaledCommand(SetConst, 1, part), NewScaledCommand(MatrixCopy, 2, part, part), NewCommand(DeallocMatrix, m))
}

// TestCheckUnused: what extending a matrix leaves behind is tolerated, and anything on demand.
func TestCheckUnused(t *testing.T) {
	for _, c := range []struct {
		rows  int
		allow bool
	}{{8, false}, {3, true}} {
		s := newSample()
		s.useRows(c.rows)
		if err := Check(s.Computation, sampleNetwork(), CheckOptions{AllowUnused: c.allow}); err != nil {
			t.Errorf("%d of 10 rows used: %v", c.rows, err)
		}
	}
}

// TestCheckRewrite: the rewrite check fires where a value changes after it was read, and only on
// demand.
func TestCheckRewrite(t *testing.T) {
	s, net := newSample(), sampleNetwork()
	s.MatrixDebugInfo = nil
	err := Check(s.Computation, net, CheckOptions{Rewrite: true})
	if !errors.Is(err, errRewrite) || !strings.Contains(err.Error(), "was read by command c16") {
		t.Errorf("got %v, want a rewrite after command c16", err)
	}
}

// TestCheckAll: faults that have nothing to do with each other are reported together, with their
// commands.
func TestCheckAll(t *testing.T) {
	s, net := newSample(), sampleNetwork()
	s.first(CopyToRowsMulti).Alpha = 2
	s.remove(s.of(DeallocMatrix, s.dact))
	s.MatrixDebugInfo[1].Cindexes = nil
	err := Check(s.Computation, net, CheckOptions{})
	for _, kind := range []error{errSize, errLifetime, errDebugInfo} {
		if !errors.Is(err, kind) {
			t.Errorf("%v does not mention %q", err, kind)
		}
	}
	var many *multierror.Error
	if !errors.As(err, &many) || len(many.Errors) != 3 {
		t.Errorf("got %v, want three faults", err)
	}
	var v *violation
	if !errors.As(many.Errors[0], &v) || v.Command != s.at(CopyToRowsMulti, 0) || v.Text != "rows(m13(0:1, :)[0], m13(2:5, :)[3], -, m13(2:5, :)[0:1], m13(0:1, :)[1]) = 2 * m14" {
		t.Errorf("got %+v", many.Errors[0])
	}
}

// TestCheckBounded: the report of a computation that is wrong from end to end stays short.
func TestCheckBounded(t *testing.T) {
	c := New()
	for range 10 * maxViolations {
		c.Commands = append(c.Commands, NewCommand(SetConst, 7))
	}
	err := Check(c, nil, CheckOptions{})
	var many *multierror.Error
	if !errors.As(err, &many) || len(many.Errors) != maxViolations || !strings.Contains(err.Error(), "and 1950 more") {
		t.Errorf("got %.100s", err)
	}
}

// TestCheckNoNetwork: without a network the rest is still checked.
func TestCheckNoNetwork(t *testing.T) {
	if err := Check(newSample().Computation, nil, CheckOptions{}); err != nil {
		t.Error(err)
	}
}

// newLoop is a computation that carries a state from pass to pass: state' = relu(state) + input.
func newLoop() *sample {
	c := New()
	s := &sample{Computation: c}
	s.in = c.NewMatrix(2, 3, false)
	s.act = c.NewMatrix(2, 3, false)
	s.norm = c.NewMatrix(2, 3, false)
	s.out = c.NewMatrix(2, 3, false)
	do := func(t CommandType, args ...int32) { c.Commands = append(c.Commands, NewCommand(t, args...)) }
	do(AllocMatrix, s.act)
	c.Commands = append(c.Commands, NewScaledCommand(SetConst, 0, s.act))
	do(NoOperationLabel)
	do(AcceptInput, s.in, nodeInput)
	do(AllocMatrix, s.norm)
	do(Propagate, compReLU, 0, s.act, s.norm, 0, 0)
	do(MatrixAdd, s.norm, s.in)
	do(DeallocMatrix, s.in)
	do(DeallocMatrix, s.act)
	do(AllocMatrix, s.out)
	do(MatrixCopy, s.out, s.norm)
	do(ProvideOutput, s.out, nodeOutput)
	do(NoOperationMarker)
	do(SwapMatrix, s.act, s.norm)
	do(GotoLabel, 2)
	return s
}

func loopNetwork() *NetworkInfo {
	net := sampleNetwork()
	net.Nodes[nodeInput].Dim, net.Nodes[nodeOutput].Dim = 3, 3
	return net
}

func TestCheckLoop(t *testing.T) {
	if err := Check(newLoop().Computation, loopNetwork(), CheckOptions{}); err != nil {
		t.Fatalf("the loop is not sound: %v", err)
	}
	for _, m := range []struct {
		name string
		do   func(s *sample)
		want error
		text string
	}{
		{"nothing handed over", func(s *sample) { s.remove(s.at(SwapMatrix, 0)) }, errLoop, "m2 is allocated when a pass begins and free when it ends"},
		{"leak", func(s *sample) { s.remove(s.of(DeallocMatrix, s.in)) }, errLoop, "m1 is free when a pass begins and allocated when it ends"},
		{"handed over to a matrix in use", func(s *sample) { s.remove(s.of(DeallocMatrix, s.act)) }, errLoop, "m2 is still allocated"},
		{"label elsewhere", func(s *sample) { s.Commands[len(s.Commands)-1].Args[0] = 3 }, errLoop, "not a label"},
	} {
		s := newLoop()
		m.do(s)
		if err := Check(s.Computation, loopNetwork(), CheckOptions{}); !errors.Is(err, m.want) || !strings.Contains(err.Error(), m.text) {
			t.Errorf("%s: got %v, want %q", m.name, err, m.text)
		}
	}
}
