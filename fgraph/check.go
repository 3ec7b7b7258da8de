package fgraph

import (
	"fmt"

	"github.com/hashicorp/go-multierror"
)

// Check verifies the invariants of the whole graph and reports all violations, each wrapping
// [ErrCheck]. The graph maintains these invariants itself, so a violation is a bug here or the
// work of code that modified shared slices.
func (g *FunctionGraph) Check() error {
	c := checker{g: g, reached: make([]bool, len(g.applies)), used: make([]bool, len(g.variables))}
	c.ends()
	c.walk()
	c.tables()
	for _, v := range g.variables {
		if v != nil {
			c.clients(v)
		}
	}
	return c.faults.ErrorOrNil()
}

type checker struct {
	g       *FunctionGraph
	reached []bool // applies
	used    []bool // variables that are inputs, read, or computed
	todo    []*Apply
	faults  *multierror.Error
}

func (c *checker) fault(format string, args ...any) {
	c.faults = multierror.Append(c.faults, fmt.Errorf("%w: %s", ErrCheck, fmt.Sprintf(format, args...)))
}

func (c *checker) ends() {
	for i, v := range c.g.inputs {
		if v.owner != nil {
			c.fault("input %d has an owner: %v", i, v)
			continue
		}
		if v.leaf.graph != c.g || !c.known(v) {
			c.fault("missing variable: input %d, %v, is not listed", i, v)
			continue
		}
		c.used[v.id] = true
	}
	for i, v := range c.g.outputs {
		c.visit(v, Client{nil, i})
	}
}

// known reports whether v is listed under its number.
func (c *checker) known(v *Variable) bool {
	return v.id >= 0 && int(v.id) < len(c.g.variables) && c.g.variables[v.id] == v
}

// visit checks v, which cl reads.
func (c *checker) visit(v *Variable, cl Client) {
	if v == nil {
		c.fault("nil variable read by %v", clientString(cl))
		return
	}
	if v.owner == nil && !v.leaf.constant && v.leaf.graph != c.g {
		c.fault("undeclared input %v, read by %v", v, clientString(cl))
		return
	}
	if !c.known(v) {
		c.fault("missing variable %v, read by %v", v, clientString(cl))
		return
	}
	c.used[v.id] = true
	if pos := int(*c.g.position(cl)); pos >= len(v.clients) || v.clients[pos] != cl {
		c.fault("missing client: %v reads %v, which does not list it", clientString(cl), v)
	}
	if a := v.owner; a != nil {
		if a.graph != c.g || a.id < 0 || int(a.id) >= len(c.g.applies) || c.g.applies[a.id] != a {
			c.fault("missing apply %v, read by %v", a, clientString(cl))
			return
		}
		if cl.Apply != nil && cl.Apply.graph == c.g && !c.g.order.less(a.id, cl.Apply.id) {
			c.fault("order: %v does not come before its client %v", a, cl.Apply)
		}
		if !c.reached[a.id] {
			c.reached[a.id] = true
			c.todo = append(c.todo, a)
		}
	}
}

// walk visits everything the outputs depend on.
func (c *checker) walk() {
	for len(c.todo) > 0 {
		a := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		for i, v := range a.inputs {
			c.visit(v, Client{a, i})
		}
		for i, v := range a.outputs {
			if v.owner != a || int(v.index) != i {
				c.fault("output %d of %v has a wrong owner or index", i, a)
			} else if !c.known(v) {
				c.fault("missing variable: output %d of %v is not listed", i, a)
			} else {
				c.used[v.id] = true
			}
		}
	}
}

func (c *checker) tables() {
	live := 0
	for id, a := range c.g.applies {
		if a == nil {
			continue
		}
		live++
		if int(a.id) != id || a.graph != c.g {
			c.fault("apply %v is listed as number %d, but is number %d of its graph", a, id, a.id)
		} else if !c.reached[id] {
			c.fault("superfluous apply: no output depends on %v", a)
		}
	}
	if live != c.g.live || live+len(c.g.freeApplies) != len(c.g.applies) {
		c.fault("%d applies, %d free numbers and %d in all do not add up; counted %d applies",
			c.g.live, len(c.g.freeApplies), len(c.g.applies), live)
	}
	for id, v := range c.g.variables {
		if v == nil {
			continue
		}
		if int(v.id) != id || v.Graph() != c.g {
			c.fault("variable %v is listed as number %d, but is number %d of its graph", v, id, v.id)
		} else if !c.used[id] {
			c.fault("superfluous variable %v", v)
		}
	}
	c.ops()
	n := 0
	for range c.g.order.all() {
		n++
	}
	if n != live {
		c.fault("order: %d applies in order, %d in the graph", n, live)
	}
	if len(c.g.late) > 0 {
		c.fault("order: %d unresolved edges", len(c.g.late))
	}
}

// clients checks the client list of v.
func (c *checker) clients(v *Variable) {
	for i, cl := range v.clients {
		switch {
		case cl.Apply == nil && (cl.Index < 0 || cl.Index >= len(c.g.outputs)):
			c.fault("wrong output client: %v lists output %d of %d", v, cl.Index, len(c.g.outputs))
		case cl.Apply == nil && c.g.outputs[cl.Index] != v:
			c.fault("wrong output client: %v lists output %d, which is %v", v, cl.Index, c.g.outputs[cl.Index])
		case cl.Apply != nil && cl.Apply.graph != c.g:
			c.fault("foreign client: %v lists %v, which is not part of the graph", v, cl.Apply)
		case cl.Apply != nil && (cl.Index < 0 || cl.Index >= len(cl.Apply.inputs) || cl.Apply.inputs[cl.Index] != v):
			c.fault("stale client: %v lists input %d of %v, which reads something else", v, cl.Index, cl.Apply)
		case int(*c.g.position(cl)) != i:
			c.fault("stale client: %v lists %v twice", v, clientString(cl))
		}
	}
}

func clientString(c Client) string {
	if c.Apply == nil {
		return fmt.Sprintf("output %d of the graph", c.Index)
	}
	return fmt.Sprintf("input %d of %v", c.Index, c.Apply)
}

// ops checks what [FunctionGraph.Ops] knows.
func (c *checker) ops() {
	if !c.g.opNumbers.counting {
		return
	}
	counts := make([]int32, c.g.opNumbers.count+1)
	for _, a := range c.g.applies {
		if a != nil {
			counts[c.g.OpNumber(a)]++
		}
	}
	for number, known := range c.g.opNumbers.applies {
		if known.n != counts[number] {
			c.fault("%d applies of %v are known, there are %d", known.n, known.op, counts[number])
		}
	}
}
