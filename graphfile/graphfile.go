package graphfile

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// ErrSyntax is wrapped by the errors of [Parse] about text that is not a graph.
var ErrSyntax = errors.New("bad graph")

// A Dialect translates ops, types and constants. Types print as their String.
type Dialect interface {
	// OpText returns the text of an op. Braces, brackets, parentheses and quotes in it are
	// balanced, and parentheses stand in braces only.
	OpText(op fgraph.Op) (string, error)
	// ParseOp returns the op of a text.
	ParseOp(text string) (fgraph.Op, error)
	// ParseType returns the type of a text.
	ParseType(text string) (fgraph.Type, error)
	// DataText returns the value of a constant as text, in which braces and quotes are
	// balanced.
	DataText(t fgraph.Type, data any) (string, error)
	// ParseData returns the value of a constant.
	ParseData(t fgraph.Type, text string) (any, error)
	// Check returns an error if the op of an apply can't have its inputs or outputs.
	Check(a *fgraph.Apply) error
}

// A Field is a line in the head of a file.
type Field struct{ Name, Text string }

// A File is a graph with the fields in front of it.
type File struct {
	Head  []Field
	Graph *fgraph.FunctionGraph
}

// Field returns the text of a field, or "".
func (f *File) Field(name string) string {
	for _, h := range f.Head {
		if h.Name == name {
			return h.Text
		}
	}
	return ""
}

// Format returns a file as text.
func Format(f *File, d Dialect) (string, error) {
	w := writer{d: d, names: make(map[string]bool), ids: make(map[*fgraph.Variable]string)}
	for _, h := range f.Head {
		if !isFieldName(h.Name) {
			return "", fmt.Errorf("graphfile: %q is not the name of a field", h.Name)
		}
		w.field(h)
	}
	if len(f.Head) > 0 {
		w.WriteByte('\n')
	}
	if err := w.graph(f.Graph); err != nil {
		return "", fmt.Errorf("graphfile: %w", err)
	}
	return w.String(), nil
}
