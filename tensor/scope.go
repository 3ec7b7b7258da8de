package tensor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// A Scope is the variables that expressions may name.
type Scope struct {
	byName map[string]*fgraph.Variable
	inputs []*fgraph.Variable
	// Strict makes a name that is not declared an error. Otherwise it becomes a float64 scalar.
	Strict bool
}

// NewScope returns a scope with some inputs, which are known by their names.
func NewScope(inputs ...*fgraph.Variable) *Scope {
	s := &Scope{byName: make(map[string]*fgraph.Variable)}
	for _, v := range inputs {
		s.declare(v)
	}
	return s
}

// NewScopeOf returns a scope in which names stand for variables, which need not be inputs.
func NewScopeOf(named map[string]*fgraph.Variable) *Scope {
	s := NewScope()
	s.Strict = true
	for name, v := range named {
		s.byName[name] = v
	}
	return s
}

func (s *Scope) declare(v *fgraph.Variable) {
	s.byName[v.Name()] = v
	s.inputs = append(s.inputs, v)
}

// Inputs returns the variables in the order of their declaration.
func (s *Scope) Inputs() []*fgraph.Variable { return s.inputs }

// Lookup returns the variable of a name, nil if it is not declared.
func (s *Scope) Lookup(name string) *fgraph.Variable { return s.byName[name] }

// Declare declares variables as text: names, a colon and a type, groups apart by semicolons:
//
//	x y: vector; X: matrix; s: scalar; t: tensor3; f: float32 matrix; i: int64[3, ?]
//
// The type of elements is float64 unless another one stands first. Besides those above there are row, col, tensor4 and csr.
func (s *Scope) Declare(text string) error {
	offset := 0
	for _, group := range strings.Split(text, ";") {
		names, typ, ok := strings.Cut(group, ":")
		if strings.TrimSpace(group) == "" {
			offset += len(group) + 1
			continue
		}
		if !ok {
			return &SyntaxError{offset + 1, fmt.Sprintf("%q declares no type, as \"x y: vector\" does", strings.TrimSpace(group)), nil}
		}
		t, err := ParseType(typ)
		if err != nil {
			return &SyntaxError{offset + len(names) + 2, err.Error(), err}
		}
		for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
			tokens, err := lex(name)
			if err != nil || len(tokens) != 2 || tokens[0].kind != tokenName || strings.Contains(name, "{") {
				return &SyntaxError{offset + 1, fmt.Sprintf("%q is no name", name), nil}
			}
			if s.byName[name] != nil {
				return &SyntaxError{offset + 1, fmt.Sprintf("%s is declared twice", name), nil}
			}
			s.declare(NewInput(t, name))
		}
		offset += len(group) + 1
	}
	return nil
}

// ParseType reads a type as Type.String prints it, or with the type of elements left out.
func ParseType(text string) (t Type, err error) {
	text = strings.TrimSpace(text)
	dtype, rest := Float64, text
	for d := Bool; d <= Float64; d++ {
		if after, ok := strings.CutPrefix(text, d.String()); ok {
			dtype, rest = d, strings.TrimSpace(after)
		}
	}
	shape, ok := map[string][]int{"": {}, "scalar": {}, "vector": {Unknown}, "matrix": {Unknown, Unknown}, "row": {1, Unknown}, "col": {Unknown, 1},
		"tensor3": {Unknown, Unknown, Unknown}, "tensor4": {Unknown, Unknown, Unknown, Unknown}}[rest]
	switch {
	case text == "":
	case ok:
		return NewType(dtype, shape...), nil
	case rest == "csr" || rest == "csr matrix":
		if dtype.IsFloat() {
			return CSRType(dtype), nil
		}
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		op, ok := specifyNamed([]string{rest})
		if rest == "[]" {
			return ScalarType(dtype), nil
		}
		if ok {
			return op.(SpecifyShapeOp).t.With(dtype), nil
		}
	}
	for _, n := range strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) {
		if _, err := strconv.ParseInt(n, 10, 32); errors.Is(err, strconv.ErrRange) {
			return t, fmt.Errorf("%w: the size %s is too large, the largest one is %d", ErrSyntax, n, mostSize)
		}
	}
	return t, fmt.Errorf("%w: %q is no type; there are scalar, vector, row, col, matrix, tensor3, tensor4, csr and float64[2, ?]", ErrSyntax, text)
}

// Parse reads an expression as a Python user writes it, or as a graph prints:
//
//	(y + z)*x/(y + z)      X.T      x[1:3]      sum(X, axis=0)      true_div(mul(add(y, z), x), add(y, z))
//
// Numbers take the type of what they are combined with. A constant of one element prints as a number, and is read as one, so that it
// may have another type then. A list, or a tuple, stands for several outputs; one inside of an expression is a tensor. The error is
// a *SyntaxError.
func (s *Scope) Parse(text string) ([]*fgraph.Variable, error) {
	var outputs []*fgraph.Variable
	err := s.parse(text, func(v value) {
		if v.kind != kindList {
			v.list = []value{v}
		}
		for _, x := range v.list {
			outputs = append(outputs, x.tensor("expression"))
		}
		if len(outputs) == 0 {
			panic(&SyntaxError{1, "no outputs", nil})
		}
	})
	if err != nil {
		return nil, err
	}
	return outputs, nil
}

// ParseOne is Parse for one expression, of which a list is a tensor as well: [1, 2] is a vector.
func (s *Scope) ParseOne(text string) (*fgraph.Variable, error) {
	var output *fgraph.Variable
	err := s.parse(text, func(v value) { output = v.tensor("expression") })
	return output, err
}

// MustParse is ParseOne for an expression that is part of a program: it panics on an error.
func (s *Scope) MustParse(text string) *fgraph.Variable {
	v, err := s.ParseOne(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return v
}

// parse reads an expression and hands it to use. What both of them panic with is the error.
func (s *Scope) parse(text string, use func(value)) (err error) {
	tokens, err := lex(text)
	if err != nil {
		return err
	}
	p := &parser{scope: s, tokens: tokens, shared: make(map[string]value)}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *SyntaxError:
			err = e
		case *Error:
			err = &SyntaxError{p.at + 1, e.Error(), e}
		default:
			panic(e)
		}
	}()
	v := p.expression(0)
	if t := p.peek(); t.kind != tokenEnd {
		if hint, ok := keywords[t.text]; ok {
			p.fail("%s does not work on tensors; %s", t.text, hint)
		}
		p.fail("unexpected %s", t)
	}
	use(v)
	return nil
}
