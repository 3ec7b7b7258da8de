package exec

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// A product fetches the beginning of the weights that the next product reads while it computes, so that
// those of networks, which take turns in the caches, are there when they are needed. What an op prepares
// at its first call is known to nobody else, so a runner learns it: in the first call, products tell what
// they multiply by.

// announce tells a workspace what the product after step i reads, or lets it note what step i does.
func (r *Runner) announce(ws *array.Workspace, i int) {
	if r.next != nil {
		ws.Next = r.next[i]
	} else {
		ws.Met = &r.met[i]
	}
}

// planPrefetch finds for each step what the next product reads. Steps that were not needed have met nothing.
func (r *Runner) planPrefetch() {
	var next []*kernel.Weights
	for i, met := range slices.Backward(r.met) {
		if r.met[i] = next; met != nil {
			next = met
		}
	}
	r.next, r.met = r.met, nil
}
