package pipeline_test

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// request draws a request: outputs at some times of some sequences, sufficient inputs, and perhaps
// derivatives of either.
func (n *network) request(nn *nnet3.Nnet) (*computation.Request, error) {
	left, right, err := compile.Context(nn, n.outputs...)
	if err != nil {
		return nil, err
	}
	req := new(computation.Request)
	if n.wide { // the second operand of Failover may need more context, and a window may be one-sided
		left, right = left+10, right+10
	}
	first, sequences, step := n.between(0, 2), n.between(1, 4), 1
	if n.chance(3) {
		first = n.between(-20, 20)
	}
	if n.chance(4) {
		step = n.between(2, 3)
	}
	firstN, byTime := n.between(0, 1), n.chance(4)
	end := first + n.between(1, n.frames)
	extraLeft, extraRight := n.between(0, 1)*n.between(0, 6), n.between(0, 1)*n.between(0, 6)
	uneven := sequences > 1 && n.chance(5)
	rows := func(first, end, step, longer int) []index.Index {
		var list []index.Index
		for s := range sequences {
			last := end
			if uneven && s == 0 {
				last += longer
			}
			for t := first; t < last; t += step {
				list = append(list, index.Index{N: int32(firstN + s), T: int32(t)})
			}
		}
		if byTime {
			slices.SortStableFunc(list, index.Compare)
		}
		return list
	}
	for i := range nn.Nodes {
		if !nn.IsInputNode(i) {
			continue
		}
		spec := computation.IoSpecification{Name: nn.Nodes[i].Name}
		if spec.Name == "ivector" {
			spec.Indexes = rows(0, 1, 1, 0)
		} else {
			spec.Indexes = rows(first-left-extraLeft, end+right+extraRight, 1, 3)
		}
		req.Inputs = append(req.Inputs, spec)
	}
	for _, name := range n.outputs {
		spec := computation.IoSpecification{Name: name, Indexes: rows(first, end, step, 0)}
		if len(n.outputs) > 1 && n.chance(3) { // each output at times of its own
			own := n.between(first, end-1)
			spec.Indexes = rows(own, n.between(own+1, end), n.between(1, 3), 0)
		}
		if len(spec.Indexes) > 2 && n.chance(6) { // one row is of no use to anybody
			spec.Indexes = slices.Delete(spec.Indexes, 1, 2)
		}
		req.Outputs = append(req.Outputs, spec)
	}
	n.derivatives(req)
	return req, nil
}

// derivatives asks for derivatives in three of five cases.
func (n *network) derivatives(req *computation.Request) {
	if n.r.IntN(5) < 2 {
		return
	}
	for i := range req.Outputs {
		req.Outputs[i].HasDeriv = i == 0 || !n.chance(3)
	}
	req.NeedModelDerivative = !n.chance(3)
	for i := range req.Inputs {
		req.Inputs[i].HasDeriv = !req.NeedModelDerivative && i == 0 || n.chance(2)
	}
	req.StoreComponentStats = req.NeedModelDerivative && n.chance(2)
}
