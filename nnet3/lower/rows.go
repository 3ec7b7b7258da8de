package lower

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Port is one input or output of a Program.
type Port struct {
	Node      int32 // the network node whose matrix it is, or -1 for a state
	Component int32 // the component whose state it is, or -1 for a matrix
	Carried   int32 // the matrix of the computation that another segment hands over or takes over, or 0
	At        int32 // the number of the command that accepts or provides the matrix
}

// seam reports whether the matrix stays in memory between the port and another segment. In a
// divided chain it does not: the port is that of a node.
func (p Port) seam() bool { return p.Carried > 0 && p.Node < 0 }

// IsMatrix reports whether the port is a matrix and not a state.
func (p Port) IsMatrix() bool { return p.Component < 0 }

// commandRows says what the rows of the operands of a command stand for: the matrix of a port; the
// output of a Propagate; or the derivatives of the output and the input of a Backprop.
type commandRows struct {
	at        int32
	command   rowsOf
	component int32 // of a Propagate or Backprop
	rows      [2]computation.MatrixDebugInfo
}

type rowsOf uint8

const (
	rowsOfPort rowsOf = iota
	rowsOfPropagate
	rowsOfBackprop
)

// HasRows reports whether the program knows the meaning of the rows of matrices, that is, whether
// the computation was compiled with debug information (compile.Options.DebugInfo).
func (p *Program) HasRows() bool { return p.hasRows }

// PortRows returns the meaning of the rows of an input or output, empty if unknown.
func (p *Program) PortRows(port Port) computation.MatrixDebugInfo {
	if !port.IsMatrix() || port.Carried > 0 {
		return computation.MatrixDebugInfo{}
	}
	return p.rowsAt(port.At, rowsOfPort, 0)[0]
}

// OutputRows returns the meaning of the rows that a Propagate makes. It is nil if unknown: the
// program must have rows, and the Propagate must be as the compiler made it.
func (p *Program) OutputRows(a *fgraph.Apply) []index.Cindex {
	op, ok := a.Op().(Propagate)
	if !ok {
		return nil
	}
	return known(p.rowsAt(int32(a.Origin()), rowsOfPropagate, op.Number)[0], a.Out(), false)
}

// DerivRows returns the meaning of the rows of the derivative that a Backprop reads, and of the
// derivative that it makes, if any. They are nil if unknown: the program must have rows, and the
// Backprop must be as the compiler made it.
func (p *Program) DerivRows(a *fgraph.Apply) (output, input []index.Cindex) {
	op, ok := a.Op().(Backprop)
	if !ok {
		return nil, nil
	}
	rows := p.rowsAt(int32(a.Origin()), rowsOfBackprop, op.Number)
	if op.HasDX {
		input = known(rows[1], a.Out(), true)
	}
	return known(rows[0], a.Inputs()[op.InputDeriv()], true), input
}

// rowsAt returns the rows of the command of that number, if it is as expected.
func (p *Program) rowsAt(at int32, command rowsOf, component int32) (rows [2]computation.MatrixDebugInfo) {
	i, ok := slices.BinarySearchFunc(p.rows, at, func(r commandRows, at int32) int { return cmp.Compare(r.at, at) })
	if !ok || p.rows[i].command != command || p.rows[i].component != component {
		return rows
	}
	return p.rows[i].rows
}

// known returns the indexes of the rows of v, or nil if they are those of something else.
func known(info computation.MatrixDebugInfo, v *fgraph.Variable, deriv bool) []index.Cindex {
	if info.IsDeriv != deriv || len(info.Cindexes) != int(TypeOf(v).Rows) {
		return nil
	}
	return info.Cindexes
}

// noteRows records what the rows of the operands of the present command stand for.
func (l *lowering) noteRows(command rowsOf, component int32, subs ...int32) {
	if !l.prog.hasRows {
		return
	}
	r := commandRows{at: l.at, command: command, component: component}
	for i, sub := range subs {
		s := l.c.Submatrices[sub]
		info := l.c.MatrixDebugInfo[s.Matrix]
		if end := int(s.RowOffset + s.NumRows); sub != 0 && end <= len(info.Cindexes) {
			info.Cindexes = info.Cindexes[s.RowOffset:end]
			r.rows[i] = info
		}
	}
	l.prog.rows = append(l.prog.rows, r)
}

// ReplaceOutputs replaces output i of the graph with values[i], unless that is nil. Other readers
// of the old values keep them. The replaced outputs become the last ones.
func (p *Program) ReplaceOutputs(values []*fgraph.Variable, why fgraph.Reason) error {
	for i, v := range values {
		if v == nil {
			continue
		}
		if err := p.Graph.AddOutput(v, why); err != nil {
			return err
		}
		p.Outputs = append(p.Outputs, p.Outputs[i])
	}
	for i, v := range slices.Backward(values) {
		if v == nil {
			continue
		}
		if err := p.Graph.RemoveOutput(i, why); err != nil {
			return err
		}
		p.Outputs = slices.Delete(p.Outputs, i, i+1)
	}
	return nil
}

// rowGroup is the rows of a multi-row command that concern one sub-matrix: Dst is a row of the
// command's own view, Src a row of the sub-matrix.
type rowGroup struct {
	sub  int32
	size int
	rows []RowPair
}

// groupPairs returns the groups in the order of their first rows.
func (l *lowering) groupPairs(pairs []computation.Pair) []rowGroup {
	l.groups = l.groups[:0]
	l.eachGroup(pairs, func(g int, _ RowPair) { l.groups[g].size++ })
	for g := range l.groups {
		l.groups[g].rows = l.room(l.groups[g].size)
	}
	l.eachGroup(pairs, func(g int, p RowPair) { l.groups[g].rows = append(l.groups[g].rows, p) })
	return l.groups
}

// eachGroup calls f for every row with its group, which it makes if there is none.
func (l *lowering) eachGroup(pairs []computation.Pair, f func(group int, p RowPair)) {
	last := 0
	for i, p := range pairs {
		if p[0] < 0 {
			continue
		}
		if last >= len(l.groups) || l.groups[last].sub != p[0] {
			last = slices.IndexFunc(l.groups, func(g rowGroup) bool { return g.sub == p[0] })
			if last < 0 {
				last = len(l.groups)
				l.groups = append(l.groups, rowGroup{sub: p[0]})
			}
		}
		f(last, RowPair{int32(i), p[1]})
	}
}

// room returns memory for n pairs of rows, which becomes part of the graph.
func (l *lowering) room(n int) []RowPair {
	if cap(l.pairs)-len(l.pairs) < n {
		l.pairs = make([]RowPair, 0, max(n, 1<<10))
	}
	end := len(l.pairs) + n
	rows := l.pairs[len(l.pairs):len(l.pairs):end]
	l.pairs = l.pairs[:end]
	return rows
}
