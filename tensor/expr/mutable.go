package expr

import (
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
)

// mutable is the feature of a graph that was read from a file, some of whose inputs may be
// destroyed.
type mutable struct{ inputs []*fgraph.Variable }

const mutableSection = "mutable"

// OnAttach does nothing.
func (m *mutable) OnAttach(*fgraph.FunctionGraph) error { return nil }

// Destroyable reports whether an input may be destroyed.
func (m *mutable) Destroyable(v *fgraph.Variable) bool { return slices.Contains(m.inputs, v) }

// GraphSection returns the inputs as a section of a graph file.
func (m *mutable) GraphSection(id func(*fgraph.Variable) string) (name string, lines []string, err error) {
	for _, v := range m.inputs {
		lines = append(lines, id(v))
	}
	return mutableSection, lines, nil
}

// SectionReader returns the reader for the inputs that may be destroyed.
func (Dialect) SectionReader(name string) graphfile.SectionReader {
	if name != mutableSection {
		return nil
	}
	return func(g *fgraph.FunctionGraph, s *graphfile.Section, lookup func(string) *fgraph.Variable) error {
		m := new(mutable)
		for i, id := range s.Lines {
			v := lookup(id)
			if v == nil || !v.IsInput() || m.Destroyable(v) {
				return s.Errorf(i, "%w: %q is not an input, or it is there already", ErrSyntax, fileio.Excerpt(id, 0))
			}
			m.inputs = append(m.inputs, v)
		}
		return g.Attach(m)
	}
}
