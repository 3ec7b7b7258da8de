package graphfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// A Listing is a file in parts, all of which are text. String joins them.
type Listing struct {
	Head   []Field        `json:"head,omitempty"`
	Tables []Section      `json:"tables,omitempty"` // sections in front of the graphs
	Graphs []GraphListing `json:"graphs"`
}

// A GraphListing is a graph in parts.
type GraphListing struct {
	Inputs []Value `json:"inputs"`
	// Definitions are the constants and applies, in an order in which operands come first.
	Definitions []Definition `json:"definitions"`
	Outputs     []string     `json:"outputs"`            // ids
	Sections    []Section    `json:"sections,omitempty"` // behind the graph
}

// A Value is an input, a constant or a result of an apply. The name is empty if the id is %NAME.
type Value struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Type string `json:"type"`
}

// A Definition is an apply or, if Op is empty, a constant with its data.
type Definition struct {
	Results []Value  `json:"results"`
	Op      string   `json:"op,omitempty"`
	Data    string   `json:"data,omitempty"`
	Inputs  []string `json:"inputs,omitempty"` // ids
	Origin  *int     `json:"origin,omitempty"` // nil if unknown
}

// List returns the parts of a file.
func List(f *File, d Dialect) (*Listing, error) {
	l := &Listing{Head: f.Head}
	for _, h := range f.Head {
		if !isFieldName(h.Name) {
			return nil, fmt.Errorf("graphfile: %q is not the name of a field", h.Name)
		}
	}
	if t, ok := d.(Tabler); ok {
		d = t.Open()
	}
	for _, g := range f.Graphs() {
		w := writer{d: d, names: make(map[string]bool), ids: make(map[*fgraph.Variable]string)}
		if err := w.graph(g); err != nil {
			return nil, fmt.Errorf("graphfile: %w", err)
		}
		l.Graphs = append(l.Graphs, w.GraphListing)
	}
	if t, ok := d.(Tables); ok {
		l.Tables = t.Tables()
		for i := range l.Tables {
			if err := l.Tables[i].check(); err != nil {
				return nil, fmt.Errorf("graphfile: %w", err)
			}
		}
	}
	return l, nil
}

// Format returns a file as text.
func Format(f *File, d Dialect) (string, error) {
	l, err := List(f, d)
	if err != nil {
		return "", err
	}
	return l.String(), nil
}

// writer lists a graph.
type writer struct {
	GraphListing
	d     Dialect
	names map[string]bool
	ids   map[*fgraph.Variable]string // how variables are called
	next  int
}

func (w *writer) graph(g *fgraph.FunctionGraph) error {
	for _, v := range g.Inputs() {
		w.Inputs = append(w.Inputs, w.declare(v))
	}
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	for _, a := range order {
		if err := w.constants(a.Inputs()); err != nil {
			return err
		}
		if err := w.apply(a); err != nil {
			return fmt.Errorf("%v: %w", a, err)
		}
	}
	if err := w.constants(g.Outputs()); err != nil {
		return err
	}
	w.Outputs = w.list(g.Outputs())
	return w.features(g)
}

// constants lists those of the variables that are constants and not listed yet.
func (w *writer) constants(vars []*fgraph.Variable) error {
	for _, v := range vars {
		if !v.IsConstant() || w.ids[v] != "" {
			continue
		}
		text, err := w.d.DataText(v.Type(), v.Data())
		if err != nil {
			return fmt.Errorf("the constant %v: %w", v, err)
		}
		w.Definitions = append(w.Definitions, Definition{Results: []Value{w.declare(v)}, Data: text})
	}
	return nil
}

func (w *writer) apply(a *fgraph.Apply) error {
	op, err := w.d.OpText(a.Op())
	if err != nil {
		return err
	}
	d := Definition{Op: op, Inputs: w.list(a.Inputs()), Results: make([]Value, 0, len(a.Outputs()))}
	for _, v := range a.Outputs() {
		d.Results = append(d.Results, w.declare(v))
	}
	if origin := a.Origin(); origin >= 0 {
		d.Origin = &origin
	}
	w.Definitions = append(w.Definitions, d)
	return nil
}

// list returns the ids of variables.
func (w *writer) list(vars []*fgraph.Variable) []string {
	ids := make([]string, len(vars))
	for i, v := range vars {
		ids[i] = w.ids[v]
	}
	return ids
}

// declare gives a variable an id.
func (w *writer) declare(v *fgraph.Variable) Value {
	name := v.Name()
	if isName(name) && !w.names[name] {
		w.names[name] = true
		w.ids[v] = "%" + name
		return Value{ID: w.ids[v], Type: v.Type().String()}
	}
	w.ids[v] = "%" + strconv.Itoa(w.next)
	w.next++
	return Value{w.ids[v], name, v.Type().String()}
}

// features lists the features of a graph that are part of what it means.
func (w *writer) features(g *fgraph.FunctionGraph) error {
	for _, f := range g.Features() {
		wf, ok := f.(WrittenFeature)
		if !ok {
			continue
		}
		name, lines, err := wf.GraphSection(func(v *fgraph.Variable) string { return w.ids[v] })
		if err != nil {
			return fmt.Errorf("feature %s: %w", name, err)
		}
		if name == "" {
			continue
		}
		s := Section{Name: name, Lines: lines}
		if err := s.check(); err != nil {
			return err
		}
		w.Sections = append(w.Sections, s)
	}
	return nil
}

const indent = "    "

// String returns the text of the file.
func (l *Listing) String() string {
	var b text
	for _, h := range l.Head {
		b.field(h)
	}
	for i := range l.Tables {
		b.separate()
		b.section(&l.Tables[i])
	}
	for i := range l.Graphs {
		b.separate()
		b.graph(&l.Graphs[i])
	}
	return b.String()
}

type text struct{ strings.Builder }

// separate writes an empty line unless the text is empty.
func (b *text) separate() {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

// field writes a field. Its further lines are indented.
func (b *text) field(h Field) {
	b.WriteString(h.Name + ":")
	for i, line := range strings.Split(h.Text, "\n") {
		switch {
		case i > 0:
			b.WriteString("\n\t" + line)
		case line != "":
			b.WriteString(" " + line)
		}
	}
	b.WriteByte('\n')
}

func (b *text) section(s *Section) {
	b.WriteString(s.Name + " {\n")
	for _, line := range s.Lines {
		b.WriteString(indent + line + "\n")
	}
	b.WriteString("}\n")
}

func (b *text) graph(g *GraphListing) {
	b.WriteString("graph {\n")
	for i := range g.Inputs {
		v := &g.Inputs[i]
		b.WriteString(indent + "input " + v.text() + " : " + v.Type + "\n")
	}
	for i := range g.Definitions {
		b.definition(&g.Definitions[i])
	}
	b.WriteString(indent + "return")
	for i, id := range g.Outputs {
		b.WriteString([...]string{" ", ", "}[min(i, 1)] + id)
	}
	b.WriteString("\n}\n")
	for i := range g.Sections {
		b.section(&g.Sections[i])
	}
}

func (b *text) definition(d *Definition) {
	b.WriteString(indent)
	for i := range d.Results {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.Results[i].text())
	}
	if d.Op == "" {
		b.WriteString(" = constant {" + d.Data + "}")
	} else {
		b.WriteString(" = " + d.Op + "(" + strings.Join(d.Inputs, ", ") + ")")
	}
	if d.Origin != nil {
		b.WriteString(" @" + strconv.Itoa(*d.Origin))
	}
	for i := range d.Results {
		b.WriteString([...]string{" : ", ", "}[min(i, 1)] + d.Results[i].Type)
	}
	b.WriteByte('\n')
}

// text returns the id, and the name if the id does not have it.
func (v *Value) text() string {
	if v.Name == "" {
		return v.ID
	}
	return v.ID + strconv.Quote(v.Name)
}

// isName reports whether a name is an identifier, so that it can be an id.
func isName(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

// isFieldName reports whether a field can have the name.
func isFieldName(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i]) && s[i] != '-') {
			return false
		}
	}
	return s != "" && s != "graph"
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
