package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// broadcastShape is the InferShape of element-wise ops.
func broadcastShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	dims := make([]*fgraph.Variable, TypeOf(a.Out()).NDim())
	for d := range dims {
		if n, ok := s.number(a.Out(), d); ok {
			dims[d] = s.size(n)
			continue
		}
		for _, v := range a.Inputs() {
			// The first input that does not broadcast has the size. Others that differ are an error in a run.
			fills := TypeOf(v).Dim(d) != 1
			if fills || dims[d] == nil || isOne(dims[d]) {
				dims[d] = s.Dim(v, d)
			}
			if fills {
				break
			}
		}
	}
	return slices.Repeat([][]*fgraph.Variable{dims}, len(a.Outputs()))
}

// broadcast returns the type of the result of an element-wise op on tensors with one number of
// dimensions, or an error without an op if two sizes do not fit.
func broadcast(in []*fgraph.Variable) (spec, *Error) {
	s := TypeOf(in[0]).h.Value()
	for k, v := range in[1:] {
		o := TypeOf(v).h.Value()
		for d := range s.shape[:s.ndim] {
			n, m := s.shape[d], o.shape[d]
			switch {
			case n == m || m == 1:
			// A size that is not known has to turn out to be m, because only a size that a type knows to be 1
			// broadcasts.
			case n == 1 || n == Unknown:
				s.shape[d] = m
			case m != Unknown:
				return s, &Error{"", k + 1, fmt.Sprintf("is a %v, whose dimension %d does not fit the size %d before it", v.Type(), d, n)}
			}
		}
	}
	return s, nil
}

// runtimeShape finds the shape of the result of an element-wise op. Only dimensions whose type says
// size 1 broadcast.
func runtimeShape(op fgraph.Op, shape []int, specs []spec, in []*array.Array) error {
	for d := range shape {
		shape[d] = 1
		first := -1
		for i := range specs {
			// By type, not by what the size is in this run: gradients and shapes were made for what the types
			// say.
			if specs[i].shape[d] == 1 {
				continue
			}
			switch n := in[i].Dim(d); {
			case first < 0:
				first, shape[d] = i, n
			case n != shape[d]:
				return fmt.Errorf("%w: %v: argument %d has size %d in dimension %d, argument %d has size %d", ErrShape, op, i+1, n, d, first+1, shape[d])
			}
		}
	}
	return nil
}

// pad gives the arguments the same number of dimensions, by new ones of size 1 in front.
func pad(in []*fgraph.Variable) []*fgraph.Variable {
	most, alike := 0, true
	for _, v := range in {
		n := TypeOf(v).NDim()
		alike = alike && (most == 0 || n == most)
		most = max(most, n)
	}
	if len(in) == 0 || alike && TypeOf(in[0]).NDim() == most {
		return in
	}
	return lists.Map(in, func(v *fgraph.Variable) *fgraph.Variable { return PadLeft(v, most) })
}

// PadLeft returns v with new dimensions of size 1 in front, so that it has ndim of them.
func PadLeft(v *fgraph.Variable, ndim int) *fgraph.Variable {
	n := TypeOf(v).NDim()
	if n >= ndim {
		return v
	}
	// Done now, so that rules find a constant in place of a view of one. A name would be lost by that.
	if a := ConstantOf(v); a != nil && v.Name() == "" {
		var shape [array.MaxDims]int
		for i := range ndim - n {
			shape[i] = 1
		}
		copy(shape[ndim-n:], a.Shape())
		return Constant(a.Reshape(shape[:ndim]...))
	}
	order := make([]int, ndim)
	for i := range order {
		order[i] = i - (ndim - n)
		if order[i] < 0 {
			order[i] = array.NewAxis
		}
	}
	return DimShuffle(v, order...)
}

// unbroadcast sums g over the dimensions along which x was broadcast to the shape of g.
func unbroadcast(g, x *fgraph.Variable) *fgraph.Variable {
	gt, xt := TypeOf(g), TypeOf(x)
	pad := gt.NDim() - xt.NDim()
	var sum []int
	order := make([]int, xt.NDim())
	next := 0
	for d := range gt.NDim() {
		switch {
		case d < pad:
			sum = append(sum, d)
		// If both have size 1 there is nothing to sum.
		case xt.Dim(d-pad) == 1 && gt.Dim(d) != 1:
			sum = append(sum, d)
			order[d-pad] = array.NewAxis
		default:
			order[d-pad] = next
			next++
		}
	}
	if len(sum) > 0 {
		g = Sum(g, sum...)
	}
	return DimShuffle(g, order...)
}
