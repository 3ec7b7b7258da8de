package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// component resolves a component number of a command.
func (l *lowering) component(number int32) Component {
	if n := int32(l.net.NumComponents()); number >= n {
		c := l.c.Derived[number-n]
		return Component{C: c, Number: -1, Name: c.Type()}
	}
	c, name := l.net.Component(int(number))
	return Component{C: c, Number: number, Name: name}
}

func (l *lowering) precomputed(n int32) *computation.PrecomputedIndexesInfo {
	if n == 0 {
		return nil
	}
	return &l.c.PrecomputedIndexes[n]
}

// state gives the present state of a component, which begins as an input of the graph.
func (l *lowering) state(number int32) *fgraph.Variable {
	for int(number) >= len(l.states) {
		l.states = append(l.states, nil)
	}
	if l.states[number] == nil {
		l.states[number] = l.input(Port{Node: -1, Component: number}, StateType{number}, fmt.Sprintf("state%d", number))
	}
	return l.states[number]
}

// operandType is the type of a matrix that a component writes.
func (l *lowering) operandType(sub int32) MatrixType {
	_, r := l.view(sub)
	return MatrixType{Rows: r.Rows(), Cols: r.Cols()}
}

func (l *lowering) propagate(cmd *computation.Command) {
	op := Propagate{Component: l.component(cmd.Arg1), Precomputed: l.precomputed(cmd.Arg2), StoreStats: cmd.Arg6 == 1, UsesMemo: cmd.Arg5 > 0}
	if op.has(component.Random) || op.UsesMemo || op.StoreStats {
		op.Instance = l.inst
		l.inst++
	}
	inputs := make([]*fgraph.Variable, 0, 2)
	if cmd.Arg3 != 0 {
		inputs = append(inputs, l.read(cmd.Arg3))
	}
	outs := []fgraph.Type{l.operandType(cmd.Arg4)}
	if op.UsesMemo {
		outs = append(outs, MemoType{cmd.Arg1})
	}
	if op.StoreStats {
		inputs = append(inputs, l.state(cmd.Arg1))
		outs = append(outs, StateType{cmd.Arg1})
	}
	a := fgraph.NewApply(op, inputs, outs...)
	a.SetOrigin(int(l.at))
	m, r := l.view(cmd.Arg4)
	if !op.has(component.PropagateAdds) || cmd.Arg3 == cmd.Arg4 {
		l.pieces.cut(m, r)
	}
	l.put(m, r, a.Out())
	if op.UsesMemo {
		l.setMemo(cmd.Arg5, a.Outputs()[1])
	}
	if op.StoreStats {
		l.states[cmd.Arg1] = a.Outputs()[len(outs)-1]
	}
}

func (l *lowering) setMemo(slot int32, v *fgraph.Variable) {
	for int(slot) >= len(l.memos) {
		l.memos = append(l.memos, nil)
	}
	l.memos[slot] = v
}

func (l *lowering) backprop(cmd *computation.Command) {
	comp := l.component(cmd.Arg1)
	op := Backprop{
		Component: comp, Precomputed: l.precomputed(cmd.Arg2),
		HasX: cmd.Arg3 != 0, HasY: cmd.Arg4 != 0, HasDX: cmd.Arg6 != 0, UsesMemo: cmd.Arg7 > 0,
		ModelUpdate: cmd.Type == computation.Backprop,
	}
	updates := op.ModelUpdate && l.c.NeedModelDerivative && comp.has(component.Updatable)
	// Components that are not updatable may keep statistics of their backward pass, so they have a state too.
	op.HasState = updates || (op.ModelUpdate && comp.has(component.StoresStats) && !comp.has(component.Updatable))
	if op.HasState || op.UsesMemo || comp.has(component.Random) {
		op.Instance = l.inst
		l.inst++
	}
	inputs := make([]*fgraph.Variable, 0, 5)
	for _, sub := range [...]int32{cmd.Arg3, cmd.Arg4, cmd.Arg5} {
		if sub != 0 {
			inputs = append(inputs, l.read(sub))
		}
	}
	if op.UsesMemo {
		inputs = append(inputs, l.memos[cmd.Arg7])
	}
	var outs []fgraph.Type
	if op.HasDX {
		outs = append(outs, l.operandType(cmd.Arg6))
	}
	if op.HasState {
		inputs = append(inputs, l.state(cmd.Arg1))
		outs = append(outs, StateType{cmd.Arg1})
	}
	a := fgraph.NewApply(op, inputs, outs...)
	a.SetOrigin(int(l.at))
	if op.HasDX {
		m, r := l.view(cmd.Arg6)
		if !comp.has(component.BackpropAdds) || cmd.Arg5 == cmd.Arg6 {
			l.pieces.cut(m, r)
		}
		l.put(m, r, a.Out())
	}
	if op.HasState {
		l.states[cmd.Arg1] = a.Outputs()[len(outs)-1]
	}
}
