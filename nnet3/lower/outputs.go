package lower

import "github.com/nnopt/nnopt/fgraph"

// separateOutputs makes every matrix that leaves the program a value that can leave. It copies an
// output that is only part of a value, or that would have to be in two places at once. Rewrites
// would undo that, so it happens when the storage is planned.
func separateOutputs(p *Program) error {
	given := make(map[*fgraph.Variable]bool) // whether another segment hands the value over
	for i, v := range p.Graph.Inputs() {
		given[v] = p.Inputs[i].seam()
	}
	leaves := make(map[*fgraph.Variable]Port)
	// permit reports whether v itself can leave through the port, and records that it does. The
	// caller may get a value twice, but not one that the next segment gets, too, nor one that was
	// handed over, because the next iteration of a loop reuses its place.
	permit := func(v *fgraph.Variable, port Port) bool {
		root, _ := Resolve(v)
		other, again := leaves[v]
		if root != v || again && (port.seam() || other.seam()) || !port.seam() && given[v] {
			return false
		}
		leaves[v] = port
		return true
	}
	var order []int
	for i, port := range p.Outputs {
		if port.seam() {
			order = append(order, i) // first, because it may live in the matrix that the previous iteration left
		}
	}
	for i, port := range p.Outputs {
		if !port.seam() && port.IsMatrix() {
			order = append(order, i)
		}
	}
	copies := make([]*fgraph.Variable, len(p.Outputs))
	for _, i := range order {
		v, port := p.Graph.Outputs()[i], p.Outputs[i]
		if permit(v, port) {
			continue
		}
		root, r := Resolve(v)
		t := TypeOf(v)
		term := Term{Scale: 1, SrcRow: r.R0, NumRows: t.Rows, SrcCol: r.C0, NumCols: t.Cols, At: port.At}
		copies[i] = NewAssemble(t.Rows, t.Cols, []Term{term}, []*fgraph.Variable{root})
		copies[i].Owner().SetOrigin(int(port.At))
	}
	return p.ReplaceOutputs(copies, fgraph.Reason{Pass: "plan_storage", Rule: "separate_outputs"})
}
