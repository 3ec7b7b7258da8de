package computation

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Components of the sample.
const (
	compAffine = iota
	compReLU
	compNorm
	compSplice
)

// Nodes of the sample.
const (
	nodeInput = iota
	nodeAffine
	nodeHidden
	nodeOutput
)

func sampleNetwork() *NetworkInfo {
	return &NetworkInfo{
		Components: []ComponentInfo{
			{Name: "affine", Type: "AffineComponent", InputDim: 4, OutputDim: 3,
				Properties: component.Simple | component.Updatable | component.BackpropNeedsInput | component.BackpropAdds},
			{Name: "relu", Type: reluType, InputDim: 3, OutputDim: 3,
				Properties: component.Simple | component.PropagateInPlace | component.BackpropNeedsOutput | component.StoresStats},
			{Name: "norm", Type: "BatchNormComponent", InputDim: 3, OutputDim: 3,
				Properties: component.Simple | component.PropagateInPlace | component.BackpropInPlace | component.BackpropNeedsOutput | component.UsesMemo},
			{Name: "splice", Type: "TdnnComponent", InputDim: 3, OutputDim: 2,
				Properties: component.Updatable | component.BackpropNeedsInput | component.BackpropAdds},
		},
		Nodes: []NodeInfo{
			{Name: "input", Dim: 4, IsInput: true},
			{Name: "affine", Dim: 3, IsComponent: true},
			{Name: "hidden", Dim: 3},
			{Name: "output", Dim: 2, IsOutput: true},
		},
	}
}

// sample is a computation with all commands but those of loops and the removable no-op. It passes
// the checker without the rewrite check. The views are named after what they hold.
type sample struct {
	*Computation
	in, pre, act, norm, spliced, out                       int32
	dout, dspliced, dnorm, dact, dpre, din, other, scratch int32
	actTop, actRest, otherTop, otherRest                   int32
}

func newSample() *sample {
	c := New()
	s := &sample{Computation: c}
	s.in = c.NewMatrix(6, 4, false)
	s.pre = c.NewMatrix(6, 3, false)
	s.act = c.NewMatrix(6, 3, true)
	s.norm = c.NewMatrix(6, 3, false)
	s.spliced = c.NewMatrix(6, 3, false)
	s.out = c.NewMatrix(5, 2, false)
	s.dout = c.NewMatrix(5, 2, false)
	s.dspliced = c.NewMatrix(6, 3, false)
	s.dnorm = c.NewMatrix(6, 3, false)
	s.dact = c.NewMatrix(6, 3, false)
	s.dpre = c.NewMatrix(6, 3, false)
	s.din = c.NewMatrix(6, 4, false)
	s.other = c.NewMatrix(6, 3, false)
	s.scratch = c.NewMatrix(6, 3, false)
	s.actTop = c.NewSubMatrix(s.act, 0, 2, 0, -1)
	s.actRest = c.NewSubMatrix(s.act, 2, -1, 0, -1)
	s.otherTop = c.NewSubMatrix(s.other, 0, 2, 0, -1)
	s.otherRest = c.NewSubMatrix(s.other, 2, -1, 0, -1)
	c.Indexes = [][]int32{{5, 4, 3, 2, 1, 0}, {0, -1, 1, -1, 2, 3}}
	c.IndexesMulti = [][]Pair{
		{{s.actTop, 0}, {s.actTop, 1}, {-1, -1}, {s.actRest, 0}, {s.actRest, 1}, {s.actRest, 2}},
		{{s.otherTop, 0}, {s.otherRest, 3}, {-1, -1}, {s.otherRest, 0}, {s.otherRest, 1}, {s.otherTop, 1}},
	}
	c.IndexesRanges = [][]Pair{{{0, 2}, {2, 6}, {-1, -1}, {3, 3}, {0, 6}, {1, 2}}}
	c.PrecomputedIndexes = append(c.PrecomputedIndexes, PrecomputedIndexesInfo{
		InputIndexes:  make([]index.Index, 6),
		OutputIndexes: make([]index.Index, 5),
	})
	for i := range 6 {
		c.PrecomputedIndexes[1].InputIndexes[i].T = int32(i)
	}
	copy(c.PrecomputedIndexes[1].OutputIndexes, c.PrecomputedIndexes[1].InputIndexes)
	c.MatrixDebugInfo = make([]MatrixDebugInfo, len(c.Matrices))
	for m := 1; m < len(c.Matrices); m++ {
		c.MatrixDebugInfo[m].IsDeriv = m >= 7 && m <= 12
		c.MatrixDebugInfo[m].Cindexes = make([]index.Cindex, c.Matrices[m].Rows)
		for i := range c.MatrixDebugInfo[m].Cindexes {
			c.MatrixDebugInfo[m].Cindexes[i] = index.Cindex{Node: nodeHidden, Index: index.Index{T: int32(i)}}
		}
	}
	c.NeedModelDerivative = true
	do := func(t CommandType, args ...int32) { c.Commands = append(c.Commands, NewCommand(t, args...)) }
	set := func(s int32, alpha float32) { c.Commands = append(c.Commands, NewScaledCommand(SetConst, alpha, s)) }
	do(AcceptInput, s.in, nodeInput)
	do(AllocMatrix, s.pre)
	do(Propagate, compAffine, 0, s.in, s.pre, 0, 0)
	do(AllocMatrix, s.act)
	do(Propagate, compReLU, 0, s.pre, s.act, 0, 1)
	do(NoOperationPermanent)
	do(AllocMatrix, s.norm)
	do(Propagate, compNorm, 0, s.act, s.norm, 1, 0)
	do(AllocMatrix, s.other)
	set(s.other, 0.5)
	do(MatrixCopy, s.otherRest, s.actRest)
	do(AllocMatrix, s.spliced)
	do(CopyRows, s.spliced, s.norm, 0)
	do(AddRows, s.spliced, s.norm, 1)
	do(AddRowsMulti, s.spliced, 0)
	do(AddRowRanges, s.spliced, s.norm, 0)
	do(MatrixAdd, s.spliced, s.other)
	do(AllocMatrix, s.scratch)
	do(CopyRowsMulti, s.scratch, 0)
	do(CopyToRowsMulti, s.scratch, 1)
	do(AddToRowsMulti, s.scratch, 1)
	c.Commands = append(c.Commands, NewScaledCommand(MatrixCopy, 0.5, s.other, s.other))
	do(DeallocMatrix, s.scratch)
	do(AllocMatrix, s.out)
	do(Propagate, compSplice, 1, s.spliced, s.out, 0, 0)
	do(ProvideOutput, s.out, nodeOutput)
	c.Commands = append(c.Commands, NewScaledCommand(CompressMatrix, 0, s.act, CompressUint8, 1))
	do(NoOperationMarker)
	do(AcceptInput, s.dout, nodeOutput)
	do(SwapMatrix, s.dspliced, s.other)
	set(s.dspliced, 0)
	do(Backprop, compSplice, 1, s.spliced, 0, s.dout, s.dspliced, 0)
	do(DeallocMatrix, s.spliced)
	do(DeallocMatrix, s.dout)
	do(Backprop, compNorm, 0, 0, s.norm, s.dspliced, s.dspliced, 1)
	do(AllocMatrix, s.dact)
	do(MatrixCopy, s.dact, s.dspliced)
	do(AllocMatrix, s.dpre)
	do(DecompressMatrix, s.act)
	do(Backprop, compReLU, 0, 0, s.act, s.dact, s.dpre, 0)
	do(AllocMatrix, s.din)
	set(s.din, 0)
	do(BackpropNoModelUpdate, compAffine, 0, s.in, 0, s.dpre, s.din, 0)
	do(AllocMatrix, s.dnorm)
	do(MatrixCopy, s.dnorm, s.dpre)
	do(Backprop, compAffine, 0, s.in, 0, s.dnorm, 0, 0)
	do(ProvideOutput, s.din, nodeInput)
	for _, m := range []int32{s.in, s.pre, s.act, s.norm, s.dspliced, s.dnorm, s.dact, s.dpre} {
		do(DeallocMatrix, m)
	}
	return s
}

// at returns the number of the n-th command of the type, counted from 0.
func (s *sample) at(t CommandType, n int) int {
	for i, c := range s.Commands {
		if c.Type != t {
			continue
		}
		if n--; n < 0 {
			return i
		}
	}
	panic("sample: no such command")
}

// first returns the first command of the type.
func (s *sample) first(t CommandType) *Command { return &s.Commands[s.at(t, 0)] }

func (s *sample) insert(i int, cmds ...Command) { s.Commands = slices.Insert(s.Commands, i, cmds...) }
func (s *sample) remove(i int)                  { s.Commands = slices.Delete(s.Commands, i, i+1) }
func (s *sample) swap(i, j int) {
	s.Commands[i], s.Commands[j] = s.Commands[j], s.Commands[i]
}

// of returns the command of the type whose first argument is the view.
func (s *sample) of(t CommandType, view int32) int {
	return slices.IndexFunc(s.Commands, func(c Command) bool { return c.Type == t && c.Args[0] == view })
}
