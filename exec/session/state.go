package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
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
// have no positions yet where runs append to them. A state to which a run appends has memory for more positions than
// there are, so that only the new ones are written. It is for one goroutine; Fork makes another one.
type Stateful struct {
	// Limit bounds the positions of states to which runs append; 0 is none. A run that would go beyond it fails with
	// ErrLimit before it begins.
	Limit int

	runner *SessionRunner
	states []state
	batch  map[string][]string // for a symbol, the inputs that are no states whose first size it is
}

// A state is a State with its value.
type state struct {
	State
	axis  int          // to which runs append; -1 if there is none
	value *array.Array // nil at the beginning
	room  *array.Array // which the value is the beginning of; nil if others read it, too
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
	r := &Stateful{runner: s.NewRunner(), batch: make(map[string][]string)}
	for _, st := range states {
		if find(g.Outputs, st.Output) == nil {
			return nil, fmt.Errorf("%w: the model has no output %s; it has %s", lower.ErrInput, fileio.Excerpt(st.Output, 0), namesOf(g.Outputs))
		}
		if in := find(g.Inputs, st.Input); in == nil || shapeOf(in) == nil {
			return nil, fmt.Errorf("%w: the model has no input %s that is a tensor of a declared shape; its inputs are %s", lower.ErrInput, fileio.Excerpt(st.Input, 0), namesOf(g.Inputs))
		}
		r.states = append(r.states, state{State: st, axis: -1})
	}
	for _, in := range g.Inputs {
		if shape := shapeOf(in); !r.isState(in.Name) && shape != nil && len(shape.Dims) > 0 {
			if _, name := shape.Dims[0].Size(); name != "" {
				r.batch[name] = append(r.batch[name], in.Name)
			}
		}
	}
	for i := range r.states {
		st := &r.states[i]
		// A size that other inputs begin with is the batch, so the open one that is left counts positions.
		st.axis = slices.IndexFunc(shapeOf(find(g.Inputs, st.Input)).Dims, func(d *onnx.Dim) bool {
			n, name := d.Size()
			return n < 0 && r.batch[name] == nil
		})
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
	return strings.Join(lists.Map(list, func(v *onnx.ValueInfo) string { return fileio.Excerpt(v.Name, 0) }), ", ")
}

// shapeOf returns the shape that a tensor is declared with, nil if there is none.
func shapeOf(v *onnx.ValueInfo) *onnx.Shape {
	if v.Type == nil || v.Type.Tensor == nil {
		return nil
	}
	return v.Type.Tensor.Shape
}

func (r *Stateful) isState(input string) bool {
	return slices.ContainsFunc(r.states, func(s state) bool { return s.Input == input })
}

// States lists the states.
func (r *Stateful) States() []State {
	return lists.Map(r.states, func(s state) State { return s.State })
}

// Positions returns how many positions the states have to which runs append.
func (r *Stateful) Positions() int {
	for _, s := range r.states {
		if s.axis >= 0 && s.value != nil {
			return s.value.Dim(s.axis)
		}
	}
	return 0
}

// Reset goes back to the beginning.
func (r *Stateful) Reset() {
	for i := range r.states {
		r.states[i].value, r.states[i].room = nil, nil
	}
}

// Fork returns another Stateful that goes on from the same states. Neither changes those of the other one.
func (r *Stateful) Fork() *Stateful {
	// Neither may write behind its positions what the other one would write there, too: each gets a room of its own.
	for i := range r.states {
		r.states[i].room = nil
	}
	f := *r
	f.runner, f.states = r.runner.s.NewRunner(), slices.Clone(r.states)
	return &f
}

// Run computes the outputs for inputs that are no states, which may also be given: an input then takes the place of
// the state. An attention_mask that is not given has a 1 for each position, and position_ids that are not given count
// the positions, if there are input_ids of shape [batch, positions]. The outputs, and the map, are valid only until the
// next Run, and those that are states must not be changed.
func (r *Stateful) Run(ctx context.Context, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	all, more := maps.Clone(inputs), r.appends(inputs)
	for i := range r.states {
		s := &r.states[i]
		if all[s.Input] == nil {
			if s.value == nil {
				v, err := r.zeros(s.Input, inputs)
				if err != nil {
					return nil, err
				}
				s.value = v
			}
			all[s.Input] = s.value
		}
	}
	r.count(all)
	if most := r.Positions() + more; r.Limit > 0 && most > r.Limit {
		return nil, fmt.Errorf("%w: %d, and there may be %d", ErrLimit, most, r.Limit)
	}
	r.runner.rooms = r.runner.rooms[:0]
	for i := range r.states {
		s := &r.states[i]
		// Without a room the value itself is lent: if the output is the input as it is, nothing is copied. What
		// the caller gave is never lent, because nobody may write behind it.
		if s.grow(more, r.Limit); inputs[s.Input] == nil {
			r.runner.rooms = append(r.runner.rooms, room{s.Output, cmp.Or(s.room, s.value)})
		} else {
			r.runner.rooms = append(r.runner.rooms, room{s.Output, s.room})
		}
	}
	_, out, err := r.runner.Run(ctx, all)
	if err != nil {
		return nil, err
	}
	// All outputs are looked at before one is kept: a run that fails leaves all states as they were.
	for _, s := range r.states {
		if out[s.Output] == nil {
			return nil, fmt.Errorf("%w: the output %s has no value", lower.ErrInput, fileio.Excerpt(s.Output, 0))
		}
	}
	for i := range r.states {
		s := &r.states[i]
		s.keep(out[s.Output], all[s.Input], r.Limit)
	}
	return out, nil
}

// grow makes the room of a value large enough for so many more positions.
func (s *state) grow(more, limit int) {
	if s.room == nil {
		return // nothing was appended yet
	}
	if n := s.value.Dim(s.axis) + more; s.room.Dim(s.axis) < n {
		s.room = roomFor(s.value, s.axis, n, limit)
	}
}

// roomFor returns memory for an array with n positions along an axis, and for as many again unless that is beyond a
// limit.
func roomFor(a *array.Array, axis, n, limit int) *array.Array {
	shape := slices.Clone(a.Shape())
	if shape[axis] = max(2*n, leastPositions); limit > 0 {
		shape[axis] = max(n, min(shape[axis], limit))
	}
	return array.New(a.DType(), shape...)
}

// leastPositions is the least number of positions for which there is memory.
const leastPositions = 32

// keep makes an output of a run the value. It is memory of the runner, unless it is in the room or what the input was.
func (s *state) keep(out, in *array.Array, limit int) {
	switch {
	case s.room != nil && out.Begins(s.room), s.room == nil && out.Begins(in):
		s.value = new(array.Array)
		*s.value = *out
	case s.axis >= 0 && s.axis < out.NDim() && !array.SameShape(out, in):
		s.room = roomFor(out, s.axis, out.Dim(s.axis), limit)
		s.value = s.room.Beginning(out.Shape()...)
		array.CopyTo(s.value, out)
	default:
		s.value, s.room = out.Clone(), nil
	}
}

// appends returns how many positions a run appends: those of input_ids or, without them, one.
func (r *Stateful) appends(inputs map[string]*array.Array) int {
	if !slices.ContainsFunc(r.states, func(s state) bool { return s.axis >= 0 }) {
		return 0
	}
	if ids := inputs["input_ids"]; ids != nil && ids.NDim() == 2 {
		return ids.Dim(1)
	}
	return 1
}

// zeros returns the value of a state at the beginning.
func (r *Stateful) zeros(input string, inputs map[string]*array.Array) (*array.Array, error) {
	in := find(r.runner.s.source.file.Graph.Inputs, input)
	var shape []int
	for _, d := range shapeOf(in).Dims {
		// An open size that no input tells is that of positions, of which there are none yet.
		n, symbol := d.Size()
		for _, name := range r.batch[symbol] {
			if a := inputs[name]; a != nil && a.NDim() > 0 {
				n = int64(a.Dim(0))
			}
		}
		shape = append(shape, int(max(n, 0)))
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
		in := find(r.runner.s.source.file.Graph.Inputs, name)
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
