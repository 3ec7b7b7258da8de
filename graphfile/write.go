package graphfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

const indent = "    "

type writer struct {
	strings.Builder
	d     Dialect
	names map[string]bool
	ids   map[*fgraph.Variable]string // how variables are called
	next  int
}

// begin begins a graph.
func (w *writer) begin(d Dialect) {
	w.d, w.names, w.ids, w.next = d, make(map[string]bool), make(map[*fgraph.Variable]string), 0
}

// separate writes an empty line unless the text is empty.
func (w *writer) separate() {
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
}

// field writes a field. Its further lines are indented.
func (w *writer) field(h Field) {
	w.WriteString(h.Name + ":")
	for i, line := range strings.Split(h.Text, "\n") {
		switch {
		case i > 0:
			w.WriteString("\n\t" + line)
		case line != "":
			w.WriteString(" " + line)
		}
	}
	w.WriteByte('\n')
}

func (w *writer) graph(g *fgraph.FunctionGraph) error {
	w.WriteString("graph {\n")
	for _, v := range g.Inputs() {
		w.WriteString(indent + "input " + w.declare(v) + " : " + v.Type().String() + "\n")
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
	w.WriteString(indent + "return" + w.list(g.Outputs(), " ") + "\n}\n")
	return w.features(g)
}

// constants writes those of the variables that are constants and not written yet.
func (w *writer) constants(vars []*fgraph.Variable) error {
	for _, v := range vars {
		if !v.IsConstant() || w.ids[v] != "" {
			continue
		}
		text, err := w.d.DataText(v.Type(), v.Data())
		if err != nil {
			return fmt.Errorf("the constant %v: %w", v, err)
		}
		w.WriteString(indent + w.declare(v) + " = constant {" + text + "} : " + v.Type().String() + "\n")
	}
	return nil
}

func (w *writer) apply(a *fgraph.Apply) error {
	op, err := w.d.OpText(a.Op())
	if err != nil {
		return err
	}
	w.WriteString(indent)
	var types []string
	for i, v := range a.Outputs() {
		if i > 0 {
			w.WriteString(", ")
		}
		w.WriteString(w.declare(v))
		types = append(types, v.Type().String())
	}
	w.WriteString(" = " + op + "(" + strings.TrimPrefix(w.list(a.Inputs(), " "), " ") + ")")
	if a.Origin() >= 0 {
		w.WriteString(" @" + strconv.Itoa(a.Origin()))
	}
	w.WriteString(" : " + strings.Join(types, ", ") + "\n")
	return nil
}

// list returns the ids of variables, each behind a separator.
func (w *writer) list(vars []*fgraph.Variable, separator string) string {
	var b strings.Builder
	for i, v := range vars {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(separator + w.ids[v])
	}
	return b.String()
}

// declare gives a variable an id. It returns the id, and the name if the id does not have it.
func (w *writer) declare(v *fgraph.Variable) string {
	name := v.Name()
	if isName(name) && !w.names[name] {
		w.names[name] = true
		w.ids[v] = "%" + name
		return w.ids[v]
	}
	w.ids[v] = "%" + strconv.Itoa(w.next)
	w.next++
	if name == "" {
		return w.ids[v]
	}
	return w.ids[v] + strconv.Quote(name)
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
