package descriptor

import (
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/index"
)

// descriptor reads one descriptor and returns its parts in normal form.
func (p *parser) descriptor(depth int) ([]Sum, error) {
	if depth > maxDepth {
		return nil, p.errorf(p.pos, "more than %d functions inside each other", maxDepth)
	}
	switch {
	case p.tok == illegal:
		return nil, p.errorf(p.pos, "character %s is not part of the language", p.current())
	case p.tok != word:
		return nil, p.errorf(p.pos, "expected a node or a function, got %s", p.current())
	}
	pos, name := p.pos, p.text[p.pos:p.stop]
	p.next()
	if p.is('(') {
		p.next()
		return p.function(name, pos, depth)
	}
	n, ok := p.node(name)
	if !ok {
		what := "no input node, component node or dim-range node is called " + strconv.Quote(clip(name))
		if usage(name) != "" {
			what = "expected an opening parenthesis after " + name
		} else if _, err := strconv.ParseFloat(name, 64); err == nil {
			what = "expected a node or a function, got the number " + clip(name)
		}
		return nil, &Error{Text: p.text, Pos: pos, What: what, Unknown: name, Err: ErrUnknownNode}
	}
	return p.grow(pos, []Sum{{Kind: Simple, Forward: Forward{Kind: Node, Node: int32(n), Scale: 1}}})
}

// grow accounts for new nodes of the normal form.
func (p *parser) grow(pos int, parts []Sum) ([]Sum, error) {
	if p.room -= len(parts); p.room < 0 {
		return nil, p.errorf(pos, "the descriptor becomes too large when it is multiplied out")
	}
	return parts, nil
}

// usage tells how a function is called, "" if there is no such function.
func usage(name string) string {
	switch name {
	case "Append", "Sum", "Switch":
		return name + "(d, d, …)"
	case "Failover":
		return "Failover(d, d)"
	case "IfDefined":
		return "IfDefined(d)"
	case "Const":
		return "Const(value, dimension)"
	case "Scale":
		return "Scale(number, d)"
	case "Offset":
		return "Offset(d, t) or Offset(d, t, x)"
	case "Round":
		return "Round(d, modulus)"
	case "ReplaceIndex":
		return "ReplaceIndex(d, t, value) or ReplaceIndex(d, x, value)"
	}
	return ""
}

// Functions returns the names of the functions of the language in alphabetical order.
func Functions() []string {
	return []string{"Append", "Const", "Failover", "IfDefined", "Offset", "ReplaceIndex", "Round", "Scale", "Sum", "Switch"}
}

// function reads the arguments of a function, whose name is at pos, and the parenthesis after them.
func (p *parser) function(name string, pos, depth int) ([]Sum, error) {
	var parts []Sum
	var err error
	switch name {
	case "Append", "Sum", "Switch":
		return p.variadic(name, pos, depth)
	case "Failover":
		parts, err = p.failover(pos, depth)
	case "IfDefined":
		if parts, err = p.descriptor(depth + 1); err == nil {
			for i := range parts {
				parts[i] = Sum{Kind: IfDefined, Args: []Sum{parts[i]}}
			}
		}
	case "Const":
		parts, err = p.constant()
	case "Scale":
		parts, err = p.scale(depth)
	case "Offset", "Round", "ReplaceIndex":
		parts, err = p.forward(name, pos, depth)
	default:
		what := "there is no function " + clip(name)
		if s := Nearest(name, Functions()); s != "" {
			what += "; did you mean " + s + "?"
		}
		return nil, p.errorf(pos, "%s", what)
	}
	if err != nil {
		return nil, err
	}
	if err := p.expect(')', name); err != nil {
		return nil, err
	}
	return p.grow(pos, parts)
}

// variadic reads one or more arguments and the parenthesis after them.
func (p *parser) variadic(name string, pos, depth int) ([]Sum, error) {
	var args [][]Sum
	var flat []Sum // of Append
	for {
		parts, err := p.descriptor(depth + 1)
		if err != nil {
			return nil, err
		}
		if name == "Append" {
			if len(flat)+len(parts) > cap(flat) {
				flat = slices.Grow(flat, len(flat)+len(parts)) // append alone grows by a quarter, which copies a long list more often
			}
			flat = append(flat, parts...)
		} else {
			args = append(args, parts)
		}
		if p.is(')') {
			p.next()
			break
		}
		if !p.is(',') {
			return nil, p.expect(')', name)
		}
		p.next()
	}
	if name == "Append" {
		return p.grow(pos, flat)
	}
	if err := p.sameParts(name, pos, args); err != nil {
		return nil, err
	}
	if name == "Sum" {
		return p.sum(pos, args)
	}
	return p.switched(pos, args)
}

// sameParts checks that all arguments have equally many parts, so that a function of Appends becomes an Append of
// functions.
func (p *parser) sameParts(name string, pos int, args [][]Sum) error {
	for i, a := range args {
		if len(a) != len(args[0]) {
			return p.errorf(pos, "argument 1 of %s is made of %d appended parts and argument %d of %d: they must correspond",
				name, len(args[0]), i+1, len(a))
		}
	}
	return nil
}

// sum adds up the arguments part by part.
func (p *parser) sum(pos int, args [][]Sum) ([]Sum, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	out := make([]Sum, len(args[0]))
	for i := range out {
		terms := make([]Sum, 0, len(args))
		for _, a := range args {
			terms = append(terms, a[i])
		}
		if last := terms[len(terms)-1]; last.Kind == Add {
			terms = append(terms[:len(terms)-1], last.Args...)
		}
		out[i] = Sum{Kind: Add, Args: terms}
	}
	return p.grow(pos, out)
}

// switched makes a Switch of the arguments part by part.
func (p *parser) switched(pos int, args [][]Sum) ([]Sum, error) {
	out := make([]Sum, len(args[0]))
	for i := range out {
		src := make([]Forward, len(args))
		for j, a := range args {
			if a[i].Kind != Simple {
				return nil, p.errorf(pos, "argument %d of Switch must lead to a node: Sum, Failover, IfDefined and Const can't be inside Switch", j+1)
			}
			src[j] = a[i].Forward
		}
		out[i] = Sum{Kind: Simple, Forward: Forward{Kind: Switch, Src: src}}
	}
	return p.grow(pos, out)
}

// failover reads the arguments of Failover.
func (p *parser) failover(pos, depth int) ([]Sum, error) {
	first, err := p.descriptor(depth + 1)
	if err != nil {
		return nil, err
	}
	if err := p.expect(',', "Failover"); err != nil {
		return nil, err
	}
	second, err := p.descriptor(depth + 1)
	if err != nil {
		return nil, err
	}
	if err := p.sameParts("Failover", pos, [][]Sum{first, second}); err != nil {
		return nil, err
	}
	for i := range first {
		first[i] = Sum{Kind: Failover, Args: []Sum{first[i], second[i]}}
	}
	return first, nil
}

// constant reads the arguments of Const.
func (p *parser) constant() ([]Sum, error) {
	v, err := p.real("the value", "Const")
	if err != nil {
		return nil, err
	}
	if err := p.expect(',', "Const"); err != nil {
		return nil, err
	}
	dim, err := p.integer(1, "the dimension", "Const")
	if err != nil {
		return nil, err
	}
	return []Sum{{Kind: Const, Value: v, Dim: int(dim)}}, nil
}

// scale reads the arguments of Scale and multiplies the scale into the leaves.
func (p *parser) scale(depth int) ([]Sum, error) {
	pos := p.pos
	alpha, err := p.real("the scale", "Scale")
	if err != nil {
		return nil, err
	}
	if err := p.expect(',', "Scale"); err != nil {
		return nil, err
	}
	parts, err := p.descriptor(depth + 1)
	if err != nil {
		return nil, err
	}
	finite := true
	for i := range parts {
		parts[i].scale(alpha, &finite)
	}
	if !finite {
		return nil, p.errorf(pos, "the product of the scales is not finite")
	}
	return parts, nil
}

// scale multiplies all leaves. The tree belongs to the parser alone.
func (s *Sum) scale(alpha float32, finite *bool) {
	check := func(v float32) float32 {
		if math.IsInf(float64(v), 0) {
			*finite = false
		}
		return v
	}
	switch s.Kind {
	case Const:
		s.Value = check(s.Value * alpha)
	case Simple:
		s.Forward.walk(func(f *Forward) {
			if f.Kind == Node {
				f.Scale = check(f.Scale * alpha)
			}
		})
	}
	for i := range s.Args {
		s.Args[i].scale(alpha, finite)
	}
}

// forward reads the arguments of Offset, Round or ReplaceIndex and applies it to every term.
func (p *parser) forward(name string, pos, depth int) ([]Sum, error) {
	parts, err := p.descriptor(depth + 1)
	if err != nil {
		return nil, err
	}
	if err := p.expect(',', name); err != nil {
		return nil, err
	}
	outer, err := p.forwardArguments(name)
	if err != nil {
		return nil, err
	}
	if outer.Kind == Offset && outer.Shift == (index.Index{}) {
		return parts, nil
	}
	for i := range parts {
		if err := p.apply(pos, &parts[i], outer); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// forwardArguments reads what follows the descriptor in Offset, Round or ReplaceIndex.
func (p *parser) forwardArguments(name string) (f Forward, err error) {
	switch name {
	case "Offset":
		f.Kind = Offset
		if f.Shift.T, err = p.integer(math.MinInt32, "the offset in t", name); err == nil && p.is(',') {
			p.next()
			f.Shift.X, err = p.integer(math.MinInt32, "the offset in x", name)
		}
	case "Round":
		f.Kind = Round
		f.Modulus, err = p.integer(1, "the modulus", name)
	default:
		f.Kind = ReplaceIndex
		switch v := p.text[p.pos:p.stop]; {
		case p.tok == word && v == "t":
		case p.tok == word && v == "x":
			f.Variable = X
		default:
			return f, p.errorf(p.pos, "expected t or x, got %s; usage: %s", p.current(), usage(name))
		}
		p.next()
		if err = p.expect(',', name); err == nil {
			f.Value, err = p.integer(math.MinInt32, "the value", name)
		}
	}
	return f, err
}

// apply puts outer around every term of s.
func (p *parser) apply(pos int, s *Sum, outer Forward) error {
	if s.Kind == Simple {
		if inner := &s.Forward; outer.Kind == Offset && inner.Kind == Offset {
			t := int64(inner.Shift.T) + int64(outer.Shift.T)
			x := int64(inner.Shift.X) + int64(outer.Shift.X)
			if t != int64(int32(t)) || x != int64(int32(x)) {
				return p.errorf(pos, "the sum of the offsets is out of range")
			}
			inner.Shift.T, inner.Shift.X = int32(t), int32(x)
			if inner.Shift == (index.Index{}) {
				*inner = inner.Src[0]
			}
			return nil
		}
		if _, err := p.grow(pos, []Sum{*s}); err != nil {
			return err
		}
		outer.Src = []Forward{s.Forward}
		s.Forward = outer
	}
	for i := range s.Args {
		if err := p.apply(pos, &s.Args[i], outer); err != nil {
			return err
		}
	}
	return nil
}
