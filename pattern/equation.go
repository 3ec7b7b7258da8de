package pattern

import "slices"

// Directions returns the rewrite, without the other direction if it is an equation, and then the
// other direction of an equation: what was the pattern has become the replacement, and has no
// guards. There "n@(op x)" means "(op x)", and so does "n" elsewhere in it.
func (r Rewrite) Directions() []Rewrite {
	if !r.Equation {
		return []Rewrite{r}
	}
	back := Pattern{Expr: r.Out, Guards: r.Back}
	return []Rewrite{{In: r.In, Out: unbound(r.Out)}, {In: back, Out: unbound(r.In.Expr)}}
}

// unbound returns a pattern as a replacement, in which nothing is bound.
func unbound(e Expr) Expr {
	binds := false
	named := make(map[string]Expr)
	Walk(e, func(e Expr) {
		if b, ok := e.(*Bind); ok {
			named[b.Name], binds = b.Expr, true
		}
	})
	if !binds {
		return e
	}
	// Each name may contain further names twice, so writing them out may take exponentially many
	// parts. From maxParts on, expressions are left as they are, and the names in them are reported
	// as mistakes of the rule.
	parts := 0
	return writtenOut(e, named, make(map[string]bool), &parts)
}

// writtenOut returns an expression in which names are replaced by what they are bound to.
// It leaves names that occur in what they are bound to, which are inside, and everything beyond
// maxParts.
func writtenOut(e Expr, named map[string]Expr, inside map[string]bool, parts *int) Expr {
	if *parts++; *parts > maxParts {
		return e
	}
	list := func(args []Expr) []Expr {
		args = slices.Clone(args)
		for i, a := range args {
			args[i] = writtenOut(a, named, inside, parts)
		}
		return args
	}
	within := func(name string, e Expr) Expr {
		was := inside[name]
		inside[name] = true
		e = writtenOut(e, named, inside, parts)
		inside[name] = was
		return e
	}
	switch e := e.(type) {
	case Name:
		if to, ok := named[string(e)]; ok && !inside[string(e)] {
			return within(string(e), to)
		}
	case *Bind:
		return within(e.Name, e.Expr)
	case Or:
		return Or(list(e))
	case Each:
		return Each{writtenOut(e.Expr, named, inside, parts)}
	case *Call:
		c := *e
		c.Args = list(e.Args)
		return &c
	}
	return e
}
