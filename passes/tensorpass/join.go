package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

var onJoin = []rewrite.Track{rewrite.TrackType[tensor.JoinOp]()}

// joinOne is local_join_1.
func joinOne() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_join_1", Doc: "one tensor is joined already: join(0, x) → x", On: onJoin, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if len(n.Inputs()) != 1 {
				return c.Miss("there are several tensors"), nil
			}
			return replace(c, n, n.Inputs()[0])
		},
	}
}

// joinEmpty is local_join_empty.
func joinEmpty() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_join_empty", Doc: "tensors without elements are not joined: join(0, x, zeros(0)) → x", On: onJoin, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			axis := int(n.Op().(tensor.JoinOp).Axis)
			var rest []*vari
			for _, v := range n.Inputs() {
				if typ(v).Dim(axis) != 0 {
					rest = append(rest, v)
				}
			}
			if len(rest) == len(n.Inputs()) || len(rest) == 0 {
				return c.Miss("no tensor, or every one, is known to be empty"), nil
			}
			return replace(c, n, tensor.Join(axis, rest...))
		},
	}
}

// joinMakeVector is local_join_make_vector.
func joinMakeVector() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_join_make_vector", Doc: "vectors that are put together are put together at once: join(0, [a, b], [c]) → [a, b, c]", On: onJoin, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			var joined []*vari
			for _, v := range n.Inputs() {
				a, op, ok := owner[tensor.MakeVectorOp](v)
				if ok && len(joined) > 0 {
					if b, _, ok := owner[tensor.MakeVectorOp](joined[len(joined)-1]); ok {
						elements := append(append([]*vari{}, b.Inputs()...), a.Inputs()...)
						joined[len(joined)-1] = tensor.MustApply(op, elements...)
						continue
					}
				}
				joined = append(joined, v)
			}
			if len(joined) == len(n.Inputs()) {
				return c.Miss("no two neighbours are MakeVectors"), nil
			}
			if len(joined) == 1 {
				return replace(c, n, joined[0])
			}
			return replace(c, n, tensor.Join(0, joined...))
		},
	}
}
