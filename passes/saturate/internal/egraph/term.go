package egraph

import (
	"fmt"
	"slices"
	"strings"
)

// A Term is an op applied to terms, numbered by [Terms].
type Term uint32

// Terms keeps terms, each once. The order of arguments counts, also for ops that commute.
type Terms struct {
	g    *Graph
	ops  []Op
	kids [][]Term
	ids  map[string]Term
}

func newTerms(g *Graph) *Terms { return &Terms{g: g, ids: map[string]Term{}} }

// Op returns the op of a term.
func (t *Terms) Op(x Term) Op { return t.ops[x] }

// Args returns the arguments of a term. They must not be changed.
func (t *Terms) Args(x Term) []Term { return t.kids[x] }

// Make returns the term of an op applied to terms.
func (t *Terms) Make(op Op, args ...Term) Term {
	key := make([]byte, 0, 4+4*len(args))
	key = append(key, byte(op), byte(op>>8), byte(op>>16), byte(op>>24))
	for _, a := range args {
		key = append(key, byte(a), byte(a>>8), byte(a>>16), byte(a>>24))
	}
	x, ok := t.ids[string(key)]
	if !ok {
		x = Term(len(t.ops))
		t.ids[string(key)] = x
		t.ops = append(t.ops, op)
		t.kids = append(t.kids, slices.Clone(args))
	}
	return x
}

// Replace returns a term with another one at a place: the numbers of arguments from the root on.
func (t *Terms) Replace(x Term, path []int, with Term) Term {
	spine := make([]Term, len(path))
	for i, k := range path {
		spine[i] = x
		x = t.kids[x][k]
	}
	for i := len(path) - 1; i >= 0; i-- {
		args := slices.Clone(t.kids[spine[i]])
		args[path[i]] = with
		with = t.Make(t.ops[spine[i]], args...)
	}
	return with
}

// maxTermText bounds the text of a term.
const maxTermText = 1 << 16

// String returns a term as text. What goes beyond 64 KiB is cut off.
func (t *Terms) String(x Term) string {
	var b strings.Builder
	type todo struct {
		term Term
		text string
	}
	stack := []todo{{term: x}}
	for len(stack) > 0 && b.Len() < maxTermText {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if top.text != "" {
			b.WriteString(top.text)
			continue
		}
		op, args := t.ops[top.term], t.kids[top.term]
		name := t.g.Name(op)
		if p := t.g.Param(op); p != nil && len(args) == 0 {
			name = fmt.Sprint(p)
		} else if p != nil {
			name += fmt.Sprintf("{%v}", p)
		}
		if len(args) == 0 {
			b.WriteString(name)
			continue
		}
		b.WriteString("(" + name)
		stack = append(stack, todo{text: ")"})
		for _, a := range slices.Backward(args) {
			stack = append(stack, todo{term: a}, todo{text: " "})
		}
	}
	return b.String()
}
