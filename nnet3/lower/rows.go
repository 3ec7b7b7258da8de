package lower

import (
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

// IsMatrix reports whether the port is a matrix and not a state.
func (p Port) IsMatrix() bool { return p.Component < 0 }

// HasRows reports whether the program knows the meaning of the rows of matrices, that is, whether
// the computation was compiled with debug information (compile.Options.DebugInfo).
func (p *Program) HasRows() bool { return len(p.source.MatrixDebugInfo) > 0 }

// PortRows returns the meaning of the rows of an input or output, empty if unknown.
func (p *Program) PortRows(port Port) computation.MatrixDebugInfo {
	if !port.IsMatrix() || port.Carried > 0 {
		return computation.MatrixDebugInfo{}
	}
	return p.rows(p.source.Commands[port.At].Arg1)
}

// OutputRows returns the meaning of the rows that a Propagate makes. It is nil if unknown: the
// program must have rows, and the Propagate must be as the compiler made it.
func (p *Program) OutputRows(a *fgraph.Apply) []index.Cindex {
	op, ok := a.Op().(Propagate)
	cmd := p.commandOf(a)
	if !ok || cmd.Type != computation.Propagate || cmd.Arg1 != op.Number {
		return nil
	}
	return p.rowsOf(cmd.Arg4, a.Out(), false)
}

// DerivRows returns the meaning of the rows of the derivative that a Backprop reads, and of the
// derivative that it makes, if any. They are nil if unknown: the program must have rows, and the
// Backprop must be as the compiler made it.
func (p *Program) DerivRows(a *fgraph.Apply) (output, input []index.Cindex) {
	op, ok := a.Op().(Backprop)
	cmd := p.commandOf(a)
	if !ok || !cmd.Type.IsBackprop() || cmd.Arg1 != op.Number {
		return nil, nil
	}
	if op.HasDX {
		input = p.rowsOf(cmd.Arg6, a.Out(), true)
	}
	return p.rowsOf(cmd.Arg5, a.Inputs()[op.InputDeriv()], true), input
}

// commandOf returns the command that an apply comes from, a zero Command for none.
func (p *Program) commandOf(a *fgraph.Apply) computation.Command {
	if i := a.Origin(); i >= 0 && i < len(p.source.Commands) {
		return p.source.Commands[i]
	}
	return computation.Command{}
}

// rowsOf returns the meaning of the rows of operand v, a sub-matrix of the computation.
func (p *Program) rowsOf(sub int32, v *fgraph.Variable, deriv bool) []index.Cindex {
	info := p.rows(sub)
	if info.IsDeriv != deriv || len(info.Cindexes) != int(TypeOf(v).Rows) {
		return nil
	}
	return info.Cindexes
}

func (p *Program) rows(sub int32) computation.MatrixDebugInfo {
	s := p.source.Submatrices[sub]
	if p.HasRows() {
		info := p.source.MatrixDebugInfo[s.Matrix]
		if end := int(s.RowOffset + s.NumRows); end <= len(info.Cindexes) {
			info.Cindexes = info.Cindexes[s.RowOffset:end]
			return info
		}
	}
	return computation.MatrixDebugInfo{}
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
