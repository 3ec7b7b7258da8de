package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Dialect is how graphs of tensors are written to files, see package graphfile: ops by the names
// that the language has for them, types as they print, constants to the bit. A Composite,
// an Epilogue and an Attention are written with their programs.
type Dialect struct {
	// Language has the names of ops. The default is [Default].
	Language *Language
}

// language returns the language of the dialect.
func (d Dialect) language() *Language {
	if d.Language == nil {
		return Default()
	}
	return d.Language
}

const compositeName, epilogueName, attentionName = "Composite", "Epilogue", "Attention"

// OpText returns an op as text.
func (d Dialect) OpText(op fgraph.Op) (string, error) {
	switch op := op.(type) {
	case *tensor.CompositeOp:
		text := compositeName + "{" + op.Program().Listing() + "}"
		for i := range op.Program().NumOutputs() {
			if in := op.Inplace(i); in >= 0 {
				text += fmt.Sprintf("{%d:%d}", i, in)
			}
		}
		return text, nil
	case *tensor.EpilogueOp:
		base, err := d.OpText(op.Base())
		if err != nil {
			return "", err
		}
		// The parameters of the product follow its name, since braces are not nested.
		name, params, _ := strings.Cut(base, "{")
		text := epilogueName + "{" + op.Program().Listing() + "}{" + name + "}"
		if params != "" {
			text += "{" + params
		}
		return text, nil
	case *tensor.AttentionOp:
		text := attentionName
		if op.Program() != nil {
			text += "{" + op.Program().Listing() + "}"
		}
		if op.Turned() {
			text += "{" + turnedParam + "}"
		}
		return text, nil
	case tensor.AssertOp:
		return "Assert{" + strconv.Quote(op.Message) + "}", nil
	}
	text := op.String()
	// Written only if reading gives it back: a text may say less than all of an op.
	if known, ok := d.language().Op(text); !ok || !fgraph.OpsEqual(known, op) {
		return "", fmt.Errorf("the op %s can't be written as text", text)
	}
	return text, nil
}

// ParseOp returns the op of a text.
func (d Dialect) ParseOp(text string) (fgraph.Op, error) {
	name, params, ok := cutParams(text)
	switch {
	case !ok:
	case name == compositeName && len(params) > 0:
		return parseComposite(params)
	case name == epilogueName && len(params) > 1:
		return d.parseEpilogue(params)
	case name == attentionName:
		return parseAttention(params)
	case name == "Assert" && len(params) > 0:
		// A message may have braces of its own, at which it was cut.
		message, err := strconv.Unquote(strings.Join(params, "}{"))
		return tensor.AssertOp{Message: message}, err
	default:
		if op, ok := d.language().Op(text); ok {
			return op, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no op %q%s", ErrSyntax, fileio.Excerpt(text, 0), d.language().Hint(text))
}

func parseComposite(params []string) (fgraph.Op, error) {
	p, err := array.ParseProgram(params[0])
	if err != nil {
		return nil, err
	}
	var aliases []fgraph.Alias
	for _, text := range params[1:] {
		out, in, _ := strings.Cut(text, ":")
		o, err := strconv.ParseUint(out, 10, 31)
		i, err2 := strconv.ParseUint(in, 10, 31)
		// The op has inputs to overwrite in an int8, plus 1.
		if err != nil || err2 != nil || int(o) >= p.NumOutputs() || int(i) >= min(p.NumInputs(), 127) {
			return nil, fmt.Errorf("%w: no output and input of a Composite: %q", ErrSyntax, fileio.Excerpt(text, 0))
		}
		aliases = append(aliases, fgraph.Alias{Output: int(o), Input: int(i)})
	}
	return tensor.NewComposite(p).WithInplace(aliases...), nil
}

// parseEpilogue makes a product with an epilogue of a program, the name of the product, and its
// parameters.
func (d Dialect) parseEpilogue(params []string) (fgraph.Op, error) {
	p, err := array.ParseProgram(params[0])
	if err != nil {
		return nil, err
	}
	text := params[1]
	if len(params) > 2 {
		// Braces are not nested in the text, so those of the product were cut as well.
		text += "{" + strings.Join(params[2:], "}{") + "}"
	}
	if base, ok := d.language().Op(text); ok {
		if op := tensor.NewEpilogue(base, p); op != nil {
			return op, nil
		}
	}
	return nil, fmt.Errorf("%w: no product with an epilogue: %q", ErrSyntax, fileio.Excerpt(text, 0))
}

// turnedParam says that the result of an Attention is turned.
const turnedParam = "turned"

// parseAttention makes an attention, perhaps of a program, whose result may be turned.
func parseAttention(params []string) (fgraph.Op, error) {
	rest := params
	turned := len(rest) > 0 && rest[len(rest)-1] == turnedParam
	if turned {
		rest = rest[:len(rest)-1]
	}
	var p *array.Program
	if len(rest) == 1 {
		var err error
		if p, err = array.ParseProgram(rest[0]); err != nil {
			return nil, err
		}
	}
	if len(rest) < 2 {
		if op := tensor.NewAttention(p, turned); op != nil {
			return op, nil
		}
	}
	return nil, fmt.Errorf("%w: no attention: %q", ErrSyntax, fileio.Excerpt(strings.Join(params, "}{"), 0))
}

// ParseType returns the type of a text.
func (Dialect) ParseType(text string) (fgraph.Type, error) { return parseType(text) }

// DataText returns the value of a constant as text.
func (Dialect) DataText(_ fgraph.Type, data any) (string, error) {
	a, ok := data.(*array.Array)
	if !ok {
		return "", fmt.Errorf("%w: a constant of Go type %T", tensor.ErrType, data)
	}
	return a.Encode(), nil
}

// ParseData returns the value of a constant.
func (Dialect) ParseData(t fgraph.Type, text string) (any, error) {
	typ, ok := t.(tensor.Type)
	if !ok {
		return nil, fmt.Errorf("%w: %v", tensor.ErrType, t)
	}
	a, err := array.Decode(typ.DType(), text)
	if err != nil {
		return nil, err
	}
	if have := tensor.TypeOf(tensor.Constant(a)); !compatible(typ, have) {
		return nil, fmt.Errorf("%w: a %v, not a %v", tensor.ErrType, have, typ)
	}
	return a, nil
}

// Check returns an error if an op can't be applied to its inputs, or gives other types than those
// of the outputs.
func (Dialect) Check(a *fgraph.Apply) error {
	op, ok := a.Op().(tensor.Op)
	if !ok {
		return fmt.Errorf("%w: %s is not an op of tensors", tensor.ErrType, a.Op())
	}
	types, err := op.Infer(a.Inputs())
	if err != nil {
		// A graph that fails when it runs is a graph: sizes may be known to contradict each other.
		var err2 error
		if types, err2 = op.Infer(ofUnknownSize(a.Inputs())); err2 != nil {
			return err
		}
	}
	if len(types) != len(a.Outputs()) {
		return fmt.Errorf("%w: %d results, not %d", tensor.ErrType, len(types), len(a.Outputs()))
	}
	for i, v := range a.Outputs() {
		if t := v.Type(); !compatible(t, types[i]) {
			return fmt.Errorf("%w: result %d is a %v, not a %v", tensor.ErrType, i, types[i], t)
		}
	}
	return nil
}

// compatible reports whether a tensor can have both types. Optimization may have learned more about
// one than about the other.
func compatible(a, b fgraph.Type) bool {
	t, ok := a.(tensor.Type)
	u, ok2 := b.(tensor.Type)
	if !ok || !ok2 || t.DType() != u.DType() || t.NDim() != u.NDim() || t.IsCSR() != u.IsCSR() {
		return false
	}
	for d := range t.NDim() {
		if m, n := t.Dim(d), u.Dim(d); m != n && m != tensor.Unknown && n != tensor.Unknown {
			return false
		}
	}
	return true
}

// ofUnknownSize returns variables of the types of others, but about whose values and sizes nothing
// is known.
func ofUnknownSize(vars []*fgraph.Variable) []*fgraph.Variable {
	list := make([]*fgraph.Variable, len(vars))
	for i, v := range vars {
		t, ok := v.Type().(tensor.Type)
		if ok && !t.IsCSR() {
			t = tensor.NewType(t.DType(), slices.Repeat([]int{tensor.Unknown}, t.NDim())...)
		}
		list[i] = fgraph.NewInput(t, "")
	}
	return list
}

// mutable is the feature of a graph that was read from a file, some of whose inputs may be
// destroyed.
type mutable struct{ inputs []*fgraph.Variable }

const mutableSection = "mutable"

// OnAttach does nothing.
func (m *mutable) OnAttach(*fgraph.FunctionGraph) error { return nil }

// Destroyable reports whether an input may be destroyed.
func (m *mutable) Destroyable(v *fgraph.Variable) bool { return slices.Contains(m.inputs, v) }

// GraphSection returns the inputs as a section of a graph file.
func (m *mutable) GraphSection(id func(*fgraph.Variable) string) (name string, lines []string, err error) {
	for _, v := range m.inputs {
		lines = append(lines, id(v))
	}
	return mutableSection, lines, nil
}

// SectionReader returns the reader for the inputs that may be destroyed.
func (Dialect) SectionReader(name string) graphfile.SectionReader {
	if name != mutableSection {
		return nil
	}
	return func(g *fgraph.FunctionGraph, s *graphfile.Section, lookup func(string) *fgraph.Variable) error {
		m := new(mutable)
		for i, id := range s.Lines {
			v := lookup(id)
			if v == nil || !v.IsInput() || m.Destroyable(v) {
				return s.Errorf(i, "%w: %q is not an input, or it is there already", ErrSyntax, fileio.Excerpt(id, 0))
			}
			m.inputs = append(m.inputs, v)
		}
		return g.Attach(m)
	}
}
