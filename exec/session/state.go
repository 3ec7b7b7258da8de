package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// A State is an output of a run that is an input of the next one: a cache of keys and values, to which each run
// appends, or a recurrent state, which keeps its size.
type State struct{ Output, Input string }

// stateNames are the beginnings of names that exporters give states: of the output, and of the input.
var stateNames = []State{{"present.", "past_key_values."}, {"present_key_values.", "past_key_values."}, {"present_", "past_"}, {"present.", "past."}, {"new_", "old_"}}

// FindStates lists the states of a model by the names that exporters give them: present.0.key is
// past_key_values.0.key in the next run, present_0 is past_0, stateN is state, hn is h, cn is c.
func FindStates(m *onnx.Model) []State {
	inputs := make(map[string]bool)
	for _, in := range m.Graph.Inputs {
		inputs[in.Name] = true
	}
	var states []State
	for _, out := range m.Graph.Outputs {
		names := []string{strings.TrimSuffix(out.Name, "N"), strings.TrimSuffix(out.Name, "n"), strings.TrimSuffix(out.Name, "_out"), strings.TrimPrefix(out.Name, "next_")}
		for _, s := range stateNames {
			if rest, ok := strings.CutPrefix(out.Name, s.Output); ok {
				names = append(names, s.Input+rest)
			}
		}
		for _, name := range names {
			if name != out.Name && inputs[name] {
				states, inputs[name] = append(states, State{out.Name, name}), false
				break
			}
		}
	}
	return states
}

// ErrLimit means that a state would have more positions than Stateful.Limit.
var ErrLimit = errors.New("session: too many positions")

// A Stateful runs a model again and again, with the states of the run before. It begins with states of zeros, which
// have no positions yet where runs append to them. It is for one goroutine; Fork makes another one.
type Stateful struct {
	// Limit bounds the positions of states to which runs append; 0 is none. A run that would go beyond it fails with
	// ErrLimit before it begins.
	Limit int

	s      *Session
	states []State
	values map[string]*array.Array // by input; never changed
	grows  map[string]int          // the axis to which runs append, by input
	batch  map[string][]string     // for a symbol, the inputs that are no states whose first size it is
}

// NewStateful returns what runs the model of a session with states: those that are given, or else those that
// FindStates finds. The error is a lower.ErrInput if the model has no such inputs or outputs, or none are found.
func (s *Session) NewStateful(states ...State) (*Stateful, error) {
	g := s.source.file.Graph
	if len(states) == 0 {
		if states = FindStates(s.source.file); len(states) == 0 {
			return nil, fmt.Errorf("%w: no output has the name of a state; its outputs are %s", lower.ErrInput, namesOf(g.Outputs))
		}
	}
	r := &Stateful{s: s, states: slices.Clone(states), values: make(map[string]*array.Array), grows: make(map[string]int), batch: make(map[string][]string)}
	for _, st := range states {
		if find(g.Outputs, st.Output) == nil {
			return nil, fmt.Errorf("%w: the model has no output %s; it has %s", lower.ErrInput, fileio.Excerpt(st.Output, 0), namesOf(g.Outputs))
		}
		if in := find(g.Inputs, st.Input); in == nil || shapeOf(in) == nil {
			return nil, fmt.Errorf("%w: the model has no input %s that is a tensor of a declared shape; its inputs are %s", lower.ErrInput, fileio.Excerpt(st.Input, 0), namesOf(g.Inputs))
		}
	}
	for _, in := range g.Inputs {
		if shape := shapeOf(in); !r.isState(in.Name) && shape != nil && len(shape.Dims) > 0 && shape.Dims[0].Param != "" {
			r.batch[shape.Dims[0].Param] = append(r.batch[shape.Dims[0].Param], in.Name)
		}
	}
	for _, st := range states {
		for i, d := range shapeOf(find(g.Inputs, st.Input)).Dims {
			if _, known := r.grows[st.Input]; !known && d.Value == nil && r.batch[d.Param] == nil {
				r.grows[st.Input] = i
			}
		}
	}
	return r, nil
}

func find(list []*onnx.ValueInfo, name string) *onnx.ValueInfo {
	if i := slices.IndexFunc(list, func(v *onnx.ValueInfo) bool { return v.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

func namesOf(list []*onnx.ValueInfo) string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = fileio.Excerpt(v.Name, 0)
	}
	return strings.Join(names, ", ")
}

// shapeOf returns the shape that a tensor is declared with, nil if there is none.
func shapeOf(v *onnx.ValueInfo) *onnx.Shape {
	if v.Type == nil || v.Type.Tensor == nil {
		return nil
	}
	return v.Type.Tensor.Shape
}

func (r *Stateful) isState(input string) bool {
	return slices.ContainsFunc(r.states, func(s State) bool { return s.Input == input })
}

// States lists the states.
func (r *Stateful) States() []State { return slices.Clone(r.states) }

// Positions returns how many positions the states have to which runs append.
func (r *Stateful) Positions() int {
	for _, s := range r.states {
		if axis, ok := r.grows[s.Input]; ok && r.values[s.Input] != nil {
			return r.values[s.Input].Dim(axis)
		}
	}
	return 0
}

// Reset goes back to the beginning.
func (r *Stateful) Reset() { clear(r.values) }

// Fork returns another Stateful that goes on from the same states. Neither changes those of the other one.
func (r *Stateful) Fork() *Stateful {
	f := *r
	f.values = maps.Clone(r.values)
	return &f
}

// Run computes the outputs for inputs that are no states, which may also be given: an input then takes the place of
// the state. An attention_mask that is not given has a 1 for each position, and position_ids that are not given count
// the positions, if there are input_ids of shape [batch, positions]. The outputs belong to the caller, but those that
// are states must not be changed.
func (r *Stateful) Run(ctx context.Context, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	all := maps.Clone(inputs)
	for _, s := range r.states {
		if all[s.Input] == nil {
			v, err := r.state(s.Input, inputs)
			if err != nil {
				return nil, err
			}
			all[s.Input] = v
		}
	}
	r.count(all)
	if most := r.Positions() + r.appends(inputs); r.Limit > 0 && most > r.Limit {
		return nil, fmt.Errorf("%w: %d, and there may be %d", ErrLimit, most, r.Limit)
	}
	_, out, err := r.s.Run(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, s := range r.states {
		if out[s.Output] == nil {
			return nil, fmt.Errorf("%w: the output %s has no value", lower.ErrInput, fileio.Excerpt(s.Output, 0))
		}
	}
	for _, s := range r.states {
		r.values[s.Input] = out[s.Output]
	}
	return out, nil
}

// appends returns how many positions a run appends: those of input_ids or, without them, one.
func (r *Stateful) appends(inputs map[string]*array.Array) int {
	if len(r.grows) == 0 {
		return 0
	}
	if ids := inputs["input_ids"]; ids != nil && ids.NDim() == 2 {
		return ids.Dim(1)
	}
	return 1
}

// state returns the value of a state: that of the run before, or zeros.
func (r *Stateful) state(input string, inputs map[string]*array.Array) (*array.Array, error) {
	if v := r.values[input]; v != nil {
		return v, nil
	}
	in := find(r.s.source.file.Graph.Inputs, input)
	var shape []int
	for _, d := range shapeOf(in).Dims {
		n := 0
		if d.Value != nil && *d.Value >= 0 {
			n = int(*d.Value)
		}
		for _, name := range r.batch[d.Param] {
			if a := inputs[name]; a != nil && a.NDim() > 0 {
				n = a.Dim(0)
			}
		}
		shape = append(shape, n)
	}
	a, err := lower.NewArray(in.Type.Tensor.Elem, shape...)
	if err != nil {
		return nil, fmt.Errorf("state %s: %w", fileio.Excerpt(input, 0), err)
	}
	return a, nil
}

// count adds inputs that say where the positions are, if the model has them and they are not given.
func (r *Stateful) count(inputs map[string]*array.Array) {
	ids := inputs["input_ids"]
	if ids == nil || ids.NDim() != 2 {
		return
	}
	batch, n, past := ids.Dim(0), ids.Dim(1), r.Positions()
	add := func(name string, columns int, value func(column int) int64) {
		in := find(r.s.source.file.Graph.Inputs, name)
		if in == nil || inputs[name] != nil || shapeOf(in) == nil || len(shapeOf(in).Dims) != 2 {
			return
		}
		if a, err := lower.NewArray(in.Type.Tensor.Elem, batch, columns); err == nil && !a.DType().IsFloat() {
			for i := range a.Len() {
				a.SetInt(i, value(i%columns))
			}
			inputs[name] = a
		}
	}
	add("attention_mask", past+n, func(int) int64 { return 1 })
	add("position_ids", n, func(column int) int64 { return int64(past + column) })
}
