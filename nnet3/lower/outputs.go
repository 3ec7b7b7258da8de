package lower

import "github.com/nnopt/nnopt/fgraph"

// separateOutputs makes every matrix that leaves the program a value that can leave. It copies an
// output that is only part of a value, or that would have to be in two places at once. Rewrites
// would undo that, so it happens when the storage is planned.
func separateOutputs(p *Program) error {
	why := fgraph.Reason{Pass: "plan_storage", Rule: "separate_outputs"}
	o := departures{given: make(map[*fgraph.Variable]bool), leaves: make(map[*fgraph.Variable]Port)}
	for i, v := range p.Graph.Inputs() {
		o.given[v] = p.Inputs[i].Carried > 0
	}
	var order []int
	for i, port := range p.Outputs {
		if port.Carried > 0 {
			order = append(order, i) // first, because it may live in the matrix that the previous iteration left
		}
	}
	for i, port := range p.Outputs {
		if port.Carried == 0 && port.IsMatrix() {
			order = append(order, i)
		}
	}
	copies := make([]*fgraph.Variable, len(p.Outputs))
	for _, i := range order {
		v, port := p.Graph.Outputs()[i], p.Outputs[i]
		if o.permit(v, port) {
			continue
		}
		root, r := Resolve(v)
		t := TypeOf(v)
		term := Term{Scale: 1, SrcRow: r.R0, NumRows: t.Rows, SrcCol: r.C0, NumCols: t.Cols, At: port.At}
		copies[i] = NewAssemble(t.Rows, t.Cols, []Term{term}, []*fgraph.Variable{root})
		copies[i].Owner().SetOrigin(int(port.At))
	}
	return p.ReplaceOutputs(copies, why)
}

// departures knows which values leave a program, and which are handed over by another segment.
type departures struct {
	given  map[*fgraph.Variable]bool
	leaves map[*fgraph.Variable]Port
}

// permit reports whether v itself can leave through the port, and records that it does. The caller
// may get a value twice, but not one that is also handed to the next segment, nor one that was
// handed over, because the next iteration of a loop reuses its place.
func (o *departures) permit(v *fgraph.Variable, port Port) bool {
	if root, _ := Resolve(v); root != v {
		return false
	}
	other, leaves := o.leaves[v]
	if leaves && (port.Carried > 0 || other.Carried > 0) || port.Carried == 0 && o.given[v] {
		return false
	}
	o.leaves[v] = port
	return true
}
