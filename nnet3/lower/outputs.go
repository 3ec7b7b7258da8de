package lower

import "github.com/nnopt/nnopt/fgraph"

// separateOutputs gives every matrix that leaves the program a value that can leave: a copy, where the output is only a part
// of a value, or where the value would have to be in two places at once. The rewrites would undo that, so it is done when
// the storage is planned.
func separateOutputs(p *Program) error {
	why := fgraph.Reason{Pass: "plan_storage", Rule: "separate_outputs"}
	o := departures{given: make(map[*fgraph.Variable]bool), leaves: make(map[*fgraph.Variable]Port)}
	for i, v := range p.Graph.Inputs() {
		o.given[v] = p.Inputs[i].Carried > 0
	}
	var order []int
	for i, port := range p.Outputs {
		if port.Carried > 0 {
			order = append(order, i) // the first, because it may find its place in the matrix that the round before left
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

// departures knows which values leave a program, and which another segment hands over to it.
type departures struct {
	given  map[*fgraph.Variable]bool
	leaves map[*fgraph.Variable]Port
}

// permit reports whether v itself can leave through the port, and notes that it does. The caller may get a value twice, but
// not one that is handed on as well, nor one that was handed over, whose place the next round of a loop takes for another.
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
