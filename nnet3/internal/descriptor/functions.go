package descriptor

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/nnet3/index"
)

// usage says how to call each function of the language.
var usage = map[string]string{
	"Append":       "Append(d, d, …)",
	"Const":        "Const(value, dimension)",
	"Failover":     "Failover(d, d)",
	"IfDefined":    "IfDefined(d)",
	"Offset":       "Offset(d, t) or Offset(d, t, x)",
	"ReplaceIndex": "ReplaceIndex(d, t, value) or ReplaceIndex(d, x, value)",
	"Round":        "Round(d, modulus)",
	"Scale":        "Scale(number, d)",
	"Sum":          "Sum(d, d, …)",
	"Switch":       "Switch(d, d, …)",
}

// descriptor reads one descriptor and returns its parts in normal form, nil after an error.
func (p *parser) descriptor(depth int) []Sum {
	switch {
	case p.err != nil:
		return nil
	case depth > maxDepth:
		return p.fail(p.pos, "more than %d functions inside each other", maxDepth)
	case p.tok == illegal:
		return p.fail(p.pos, "character %s is not part of the language", p.current())
	case p.tok != word:
		return p.fail(p.pos, "expected a node or a function, got %s", p.current())
	}
	pos, name := p.pos, p.text[p.pos:p.stop]
	p.next()
	if p.is('(') {
		p.next()
		return p.function(name, pos, depth)
	}
	// Nodes come after functions: a node may be called Sum, and is one where no parenthesis
	// follows.
	n, ok := p.node(name)
	if !ok {
		what := "no input node, component node or dim-range node is called " + strconv.Quote(fileio.Excerpt(name, 0))
		if usage[name] != "" {
			what = "expected an opening parenthesis after " + name
		} else if _, err := strconv.ParseFloat(name, 64); err == nil {
			what = "expected a node or a function, got the number " + fileio.Excerpt(name, 0)
		}
		p.err = &Error{Text: p.text, Pos: pos, What: what, Unknown: name, Err: ErrUnknownNode}
		return nil
	}
	return p.grow(pos, []Sum{{Kind: Simple, Forward: Forward{Kind: Node, Node: int32(n), Scale: 1}}})
}

// grow accounts for new nodes of the normal form.
func (p *parser) grow(pos int, parts []Sum) []Sum {
	if p.room -= len(parts); p.room < 0 {
		return p.fail(pos, "the descriptor becomes too large when it is multiplied out")
	}
	return parts
}

// function reads the arguments of a function, whose name is at pos, and the closing parenthesis.
func (p *parser) function(name string, pos, depth int) (parts []Sum) {
	switch name {
	case "Append", "Sum", "Switch":
		return p.variadic(name, pos, depth)
	case "Failover":
		parts = p.failover(pos, depth)
	case "IfDefined":
		parts = p.descriptor(depth + 1)
		for i := range parts {
			parts[i] = Sum{Kind: IfDefined, Args: []Sum{parts[i]}}
		}
	case "Const":
		value := p.real("the value", name)
		p.expect(',', name)
		parts = []Sum{{Kind: Const, Value: value, Dim: int(p.integer(1, "the dimension", name))}}
	case "Scale":
		parts = p.scale(depth)
	case "Offset", "Round", "ReplaceIndex":
		parts = p.forward(name, pos, depth)
	default:
		what := "there is no function " + fileio.Excerpt(name, 0)
		what += spell.Hint(name, slices.Sorted(maps.Keys(usage)))
		return p.fail(pos, "%s", what)
	}
	p.expect(')', name)
	return p.grow(pos, parts)
}

// variadic reads one or more arguments and the closing parenthesis.
func (p *parser) variadic(name string, pos, depth int) []Sum {
	var args [][]Sum
	var flat []Sum // of Append
	for more := true; more; {
		parts := p.descriptor(depth + 1)
		if name == "Append" {
			if len(flat)+len(parts) > cap(flat) {
				flat = slices.Grow(flat, len(flat)+len(parts)) // append alone grows by a quarter, which copies a long list more often
			}
			flat = append(flat, parts...)
		} else {
			args = append(args, parts)
		}
		if more = p.is(','); more {
			p.next()
		} else {
			p.expect(')', name)
		}
		if p.err != nil {
			return nil
		}
	}
	switch {
	case name == "Append":
		return p.grow(pos, flat)
	case !p.sameParts(name, pos, args):
		return nil
	case name == "Sum":
		return p.sum(pos, args)
	}
	return p.switched(pos, args)
}

// sameParts checks that all arguments have the same number of parts, so that a function of Appends
// becomes an Append of functions.
func (p *parser) sameParts(name string, pos int, args [][]Sum) bool {
	for i, a := range args {
		if len(a) != len(args[0]) {
			p.fail(pos, "argument 1 of %s is made of %d appended parts and argument %d of %d: they must correspond",
				name, len(args[0]), i+1, len(a))
			return false
		}
	}
	return true
}

// sum adds up the arguments part by part.
func (p *parser) sum(pos int, args [][]Sum) []Sum {
	if len(args) == 1 {
		return args[0]
	}
	out := make([]Sum, len(args[0]))
	for i := range out {
		terms := lists.Map(args, func(a []Sum) Sum { return a[i] })
		// Kaldi prints Sum(a, Sum(b, c)) for a sum of three, so nested sums at the end become one
		// list. Elsewhere the nesting is an order of additions, and stays.
		if last := terms[len(terms)-1]; last.Kind == Add {
			terms = append(terms[:len(terms)-1], last.Args...)
		}
		out[i] = Sum{Kind: Add, Args: terms}
	}
	return p.grow(pos, out)
}

// switched makes a Switch of the arguments part by part.
func (p *parser) switched(pos int, args [][]Sum) []Sum {
	out := make([]Sum, len(args[0]))
	for i := range out {
		src := make([]Forward, len(args))
		for j, a := range args {
			// The normal form has functions of indexes inside of sums of rows. A Switch leads an
			// index, so it can't choose between sums.
			if a[i].Kind != Simple {
				return p.fail(pos, "argument %d of Switch must lead to a node: Sum, Failover, IfDefined and Const can't be inside Switch", j+1)
			}
			src[j] = a[i].Forward
		}
		out[i] = Sum{Kind: Simple, Forward: Forward{Kind: Switch, Src: src}}
	}
	return p.grow(pos, out)
}

// failover reads the arguments of Failover.
func (p *parser) failover(pos, depth int) []Sum {
	first := p.descriptor(depth + 1)
	p.expect(',', "Failover")
	second := p.descriptor(depth + 1)
	if p.err != nil || !p.sameParts("Failover", pos, [][]Sum{first, second}) {
		return nil
	}
	for i := range first {
		first[i] = Sum{Kind: Failover, Args: []Sum{first[i], second[i]}}
	}
	return first
}

// scale reads the arguments of Scale and multiplies the leaves, which belong to the parser alone.
func (p *parser) scale(depth int) []Sum {
	pos := p.pos
	alpha := p.real("the scale", "Scale")
	p.expect(',', "Scale")
	parts := p.descriptor(depth + 1)
	finite := true
	multiply := func(v *float32) {
		*v *= alpha
		finite = finite && !math.IsInf(float64(*v), 0)
	}
	// The normal form has scales at nodes only: a scaled Sum is the Sum of scaled terms.
	leaves(parts, func(s *Sum) {
		if s.Kind == Const {
			multiply(&s.Value)
			return
		}
		s.Forward.walk(func(f *Forward) {
			if f.Kind == Node {
				multiply(&f.Scale)
			}
		})
	})
	if !finite {
		return p.fail(pos, "the product of the scales is not finite")
	}
	return parts
}

// forward reads the arguments of Offset, Round or ReplaceIndex and applies it to every term.
func (p *parser) forward(name string, pos, depth int) []Sum {
	parts := p.descriptor(depth + 1)
	p.expect(',', name)
	outer := p.forwardArguments(name)
	if outer.Kind == Offset && outer.Shift == (index.Index{}) {
		return parts
	}
	leaves(parts, func(s *Sum) {
		if s.Kind == Simple && p.err == nil {
			p.apply(pos, s, outer)
		}
	})
	return parts
}

// forwardArguments reads the arguments of Offset, Round or ReplaceIndex after the descriptor.
func (p *parser) forwardArguments(name string) (f Forward) {
	switch name {
	case "Offset":
		f.Kind = Offset
		f.Shift.T = p.integer(math.MinInt32, "the offset in t", name)
		if p.err == nil && p.is(',') {
			p.next()
			f.Shift.X = p.integer(math.MinInt32, "the offset in x", name)
		}
	case "Round":
		f.Kind, f.Modulus = Round, p.integer(1, "the modulus", name)
	default:
		switch v := p.text[p.pos:p.stop]; {
		case p.tok == word && v == "t":
			f.Kind = ReplaceT
		case p.tok == word && v == "x":
			f.Kind = ReplaceX
		default:
			p.fail(p.pos, "expected t or x, got %s; usage: %s", p.current(), usage[name])
			return f
		}
		p.next()
		p.expect(',', name)
		f.Value = p.integer(math.MinInt32, "the value", name)
	}
	return f
}

// apply puts outer around the term s.
func (p *parser) apply(pos int, s *Sum, outer Forward) {
	// Offsets of offsets add up. That keeps the form flat for the most frequent function, and equal
	// descriptors equal.
	inner := &s.Forward
	if outer.Kind != Offset || inner.Kind != Offset {
		p.grow(pos, []Sum{*s})
		outer.Src = []Forward{*inner}
		*inner = outer
		return
	}
	t := int64(inner.Shift.T) + int64(outer.Shift.T)
	x := int64(inner.Shift.X) + int64(outer.Shift.X)
	if t != int64(int32(t)) || x != int64(int32(x)) {
		p.fail(pos, "the sum of the offsets is out of range")
		return
	}
	inner.Shift.T, inner.Shift.X = int32(t), int32(x)
	if inner.Shift == (index.Index{}) {
		*inner = inner.Src[0]
	}
}
