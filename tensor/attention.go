package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// AttentionOp weights values by how well their keys fit queries: softmax(p(q·k, ...))·v, where p is a
// program of element-wise operations, such as a scale and a mask. Inputs are the queries q, the keys k, the
// values v, and the inputs of the program behind the first one. They have one number n of dimensions. The
// last two of q, k and v are matrices, with a row for each query, a column for each key, and a row for each
// value. The dimension before, if there is one, has heads, of which k and v may have fewer, each for several
// of q in a row; any others are a batch. The other inputs broadcast to the scores q·k.
//
// All are float32s, except for the other inputs of the program. Scores are computed for some queries at a
// time, and never stored as a whole. The bits are those of the ops one by one.
type AttentionOp struct{ attentionOp }

// attentionOp is not comparable: what looks for an op by == must use fgraph.OpsEqual.
type attentionOp struct {
	prog   *array.Program // nil for none
	turned bool
	_      [0]func()
}

// NewAttention returns the op for a program of float32s with one output, which may be nil. In a turned
// result, heads and queries have exchanged their places, as they are wanted where heads are joined. It
// returns nil for other programs.
func NewAttention(p *array.Program, turned bool) *AttentionOp {
	if p != nil && (p.NumOutputs() != 1 || p.NumInputs() < 1 || p.Type(0) != array.Float32 || p.OutputType(0) != array.Float32) {
		return nil
	}
	return &AttentionOp{attentionOp{prog: p, turned: turned}}
}

// Program returns the program, or nil.
func (op *AttentionOp) Program() *array.Program { return op.prog }

// Turned reports whether heads and queries have exchanged their places in the result.
func (op *AttentionOp) Turned() bool { return op.turned }

// String returns for example Attention{add(mul(i0, 0.125), i1)}.
func (op *attentionOp) String() string {
	s := "Attention"
	if op.prog != nil {
		s += fmt.Sprintf("{%v}", op.prog)
	}
	if op.turned {
		s += "{turned}"
	}
	return s
}

// EqualOp reports whether two ops are the same op.
func (op *attentionOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*AttentionOp)
	return ok && op.turned == p.turned && (op.prog == nil) == (p.prog == nil) && (op.prog == nil || op.prog.Equal(p.prog))
}

// HashOp returns a hash that agrees with EqualOp.
func (op *attentionOp) HashOp() uint64 {
	if op.prog == nil {
		return 1
	}
	return op.prog.Hash()
}

// Infer implements Op.
func (op *attentionOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	want := 3
	if op.prog != nil {
		want += op.prog.NumInputs() - 1
	}
	if len(in) != want {
		return nil, wrongCount(op, in, want)
	}
	n := TypeOf(in[0]).NDim()
	for i, v := range in {
		t := TypeOf(v)
		dtype := array.Float32
		if i > 2 {
			dtype = op.prog.Type(i - 2)
		}
		if t.NDim() != n || n < 2 || t.DType() != dtype || t.IsCSR() {
			return nil, argError(op, i, "is a %v", t)
		}
	}
	if op.turned && n < 3 {
		return nil, opError(op, "there is no dimension of heads to turn")
	}
	q, k, v := TypeOf(in[0]), TypeOf(in[1]), TypeOf(in[2])
	if err := attentionShapes(op, q.Shape(), k.Shape(), v.Shape()); err != nil {
		return nil, err
	}
	s := q.h.Value()
	// First the shape of the scores, to which the other inputs have to broadcast, then that of the result.
	s.shape[n-1] = int32(k.Dim(n - 1))
	for i, a := range in[min(3, len(in)):] {
		for d := range n {
			if m, want := TypeOf(a).Dim(d), int(s.shape[d]); m != 1 && m != want && m != Unknown && want != Unknown {
				return nil, argError(op, i+3, "is a %v, which does not broadcast to the scores", a.Type())
			}
		}
	}
	s.shape[n-1] = int32(v.Dim(n - 1))
	if op.turned {
		s.shape[n-2], s.shape[n-3] = s.shape[n-3], s.shape[n-2]
	}
	return one(s.intern()), nil
}

// attentionShapes checks that matrices fit, and heads and batches. Sizes may be unknown.
func attentionShapes(op fgraph.Op, q, k, v []int) error {
	n := len(q)
	fit := func(a, b int) bool { return a == b || a == Unknown || b == Unknown }
	ok := fit(q[n-1], k[n-2]) && fit(k[n-1], v[n-2])
	for d, size := range q[:n-2] {
		for _, m := range [2]int{k[d], v[d]} {
			// Grouped queries: several heads of q share one of k and v.
			shared := d == n-3 && m > 0 && size%m == 0
			ok = ok && (fit(size, m) || m == 1 || shared)
		}
	}
	if !ok {
		return opError(op, "queries of shape %v, keys of %v and values of %v", q, k, v)
	}
	return nil
}

// Compile implements Op.
func (op *attentionOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		q, k, v := in[0], in[1], in[2]
		n := q.NDim()
		if err := attentionShapes(op, q.Shape(), k.Shape(), v.Shape()); err != nil {
			return fmt.Errorf("%w: %w", ErrShape, err)
		}
		var shape [array.MaxDims]int
		copy(shape[:], q.Shape())
		shape[n-1] = k.Dim(n - 1)
		for _, a := range in[3:] {
			for d, m := range a.Shape() {
				if m != 1 && m != shape[d] {
					return fmt.Errorf("%w: %v: shape %v for scores of shape %v", ErrShape, op, a.Shape(), slices.Clone(shape[:n]))
				}
			}
		}
		shape[n-1] = v.Dim(n - 1)
		if op.turned {
			shape[n-2], shape[n-3] = shape[n-3], shape[n-2]
		}
		if err := ws.New(out[0], array.Float32, shape[:n]...); err != nil {
			return err
		}
		return ws.Attention(out[0], q, k, v, op.prog, in[3:], op.turned)
	}, nil
}

// InferShape implements ShapeInferer.
func (op *attentionOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	q, v := a.Inputs()[0], a.Inputs()[2]
	n := TypeOf(q).NDim()
	dims := make([]*fgraph.Variable, n)
	for d := range dims[:n-1] {
		dims[d] = s.Dim(q, d)
	}
	dims[n-1] = s.Dim(v, n-1)
	if op.turned {
		dims[n-2], dims[n-3] = dims[n-3], dims[n-2]
	}
	return [][]*fgraph.Variable{dims}
}

// Cost implements Coster: that of two products, a softmax and the program.
func (op *attentionOp) Cost(a *fgraph.Apply) float64 {
	in := a.Inputs()
	n := TypeOf(in[0]).NDim()
	// The ops that this one replaces are asked, so that both ways are measured alike.
	scores, err := Try(func() *fgraph.Variable { return Softmax(Matmul(in[0], in[1])) })
	if n < 3 || err != nil {
		return callCost
	}
	y, err := Try(func() *fgraph.Variable { return Matmul(scores, in[2]) })
	if err != nil {
		return callCost
	}
	cost := Cost(y.Owner()) + Cost(scores.Owner()) + Cost(scores.Owner().Inputs()[0].Owner())
	if op.prog != nil {
		cost += float64(elements(scores) * float64(op.prog.Work()))
	}
	return cost
}
