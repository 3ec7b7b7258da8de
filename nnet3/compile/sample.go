package compile

import (
	"context"
	"errors"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Bounds of a sample. Smaller requests than largeRequest, in outputs times nodes, take less than a
// gigabyte and are told all that they lack. A graph of sampleRows rows takes some milliseconds.
const (
	largeRequest  = 1 << 22
	sampleOutputs = 9
	sampleRows    = 1 << 16
)

// checkSample tries a few rows of each output of a request that may need a very large graph, and
// returns why one can't be computed. It returns nil if they can be, if it does not find out at
// little cost, or if the request is small.
func (net *network) checkSample(ctx context.Context, req *computation.Request) error {
	if countRows(req.Outputs)*len(net.nodes) <= largeRequest {
		return nil
	}
	// The builder goes from all outputs backward, hop by hop. If the inputs don't suffice, it finds
	// out at the last hop, with a row of every node for every output in memory: a request of a line
	// would take gigabytes before it is refused. Inputs that are too short or have gaps fail almost
	// all outputs alike, so a few tell. Sequences don't depend on each other, so one is enough.
	n := req.Outputs[0].Indexes[0].N
	small := &computation.Request{
		Inputs:  filterRows(req.Inputs, func(ix index.Index) bool { return ix.N == n }),
		Outputs: filterRows(req.Outputs, func(ix index.Index) bool { return ix.N == n }),
	}
	for i := range small.Outputs {
		o := &small.Outputs[i]
		if rows := o.Indexes; len(rows) > sampleOutputs {
			o.Indexes = make([]index.Index, sampleOutputs)
			for k := range o.Indexes {
				o.Indexes[k] = rows[k*(len(rows)-1)/(sampleOutputs-1)]
			}
		}
	}
	b := newBuilder(net, 1, newLimits(Options{MaxCindexes: countRows(small.Inputs) + sampleRows}, 0, 0, len(net.nodes)), 1<<8)
	b.interrupt.ctx = ctx
	var missing *NotComputableError
	if err := b.buildSegment(&segment{request: small}, lanes{0}); !errors.As(err, &missing) {
		return nil // any other fault is found again, and reported for the whole request
	}
	missing.sampled = true
	for i := range missing.Outputs {
		missing.Outputs[i].Of = len(req.Output(missing.Outputs[i].Node).Indexes)
	}
	for i := range missing.Inputs {
		if in := &missing.Inputs[i]; in.Of > 0 {
			in.Of = len(req.Input(in.Node).Indexes)
		}
	}
	return missing
}

// filterRows returns the inputs or outputs with the rows for which keep is true.
func filterRows(specs []computation.IoSpecification, keep func(index.Index) bool) []computation.IoSpecification {
	var kept []computation.IoSpecification
	for _, s := range specs {
		var rows []index.Index
		for _, ix := range s.Indexes {
			if keep(ix) {
				rows = append(rows, ix)
			}
		}
		if s.Indexes = rows; len(rows) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}
