package ir

import (
	"cmp"
	"errors"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// sorted returns nodes in an order in which each comes behind those whose results it uses: the model's own
// if that is one, as ONNX demands. Programs that convert models to half floats, for example, put their
// casts anywhere, and ONNX Runtime sorts them. A name that is visible from around the graph means the value
// there, until a node defines it anew.
func (im *importer) sorted(nodes []*onnx.Node, s *scope) ([]int, error) {
	if len(nodes) == 1 { // as in most branches
		return []int{0}, nil
	}
	order := make([]int, len(nodes))
	maker := make(map[string]int, len(nodes))
	for i, n := range nodes {
		order[i] = i
		for _, name := range n.Outputs {
			if _, taken := maker[name]; name != "" && !taken {
				maker[name] = i
			}
		}
	}
	makers := func(i int) (list []int) {
		for _, name := range im.uses.Of(nodes[i]) {
			if k, ok := maker[name]; ok && !s.sees(name) {
				list = append(list, k)
			}
		}
		return list
	}
	early := func(i int) bool {
		return slices.ContainsFunc(im.uses.Of(nodes[i]), func(name string) bool { return maker[name] > i && !s.sees(name) })
	}
	// Nearly all models are in order, and keep the one that they have.
	if !slices.ContainsFunc(order, early) {
		return order, nil
	}
	im.source.unsorted = true
	var circle error
	order = onnx.DepthFirst(order, makers, func(path []int) {
		circle = cmp.Or(circle, errors.New(whereOf(path[0], nodes[path[0]])+" depends on its own results"))
	})
	return order, circle
}
