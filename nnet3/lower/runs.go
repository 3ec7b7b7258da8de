package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// component returns the component that a command names by number.
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

// state returns the present state of a component. It begins as an input of the graph.
func (l *lowering) state(number int32) *fgraph.Variable {
	if l.states[number] == nil {
		l.states[number] = l.input(Port{Node: -1, Component: number}, StateType{number}, fmt.Sprintf("state%d", number))
	}
	return l.states[number]
}

func (l *lowering) propagate(cmd *computation.Command) {
	op := Propagate{Component: l.component(cmd.Arg1), Precomputed: l.precomputed(cmd.Arg2), StoreStats: cmd.Arg6 == 1, UsesMemo: cmd.Arg5 > 0}
	if op.has(component.Random) || op.UsesMemo || op.StoreStats {
		op.Instance = l.instance
		l.instance++
	}
	inputs := make([]*fgraph.Variable, 0, 2)
	if cmd.Arg3 != 0 {
		inputs = append(inputs, l.read(cmd.Arg3))
	}
	m, r := l.view(cmd.Arg4)
	outs := []fgraph.Type{sizeOf(r)}
	if op.UsesMemo {
		outs = append(outs, MemoType{cmd.Arg1})
	}
	if op.StoreStats {
		inputs = append(inputs, l.state(cmd.Arg1))
		outs = append(outs, StateType{cmd.Arg1})
	}
	a := l.apply(op, inputs, outs...)
	if !op.has(component.PropagateAdds) || cmd.Arg3 == cmd.Arg4 {
		l.pieces.cut(m, r)
	}
	l.put(m, r, a.Out())
	if op.UsesMemo {
		l.memos = append(l.memos, make([]*fgraph.Variable, max(int(cmd.Arg5)+1-len(l.memos), 0))...)
		l.memos[cmd.Arg5] = a.Outputs()[1]
	}
	if op.StoreStats {
		l.states[cmd.Arg1] = a.Outputs()[len(outs)-1]
	}
}

func (l *lowering) backprop(cmd *computation.Command) {
	comp := l.component(cmd.Arg1)
	op := Backprop{
		Component: comp, Precomputed: l.precomputed(cmd.Arg2),
		HasX: cmd.Arg3 != 0, HasY: cmd.Arg4 != 0, HasDX: cmd.Arg6 != 0, UsesMemo: cmd.Arg7 > 0,
		ModelUpdate: cmd.Type == computation.Backprop,
	}
	updates := op.ModelUpdate && l.c.NeedModelDerivative && comp.has(component.Updatable)
	// A component that stores statistics of its backward pass has a state, too.
	op.HasState = updates || (op.ModelUpdate && comp.has(component.StoresStats) && !comp.has(component.Updatable))
	if op.HasState || op.UsesMemo || comp.has(component.Random) {
		op.Instance = l.instance
		l.instance++
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
	m, r := l.view(cmd.Arg6)
	var outs []fgraph.Type
	if op.HasDX {
		outs = append(outs, sizeOf(r))
	}
	if op.HasState {
		inputs = append(inputs, l.state(cmd.Arg1))
		outs = append(outs, StateType{cmd.Arg1})
	}
	a := l.apply(op, inputs, outs...)
	if op.HasDX {
		if !comp.has(component.BackpropAdds) || cmd.Arg5 == cmd.Arg6 {
			l.pieces.cut(m, r)
		}
		l.put(m, r, a.Out())
	}
	if op.HasState {
		l.states[cmd.Arg1] = a.Outputs()[len(outs)-1]
	}
}
