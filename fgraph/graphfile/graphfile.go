package graphfile

import (
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// ErrSyntax is wrapped by the errors of [Parse] about text that is not a graph.
var ErrSyntax = errors.New("bad graph")

// A Dialect translates ops, types and constants. Types print as their String.
type Dialect interface {
	// OpText returns the text of an op. Braces, brackets, parentheses and quotes in it are
	// balanced, and parentheses occur in braces only.
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
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A File is a graph with the fields in front of it.
type File struct {
	Head  []Field
	Graph *fgraph.FunctionGraph
	// More are the graphs that follow, if the file has several, such as the segments of a looped
	// computation.
	More []*fgraph.FunctionGraph
}

// Graphs returns all graphs.
func (f *File) Graphs() []*fgraph.FunctionGraph {
	return append([]*fgraph.FunctionGraph{f.Graph}, f.More...)
}

// Field returns the text of a field, or "".
func (f *File) Field(name string) string { return fieldOf(f.Head, name) }

func fieldOf(head []Field, name string) string {
	for _, h := range head {
		if h.Name == name {
			return h.Text
		}
	}
	return ""
}

// Set gives a field a text. It appends the field if it is missing.
func (f *File) Set(name, text string) {
	for i := range f.Head {
		if f.Head[i].Name == name {
			f.Head[i].Text = text
			return
		}
	}
	f.Head = append(f.Head, Field{name, text})
}

// Remove removes the fields of a name.
func (f *File) Remove(name string) {
	f.Head = slices.DeleteFunc(f.Head, func(h Field) bool { return h.Name == name })
}
