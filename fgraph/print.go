package fgraph

import (
	"fmt"
	"io"
	"strings"
)

// String prints the outputs in Theano's notation. An apply that is used in several places is
// printed in full at the first one, behind its number, and as its number at the others:
//
//	[true_div(mul(*1 -> add(y, z), x), *1)]
//
// Output i of an op with several outputs is followed by ::i.
func (g *FunctionGraph) String() string {
	if g == nil {
		return "no graph"
	}
	return Sprint(0, g.outputs...)
}

// Sprint prints variables, in a graph or not, in the notation of [FunctionGraph.String]. A
// positive depth limits the levels of applies and the number of inputs; "…" marks what is
// omitted.
func Sprint(depth int, outputs ...*Variable) string {
	p := printer{depth: depth, seen: make(map[*Apply]int)}
	p.count(outputs)
	p.WriteByte('[')
	for i, v := range outputs {
		if i > 0 {
			p.WriteString(", ")
		}
		if p.begin(v) {
			p.run()
			p.WriteString(v.suffix())
		}
	}
	p.WriteByte(']')
	return p.String()
}

// Text returns the expression of one variable, as [Sprint] does with brackets around it.
func Text(depth int, v *Variable) string {
	s := Sprint(depth, v)
	return s[1 : len(s)-1]
}

// String prints the apply with two levels of its operands.
func (a *Apply) String() string {
	p := printer{depth: 2, seen: make(map[*Apply]int)}
	p.expand(a)
	p.run()
	return p.String()
}

// printer prints without recursion.
type printer struct {
	strings.Builder
	depth  int
	seen   map[*Apply]int // applies used several times: the number to print, -1 before there is one
	number int
	path   []step
}

// count finds the applies that are used in several places.
func (p *printer) count(outputs []*Variable) {
	const once, twice = 0, -1
	var todo []*Apply
	meet := func(v *Variable) {
		if v == nil || v.owner == nil {
			return
		}
		if _, ok := p.seen[v.owner]; ok {
			p.seen[v.owner] = twice
			return
		}
		p.seen[v.owner] = once
		todo = append(todo, v.owner)
	}
	for _, v := range outputs {
		meet(v)
	}
	level := len(todo) // end of the applies of the current depth
	for i, depth := 0, 1; i < len(todo); i++ {
		if i == level {
			level = len(todo)
			depth++
		}
		if p.depth > 0 && depth >= p.depth {
			continue
		}
		for _, v := range todo[i].inputs[:p.width(todo[i])] {
			meet(v)
		}
	}
	for a, n := range p.seen {
		if n == once {
			delete(p.seen, a)
		}
	}
}

// width returns how many inputs of a are printed: all, unless depth is limited.
func (p *printer) width(a *Apply) int {
	const most = 16
	if p.depth > 0 {
		return min(len(a.inputs), most)
	}
	return len(a.inputs)
}

// run prints everything on the path to its end.
func (p *printer) run() {
	for len(p.path) > 0 {
		top := &p.path[len(p.path)-1]
		if top.next == p.width(top.a) {
			if top.next < len(top.a.inputs) {
				p.WriteString(", …")
			}
			p.WriteByte(')')
			p.path = p.path[:len(p.path)-1]
			if len(p.path) > 0 {
				parent := p.path[len(p.path)-1]
				p.WriteString(parent.a.inputs[parent.next-1].suffix())
			}
			continue
		}
		if top.next > 0 {
			p.WriteString(", ")
		}
		v := top.a.inputs[top.next]
		top.next++
		p.begin(v)
	}
}

// begin prints a leaf, a number, or the head of an apply. It returns true in the last case, when
// run must print the rest.
func (p *printer) begin(v *Variable) bool {
	if v == nil {
		p.WriteString("nil")
		return false
	}
	if v.owner == nil {
		p.WriteString(leafString(v))
		return false
	}
	n, shared := p.seen[v.owner]
	switch {
	case n > 0:
		fmt.Fprintf(p, "*%d%s", n, v.suffix())
		return false
	case p.depth > 0 && len(p.path) >= p.depth:
		p.WriteString("…")
		return false
	case shared:
		p.number++
		p.seen[v.owner] = p.number
		fmt.Fprintf(p, "*%d -> ", p.number)
	}
	p.expand(v.owner)
	return true
}

func (p *printer) expand(a *Apply) {
	if a.op == nil {
		p.WriteString("no op")
		return
	}
	p.WriteString(a.op.String())
	p.WriteByte('(')
	p.path = append(p.path, step{a: a})
}

// leafString prints a variable without an owner.
func leafString(v *Variable) string {
	switch f, ok := v.typ.(DataFormatter); {
	case v.leaf == nil || v.typ == nil && !v.leaf.constant && v.leaf.name == "":
		return "<no type>"
	case v.leaf.name != "":
		return v.leaf.name
	case !v.leaf.constant:
		return "<" + v.typ.String() + ">"
	case ok:
		return f.FormatData(v.leaf.data)
	}
	s := fmt.Sprint(v.leaf.data)
	const most = 40
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// WriteTree prints the graph as a tree with one line for each use of a variable:
//
//	true_div [A] <float64>
//	 ├─ mul [B] <float64>
//	 │  ├─ add [C] <float64>
//	 │  │  ├─ y <float64>
//	 │  │  └─ z <float64>
//	 │  └─ x <float64>
//	 └─ add [C] <float64>
//	    ┆
//
// Letters name the applies in the order of appearance. "┆" replaces the inputs of an apply
// that was printed before, and for those of one a hundred levels deep.
func (g *FunctionGraph) WriteTree(w io.Writer) error {
	t := tree{w: w, names: make(map[*Apply]string)}
	for _, v := range g.outputs {
		t.line("", "", v)
		for len(t.path) > 0 && t.err == nil {
			top := &t.path[len(t.path)-1]
			if top.next == len(top.a.inputs) {
				t.path = t.path[:len(t.path)-1]
				continue
			}
			v := top.a.inputs[top.next]
			top.next++
			if top.next == len(top.a.inputs) {
				t.line(top.indent+" └─ ", top.indent+"   ", v)
			} else {
				t.line(top.indent+" ├─ ", top.indent+" │ ", v)
			}
		}
	}
	return t.err
}

// deepest bounds the indentation of a tree, and thus the length of the text for a long chain.
const deepest = 100

type tree struct {
	w     io.Writer
	names map[*Apply]string
	path  []branch
	err   error
}

type branch struct {
	step
	indent string
}

func (t *tree) line(head, indent string, v *Variable) {
	if t.err != nil {
		return
	}
	if v.owner == nil {
		_, t.err = fmt.Fprintf(t.w, "%s%s <%v>\n", head, leafString(v), v.typ)
		return
	}
	name, known := t.names[v.owner]
	if !known {
		name = letters(len(t.names))
		t.names[v.owner] = name
	}
	_, t.err = fmt.Fprintf(t.w, "%s%v%s [%s] <%v>\n", head, v.owner.op, v.suffix(), name, v.typ)
	switch {
	case t.err != nil:
	case !known && len(t.path) < deepest:
		t.path = append(t.path, branch{step{a: v.owner}, indent})
	case len(v.owner.inputs) > 0:
		_, t.err = fmt.Fprintf(t.w, "%s ┆\n", indent)
	}
}

// letters counts A, B, …, Z, AA, AB, …
func letters(n int) string {
	s := ""
	for n++; n > 0; n = (n - 1) / 26 {
		s = string(rune('A'+(n-1)%26)) + s
	}
	return s
}
