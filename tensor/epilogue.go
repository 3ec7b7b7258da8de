package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A multiplier is an op that computes sums of products, and can complete them, a few at a time, by a
// program: see array.Epilogue.
type multiplier interface {
	Op
	// compileProduct is Compile with a program, which may be nil. The inputs of the apply are
	// followed by those of the program behind the first one, which is the result of the op.
	compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error)
}

// EpilogueOp is a product whose results go through a program of element-wise operations while they
// are in a cache. Its inputs are those of the product, and the inputs of the program behind the first one.
type EpilogueOp struct{ epilogueOp }

// epilogueOp is not comparable: what looks for an op by == must use fgraph.OpsEqual.
type epilogueOp struct {
	base multiplier
	prog *array.Program
	_    [0]func()
}

// NewEpilogue returns the op for a product, which is a [ConvLastOp], a [WinogradOp], a [MatmulOp], a
// [SpliceMatmulOp], a [Dot22Op], an [IntegersOp], a [BlockMatmulOp], a [MatmulIntegerOp] or a
// [ConvLastIntegerOp], and for a program with one output, of the type of the product. It
// returns nil for others.
func NewEpilogue(base Op, p *array.Program) *EpilogueOp {
	b, ok := base.(multiplier)
	if !ok || p.NumOutputs() != 1 || p.NumInputs() < 1 || p.Type(0) != p.OutputType(0) {
		return nil
	}
	return &EpilogueOp{epilogueOp{base: b, prog: p}}
}

// Base returns the product.
func (op *EpilogueOp) Base() Op { return op.base }

// Program returns the program.
func (op *EpilogueOp) Program() *array.Program { return op.prog }

// String returns for example Epilogue{maximum(add(i0, i1), 0)}{Matmul}.
func (op *epilogueOp) String() string {
	if op.prog == nil {
		return "Epilogue{}"
	}
	return fmt.Sprintf("Epilogue{%v}{%v}", op.prog, op.base)
}

// EqualOp reports whether two ops are the same op.
func (op *epilogueOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*EpilogueOp)
	return ok && fgraph.OpsEqual(op.base, p.base) && op.prog.Equal(p.prog)
}

// HashOp returns a hash that agrees with EqualOp.
func (op *epilogueOp) HashOp() uint64 { return op.prog.Hash() }

// factors is the number of inputs of the product, of n.
func (op *epilogueOp) factors(n int) int { return max(n-op.prog.NumInputs()+1, 0) }

// Infer implements Op.
func (op *epilogueOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	factors := op.factors(len(in))
	types, err := op.base.Infer(in[:factors])
	if err != nil {
		return nil, err
	}
	t := types[0].(Type)
	if t.DType() != op.prog.Type(0) {
		return nil, opError(op, "the product is a %v", t)
	}
	for i, v := range in[factors:] {
		u := TypeOf(v)
		if u.DType() != op.prog.Type(i+1) || u.NDim() != t.NDim() || u.IsCSR() {
			return nil, argError(op, factors+i, "is a %v", u)
		}
		for d := range t.NDim() {
			if n, m := u.Dim(d), t.Dim(d); n != 1 && n != m && n != Unknown && m != Unknown {
				return nil, argError(op, factors+i, "is a %v, for a product that is a %v", u, t)
			}
		}
	}
	return types, nil
}

// Compile implements Op.
func (op *epilogueOp) Compile(a *fgraph.Apply) (Kernel, error) {
	return op.base.compileProduct(a, array.NewEpilogue(op.prog, argKinds(a, op.factors(len(a.Inputs())))))
}

// Completes reports whether the product of an apply of the op does all of the program itself, before
// it stores a result.
func (op *EpilogueOp) Completes(a *fgraph.Apply) bool {
	return array.NewEpilogue(op.prog, argKinds(a, op.factors(len(a.Inputs())))).ByProduct()
}

// Prepares implements Preparing.
func (op *epilogueOp) Prepares(a *fgraph.Apply, input int) bool {
	base, ok := op.base.(Preparing)
	return ok && base.Prepares(a, input)
}

// argKinds tells what kinds of inputs a product has for its program behind the factors, as far as types
// tell.
func argKinds(a *fgraph.Apply, factors int) []array.ArgKind {
	out := TypeOf(a.Out())
	last := out.NDim() - 1
	kinds := make([]array.ArgKind, len(a.Inputs())-factors+1)
	for i, v := range a.Inputs()[factors:] {
		t := TypeOf(v)
		// Only what types say for sure: the quick ways for rows and for whole arguments do not broadcast.
		row, full := true, true
		for d := range t.NDim() {
			n, m := t.Dim(d), out.Dim(d)
			row = row && (n == 1 || d == last && n == m && n != Unknown)
			full = full && n == m && n != Unknown
		}
		switch {
		case t.DType() != array.Float32 || out.DType() != array.Float32:
		case row:
			kinds[i+1] = array.RowArg
		case full:
			kinds[i+1] = array.FullArg
		}
	}
	return kinds
}

// InferShape implements ShapeInferer: the shape is that of the product.
func (op *epilogueOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	inferer, ok := op.base.(ShapeInferer)
	base, err := Make(op.base, a.Inputs()[:op.factors(len(a.Inputs()))]...)
	if !ok || err != nil {
		return nil
	}
	return inferer.InferShape(base, s)
}

// Cost implements Coster.
func (op *epilogueOp) Cost(a *fgraph.Apply) float64 {
	base, err := Make(op.base, a.Inputs()[:op.factors(len(a.Inputs()))]...)
	if err != nil {
		return callCost
	}
	return Cost(base) + float64(elements(a.Out())*float64(op.prog.Work()))
}

// fitArgs checks that the other inputs of a program fit its product.
func fitArgs(op fgraph.Op, y *array.Array, args []*array.Array) error {
	for _, a := range args {
		for d, n := range a.Shape() {
			if n != 1 && n != y.Dim(d) {
				return fmt.Errorf("%w: %v: shape %v for a product of shape %v", ErrShape, op, a.Shape(), y.Shape())
			}
		}
	}
	return nil
}
