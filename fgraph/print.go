package fgraph

import (
	"fmt"
	"io"
	"strings"
)

// String prints the outputs in the form that Theano has for graphs: what is used
// in several places is printed at the first of them behind its number,
//
//	[true_div(mul(*1 -> add(y, z), x), *1)]
//
// and by its number alone at the others. A result of an op with several outputs
// is followed by ::i, which output it is.
func (g *FunctionGraph) String() string {
	if g == nil {
		return "no graph"
	}
	return Sprint(0, g.outputs...)
}

// Sprint prints variables, in a graph or not, in the form of
// [FunctionGraph.String]. If depth is above 0, what lies deeper is cut off, and so
// are inputs beyond the first few; "…" stands for them.
func Sprint(depth int, outputs ...*Variable) string {
	p := printer{depth: depth, seen: make(map[*Apply]int)}
	p.count(outputs)
	p.WriteByte('[')
	for i, v := range outputs {
		if i > 0 {
			p.WriteString(", ")
		}
		p.print(v)
	}
	p.WriteByte(']')
	return p.String()
}

// String prints the apply with two levels of what it depends on.
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
	seen   map[*Apply]int // number to print: 0 unless several places use it, -1 until it has got one
	number int
	path   []step
}

// count finds what is used in several places.
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
	level := len(todo) // the applies of one depth end here
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

// width returns how many inputs of a are printed: all, unless what is printed is
// cut off in depth as well.
func (p *printer) width(a *Apply) int {
	const most = 16
	if p.depth > 0 {
		return min(len(a.inputs), most)
	}
	return len(a.inputs)
}

func (p *printer) print(v *Variable) {
	if p.begin(v) {
		p.run()
		p.which(v)
	}
}

// run prints what has been begun to its end.
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
				p.which(parent.a.inputs[parent.next-1])
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

// begin prints a leaf, a number, or the head of an apply; only in the last case
// there is more to come.
func (p *printer) begin(v *Variable) bool {
	if v == nil {
		p.WriteString("nil")
		return false
	}
	if v.owner == nil {
		p.WriteString(leaf(v))
		return false
	}
	n, shared := p.seen[v.owner]
	switch {
	case n > 0:
		fmt.Fprintf(p, "*%d", n)
		p.which(v)
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

// which tells the outputs of an apply apart.
func (p *printer) which(v *Variable) {
	if len(v.owner.outputs) > 1 {
		fmt.Fprintf(p, "::%d", v.index)
	}
}

// leaf prints a variable without owner.
func leaf(v *Variable) string {
	switch f, ok := v.typ.(DataFormatter); {
	case v.root == nil || v.typ == nil && !v.root.constant && v.root.name == "":
		return "<no type>"
	case v.root.name != "":
		return v.root.name
	case !v.root.constant:
		return "<" + v.typ.String() + ">"
	case ok:
		return f.FormatData(v.root.data)
	}
	s := fmt.Sprint(v.root.data)
	const most = 40
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// WriteTree prints the graph as a tree, a line for every use of a variable:
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
// The letters name the applies in the order in which they appear. One that has
// been printed is not printed again; "┆" stands for its inputs, and for those
// that lie more than a hundred levels deep.
func (g *FunctionGraph) WriteTree(w io.Writer) error { return WriteTree(w, g.outputs...) }

// WriteTree prints variables in the form of [FunctionGraph.WriteTree].
func WriteTree(w io.Writer, outputs ...*Variable) error {
	t := tree{w: w, names: make(map[*Apply]string)}
	for _, v := range outputs {
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

// deepest bounds the indentation of a tree, and with it the length of what is
// printed for a long chain.
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
		_, t.err = fmt.Fprintf(t.w, "%s%s <%v>\n", head, leaf(v), v.typ)
		return
	}
	name, known := t.names[v.owner]
	if !known {
		name = letters(len(t.names))
		t.names[v.owner] = name
	}
	which := ""
	if len(v.owner.outputs) > 1 {
		which = fmt.Sprintf("::%d", v.index)
	}
	_, t.err = fmt.Fprintf(t.w, "%s%v%s [%s] <%v>\n", head, v.owner.op, which, name, v.typ)
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
