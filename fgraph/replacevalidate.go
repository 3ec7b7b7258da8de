package fgraph

import "fmt"

// ReplaceValidate is the feature through which rewriters change a graph: its
// replacements are undone as one when any feature objects to the result. Attach
// drops a second one quietly.
type ReplaceValidate struct {
	g *FunctionGraph
}

// NewReplaceValidate returns the feature for one graph.
func NewReplaceValidate() *ReplaceValidate { return new(ReplaceValidate) }

// OnAttach makes the feature work for g.
func (r *ReplaceValidate) OnAttach(g *FunctionGraph) error {
	if _, ok := FeatureOf[*ReplaceValidate](g); ok {
		return ErrAlreadyAttached
	}
	if err := servesOne(r.g, g); err != nil {
		return err
	}
	r.g = g
	return nil
}

// OnDetach ends the work of the feature.
func (r *ReplaceValidate) OnDetach(*FunctionGraph) { r.g = nil }

// ReplaceValidate is as [FunctionGraph.Replace], and undone if a feature objects.
func (r *ReplaceValidate) ReplaceValidate(old, new *Variable, why Reason) error {
	pair := [1]Replacement{{old, new}}
	return r.ReplaceAllValidateRemove(pair[:], nil, why)
}

// ReplaceAllValidate is as [FunctionGraph.ReplaceAll], and undone if a feature
// objects.
func (r *ReplaceValidate) ReplaceAllValidate(pairs []Replacement, why Reason) error {
	return r.ReplaceAllValidateRemove(pairs, nil, why)
}

// ReplaceAllValidateRemove is as [ReplaceValidate.ReplaceAllValidate], and also
// undone, with an error that wraps [ErrNotRemoved], if a variable of remove is
// still part of the graph.
func (r *ReplaceValidate) ReplaceAllValidateRemove(pairs []Replacement, remove []*Variable, why Reason) error {
	if r.g == nil {
		return fmt.Errorf("%w: ReplaceValidate is not attached to a graph", ErrInvalid)
	}
	return r.g.transact(pairs, why, remove, true)
}
