package expr

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Scope holds the variables that expressions may name.
type Scope struct {
	lang   *Language
	byName map[string]*fgraph.Variable
	inputs []*fgraph.Variable
	// Strict makes an undeclared name an error. Otherwise it becomes a float64 scalar.
	Strict bool
}

// NewScope is [Language.NewScope] of the default language.
func NewScope(inputs ...*fgraph.Variable) *Scope { return Default().NewScope(inputs...) }

func (s *Scope) declare(v *fgraph.Variable) {
	s.byName[v.Name()] = v
	s.inputs = append(s.inputs, v)
}

// Inputs returns the inputs in the order of their declaration.
func (s *Scope) Inputs() []*fgraph.Variable { return s.inputs }

// Lookup returns the variable with the given name, or nil.
func (s *Scope) Lookup(name string) *fgraph.Variable { return s.byName[name] }

// Declare declares inputs: names, a colon and a type, in groups separated by semicolons.
//
//	x y: vector; X: matrix; s: scalar; t: tensor3; f: float32 matrix; i: int64[3, ?]
//
// The element type is float64 unless another one precedes the shape. There are also row, col,
// tensor4 and csr. The error is a [*SyntaxError].
func (s *Scope) Declare(text string) error {
	offset := 0
	for _, group := range strings.Split(text, ";") {
		if strings.TrimSpace(group) != "" {
			if err := s.declareGroup(group, offset); err != nil {
				return err
			}
		}
		offset += len(group) + 1
	}
	return nil
}

// declareGroup declares the names of one group, which starts at an offset of the whole text.
func (s *Scope) declareGroup(group string, offset int) error {
	blanks := func(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\n")) }
	names, typ, ok := strings.Cut(group, ":")
	if !ok {
		return &SyntaxError{offset + blanks(group) + 1, fmt.Sprintf("%q has no type; write for example \"x y: vector\"", fileio.Excerpt(strings.TrimSpace(group), 0)), nil}
	}
	t, err := parseType(typ)
	if err != nil {
		return &SyntaxError{offset + len(names) + 1 + blanks(typ) + 1, err.Error(), err}
	}
	at := 0
	for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' }) {
		// The fields have no positions, and an error needs a column.
		at += strings.Index(names[at:], name)
		column := offset + at + 1
		at += len(name)
		// What the lexer does not take for a name can't be used in an expression.
		tokens, err := lex(name)
		if err != nil || len(tokens) != 2 || tokens[0].kind != tokenName || strings.Contains(name, "{") {
			return &SyntaxError{column, fmt.Sprintf("%q is not a name", fileio.Excerpt(name, 0)), nil}
		}
		if s.byName[name] != nil {
			return &SyntaxError{column, fmt.Sprintf("%s is declared twice", fileio.Excerpt(name, 0)), nil}
		}
		s.declare(fgraph.NewInput(t, name))
	}
	return nil
}

// shapes are the shapes that have a name.
var shapes = map[string][]int{
	"": {}, "scalar": {}, "vector": {tensor.Unknown}, "matrix": {tensor.Unknown, tensor.Unknown}, "row": {1, tensor.Unknown}, "col": {tensor.Unknown, 1},
	"tensor3": {tensor.Unknown, tensor.Unknown, tensor.Unknown}, "tensor4": {tensor.Unknown, tensor.Unknown, tensor.Unknown, tensor.Unknown},
}

// parseType reads a type as [tensor.Type] prints it. The element type may be missing: float64.
func parseType(text string) (t tensor.Type, err error) {
	text = strings.TrimSpace(text)
	dtype, rest := array.Float64, text
	for _, d := range array.DTypes() {
		if after, ok := strings.CutPrefix(text, d.String()); ok {
			dtype, rest = d, strings.TrimSpace(after)
		}
	}
	shape, ok := shapes[rest]
	if !ok && rest != "[]" {
		shape, ok = parseShape(rest)
	}
	switch {
	case text == "":
	case ok || rest == "[]":
		return tensor.NewType(dtype, shape...), nil
	case (rest == "csr" || rest == "csr matrix") && dtype >= array.Float32:
		return tensor.CSRType(dtype), nil
	}
	// There is an error in any case. A size that is too large looks right, so the message has to tell.
	for _, n := range strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) {
		if _, err := strconv.ParseInt(n, 10, 32); errors.Is(err, strconv.ErrRange) {
			return t, fmt.Errorf("%w: the size %s is too large, the largest one is %d", ErrSyntax, fileio.Excerpt(n, 0), math.MaxInt32)
		}
	}
	return t, fmt.Errorf("%w: %q is not a type; there are scalar, vector, row, col, matrix, tensor3, tensor4, csr and float64[2, ?]%s", ErrSyntax, fileio.Excerpt(text, 0), spell.Hint(rest, append(slices.Sorted(maps.Keys(shapes)), "csr")))
}

// parseShape reads for example "[2, ?]".
func parseShape(text string) ([]int, bool) {
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return nil, false
	}
	shape, ok := integers(strings.Trim(text, "[]"), "?", math.MaxInt32)
	return shape, ok && len(shape) > 0 && len(shape) <= array.MaxDims
}

// Parse reads an expression as a Python user writes it, or as a graph prints:
//
//	(y + z)*x/(y + z)      X.T      x[1:3]      sum(X, axis=0)      true_div(mul(add(y, z), x), add(y, z))
//
// Numbers take the type of what they are combined with. A constant of one element prints as a
// number, and reads as one, so that it may have another type then. A list or a tuple gives several
// outputs; within an expression it is a tensor. The error is a [*SyntaxError].
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

// ParseOne is Parse for one tensor, which a list is as well: [1, 2] is a vector.
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

// parse reads an expression and calls use with it. It returns the errors that parser and use panic
// with.
func (s *Scope) parse(text string, use func(value)) (err error) {
	tokens, err := lex(text)
	if err != nil {
		return err
	}
	p := &parser{scope: s, tokens: tokens, shared: make(map[string]value)}
	// Functions that build expressions panic with their errors, or each result in the middle of a text would
	// need a check.
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *SyntaxError:
			err = e
		case *tensor.Error:
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
