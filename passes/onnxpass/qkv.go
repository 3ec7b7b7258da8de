package onnxpass

import (
	"context"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/hugepages"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// maxJoined bounds the bytes of weights that are joined. Joined weights are new ones, beside those in
// the file: of a large model they would take as much memory again.
const maxJoined = 16 << 20

// FuseQKV returns the pass fuse_qkv: products of one value with several constant matrices, such as the
// queries, keys and values of attention, are one product with all of them, which is split. Terms that
// follow each of them are joined as well.
func FuseQKV() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "fuse_qkv", Doc: "Products of one value with several matrices of constants, and terms that follow, are one product, which is split.",
		Fn: func(ctx context.Context, h *rewrite.Handle) error {
			applies, err := h.Graph().Toposort()
			if err != nil {
				return err
			}
			for _, a := range applies {
				if err := ctx.Err(); err != nil {
					return err
				}
				// The first product with the value stands for all of them.
				if h.Graph().Contains(a) && isProjection(a) {
					if err := fuseProjections(h, a); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// A projection is a product with constant weights, and a constant term that follows.
type projection struct {
	out  *fgraph.Variable // the result, with the term
	w, b *fgraph.Variable
	n    int64 // columns
}

// isProjection reports whether an apply is a product with a constant matrix.
func isProjection(a *fgraph.Apply) bool {
	if !isNode(a, "MatMul") || ir.TypeOf(a.Inputs()[0]).Rank() < 2 {
		return false
	}
	t := ir.TypeOf(a.Inputs()[1])
	dims, known := t.Numbers()
	return known && len(dims) == 2 && dims[0] > 0 && dims[1] > 0 && t.Elem().Bits() >= 8 && ir.ValueOf(a.Inputs()[1]) != nil
}

// projections returns the products of the first input of a, if the first is a: those that are
// followed by a term, or all of them if none is.
func projections(a *fgraph.Apply) []projection {
	var with, without []projection
	for _, c := range a.Inputs()[0].Clients() {
		if c.Apply == nil || c.Index != 0 || !isProjection(c.Apply) {
			continue
		}
		if len(with)+len(without) == 0 && c.Apply != a {
			return nil
		}
		p := projection{out: c.Apply.Out(), w: c.Apply.Inputs()[1]}
		dims, _ := ir.TypeOf(p.w).Numbers()
		p.n = dims[1]
		if sum := termOf(c.Apply, p.n); sum != nil {
			p.out, p.b = sum.Out(), sum.Inputs()[0]
			if ir.ValueOf(p.b) == nil {
				p.b = sum.Inputs()[1]
			}
			with = append(with, p)
		} else {
			without = append(without, p)
		}
	}
	if len(with) > 1 {
		return with
	}
	return without
}

// termOf returns the only reader of a product, if it adds a constant vector of n elements.
func termOf(a *fgraph.Apply, n int64) *fgraph.Apply {
	clients := a.Out().Clients()
	if len(clients) != 1 || clients[0].Apply == nil {
		return nil
	}
	sum := clients[0].Apply
	if !isNode(sum, "Add") {
		return nil
	}
	b := sum.Inputs()[1-clients[0].Index]
	dims, known := ir.TypeOf(b).Numbers()
	if ir.ValueOf(b) == nil || !known || len(dims) != 1 || dims[0] != n {
		return nil
	}
	return sum
}

// fuseProjections replaces the products with a value, a being the first of them, if that leaves fewer
// nodes.
func fuseProjections(h *rewrite.Handle, a *fgraph.Apply) error {
	list := projections(a)
	if len(list) < 2 || list[0].b == nil && len(list) < 3 {
		return nil // two products, or a product and a split
	}
	t := ir.TypeOf(list[0].w)
	dims, _ := t.Numbers()
	weights, terms := make([]*fgraph.Variable, len(list)), make([]*fgraph.Variable, len(list))
	total, sizes := int64(0), make([]int64, len(list))
	for i, p := range list {
		if ir.TypeOf(p.w).Elem() != t.Elem() {
			return nil
		}
		weights[i], terms[i], sizes[i] = p.w, p.b, p.n
		total += p.n
	}
	if total*dims[0]*int64(t.Elem().Bits())/8 > maxJoined {
		return nil
	}
	w, err := joinColumns(weights, dims[0], total)
	if err != nil {
		return nil // elements that can't be read are the fault of who needs them
	}
	operators := ir.SourceOf(h.Graph()).Operators
	x, err := operators.Make("MatMul", nil, a.Inputs()[0], w)
	// Terms are joined as well, or there would be an Add behind each part.
	if err == nil && terms[0] != nil {
		var b *fgraph.Variable
		if b, err = joinColumns(terms, 1, total); err == nil {
			x, err = operators.Make("Add", nil, x, b)
		}
	}
	if err != nil {
		return nil
	}
	op, err := operators.ParseOp(fmt.Sprintf("Split/%d{axis=%d}", len(list), ir.TypeOf(x).Rank()-1))
	if err != nil {
		return err
	}
	split, err := operators.Apply(op, x, ir.Int64s(sizes...))
	if err != nil {
		return nil
	}
	pairs := make([]fgraph.Replacement, len(list))
	for i, p := range list {
		pairs[i] = fgraph.Replacement{Old: p.out, New: split.Outputs()[i]}
	}
	_, err = h.Replace("", a, pairs...)
	return err
}

// joinColumns returns a constant with the columns of matrices of as many rows, or of vectors.
func joinColumns(list []*fgraph.Variable, rows, columns int64) (*fgraph.Variable, error) {
	var parts [][]byte
	size := 0
	t := ir.TypeOf(list[0])
	for _, v := range list {
		data, err := ir.ValueOf(v).Bytes()
		if err != nil {
			return nil, err
		}
		parts, size = append(parts, data), size+len(data)
	}
	joined := hugepages.Make[byte](size)[:0]
	// Rows of all matrices lie beside each other, since columns are joined.
	for r := range rows {
		for _, data := range parts {
			row := int64(len(data)) / rows
			joined = append(joined, data[r*row:][:row]...)
		}
	}
	shape := []int64{rows, columns}
	if t.Rank() == 1 {
		shape = shape[1:]
	}
	names := lists.Map(list, (*fgraph.Variable).Name)
	return constantOf(strings.Join(names, "+"), t.Elem(), joined, shape...)
}

// constantOf returns a constant with elements as a file has them.
func constantOf(name string, elem onnx.DataType, data []byte, dims ...int64) (*fgraph.Variable, error) {
	x, err := onnx.NewTensor(name, elem, dims, data)
	if err != nil {
		return nil, err
	}
	return ir.Constant(ir.NewValue(x, ""), ""), nil
}
