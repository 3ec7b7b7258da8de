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
	op := Propagate{Component: l.component(cmd.Component()), Precomputed: l.precomputed(cmd.Precomputed()), StoreStats: cmd.StoresStats(), UsesMemo: cmd.Memo() > 0}
	if op.has(component.Random) || op.UsesMemo || op.StoreStats {
		op.instance = l.instance
		l.instance++
	}
	inputs := make([]*fgraph.Variable, 0, 2)
	if cmd.Input() != 0 {
		inputs = append(inputs, l.read(cmd.Input()))
	}
	m, r := l.view(cmd.Output())
	outs := []fgraph.Type{sizeOf(r)}
	if op.UsesMemo {
		outs = append(outs, MemoType{cmd.Component()})
	}
	if op.StoreStats {
		inputs = append(inputs, l.state(cmd.Component()))
		outs = append(outs, StateType{cmd.Component()})
	}
	a := l.apply(op, inputs, outs...)
	if !op.has(component.PropagateAdds) || cmd.Input() == cmd.Output() {
		l.pieces.cut(m, r)
	}
	l.put(m, r, a.Out())
	if op.UsesMemo {
		l.memos = append(l.memos, make([]*fgraph.Variable, max(int(cmd.Memo())+1-len(l.memos), 0))...)
		l.memos[cmd.Memo()] = a.Outputs()[1]
	}
	if op.StoreStats {
		l.states[cmd.Component()] = a.Outputs()[len(outs)-1]
	}
}

func (l *lowering) backprop(cmd *computation.Command) {
	comp := l.component(cmd.Component())
	op := Backprop{
		Component: comp, Precomputed: l.precomputed(cmd.Precomputed()),
		hasX: cmd.Input() != 0, HasY: cmd.Output() != 0, HasDX: cmd.InputDeriv() != 0, UsesMemo: cmd.Memo() > 0,
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
	for _, sub := range [...]int32{cmd.Input(), cmd.Output(), cmd.OutputDeriv()} {
		if sub != 0 {
			inputs = append(inputs, l.read(sub))
		}
	}
	if op.UsesMemo {
		inputs = append(inputs, l.memos[cmd.Memo()])
	}
	m, r := l.view(cmd.InputDeriv())
	var outs []fgraph.Type
	if op.HasDX {
		outs = append(outs, sizeOf(r))
	}
	if op.HasState {
		inputs = append(inputs, l.state(cmd.Component()))
		outs = append(outs, StateType{cmd.Component()})
	}
	a := l.apply(op, inputs, outs...)
	if op.HasDX {
		if !comp.has(component.BackpropAdds) || cmd.OutputDeriv() == cmd.InputDeriv() {
			l.pieces.cut(m, r)
		}
		l.put(m, r, a.Out())
	}
	if op.HasState {
		l.states[cmd.Component()] = a.Outputs()[len(outs)-1]
	}
}
