package graphfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
)

// Parse reads a file. name names it in errors, which wrap [ErrSyntax] and give the line.
func Parse(name, text string, d Dialect) (*File, error) {
	if t, ok := d.(Tabler); ok {
		d = t.Open()
	}
	r := reader{name: name, rest: text, d: d}
	f := new(File)
	if err := r.head(f); err != nil {
		return nil, err
	}
	for again := true; again; {
		if err := r.file(f); err != nil {
			return nil, err
		}
		var err error
		if again, err = r.block(); err != nil {
			return nil, err
		}
	}
	if f.Graph == nil {
		return nil, r.fault("\"graph {\" is missing")
	}
	for _, g := range f.Graphs() {
		if err := watch(g); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSyntax, name, err)
		}
	}
	return f, nil
}

// watch attaches a destroy handler, whose orderings are part of what the graph means, if an op of
// the graph overwrites an input.
func watch(g *fgraph.FunctionGraph) error {
	for a := range g.Applies() {
		if fgraph.Destroys(a.Op()) {
			return fgraph.WatchDestroyers(g)
		}
	}
	return nil
}

// ParseHead reads only the fields in front of the first section. They may decide on the dialect.
func ParseHead(name, text string) (*File, error) {
	r := reader{name: name, rest: text}
	f := new(File)
	return f, r.head(f)
}

type reader struct {
	name    string
	rest    string // the text below the current line
	line    int
	text    string // the current line without spaces at its ends
	d       Dialect
	vars    map[string]*fgraph.Variable
	inputs  []*fgraph.Variable
	applies []*fgraph.Apply
}

func (r *reader) fault(format string, args ...any) error {
	return fmt.Errorf("%w: %s:%d: %w", ErrSyntax, r.name, r.line, fmt.Errorf(format, args...))
}

// next goes to the next line. It returns the line with its indentation, and false at the end.
func (r *reader) next() (line string, ok bool) {
	if r.rest == "" {
		return "", false
	}
	line, r.rest, _ = strings.Cut(r.rest, "\n")
	r.line++
	r.text = strings.TrimSpace(line)
	return line, true
}

// head reads the fields, up to the head of the first section.
func (r *reader) head(f *File) error {
	for {
		line, ok := r.next()
		switch {
		case !ok:
			return r.fault("\"graph {\" is missing")
		case sectionName(r.text) != "":
			return nil
		case strings.HasPrefix(line, "\t") && len(f.Head) > 0:
			h := &f.Head[len(f.Head)-1]
			h.Text += "\n" + strings.TrimSuffix(line[1:], "\r")
		case r.text == "" || r.text[0] == '#':
		default:
			name, text, ok := strings.Cut(r.text, ":")
			if !ok || !isFieldName(name) {
				return r.fault("neither a field nor \"graph {\": %q", fileio.Excerpt(r.text, 0))
			}
			f.Head = append(f.Head, Field{name, strings.TrimPrefix(text, " ")})
		}
	}
}

// block goes to the head of the next section. It returns false at the end.
func (r *reader) block() (bool, error) {
	for {
		if _, ok := r.next(); !ok {
			return false, nil
		}
		switch {
		case r.text == "" || r.text[0] == '#':
		case sectionName(r.text) != "":
			return true, nil
		default:
			return false, r.fault("nothing may follow \"}\" but a section, such as \"graph {\": %q", fileio.Excerpt(r.text, 0))
		}
	}
}

// file reads the section that the current line begins.
func (r *reader) file(f *File) error {
	if sectionName(r.text) != graphName {
		return r.section(f)
	}
	r.vars, r.inputs, r.applies = make(map[string]*fgraph.Variable), nil, nil
	g, err := r.graph()
	if err != nil {
		return err
	}
	if f.Graph == nil {
		f.Graph = g
	} else {
		f.More = append(f.More, g)
	}
	return nil
}

// graph reads the lines of a graph, "}" included.
func (r *reader) graph() (*fgraph.FunctionGraph, error) {
	for {
		if _, ok := r.next(); !ok {
			return nil, r.fault("\"return\" is missing")
		}
		var err error
		switch {
		case r.text == "" || r.text[0] == '#':
		case strings.HasPrefix(r.text, "input "):
			err = r.input()
		case r.text == "return" || strings.HasPrefix(r.text, "return "):
			return r.end()
		default:
			err = r.definition()
		}
		if err != nil {
			return nil, err
		}
	}
}

// end reads the outputs and "}".
func (r *reader) end() (*fgraph.FunctionGraph, error) {
	outputs, err := r.operands(strings.TrimPrefix(r.text, "return"))
	if err != nil {
		return nil, err
	}
	line := r.line
	for {
		if _, ok := r.next(); !ok {
			return nil, r.fault("\"}\" is missing")
		}
		if r.text == "}" {
			break
		}
		if r.text != "" && r.text[0] != '#' {
			return nil, r.fault("nothing may follow \"return\" but \"}\": %q", fileio.Excerpt(r.text, 0))
		}
	}
	g, err := fgraph.NewInOrder(r.inputs, outputs, r.needed(outputs))
	if err != nil {
		r.line = line
		return nil, r.fault("%w", err)
	}
	return g, nil
}

// needed returns the applies that the outputs depend on.
func (r *reader) needed(outputs []*fgraph.Variable) []*fgraph.Apply {
	need := make(map[*fgraph.Apply]bool, len(r.applies))
	want := func(list []*fgraph.Variable) {
		for _, v := range list {
			if v.Owner() != nil {
				need[v.Owner()] = true
			}
		}
	}
	want(outputs)
	for _, a := range slices.Backward(r.applies) {
		if need[a] {
			want(a.Inputs())
		}
	}
	return slices.DeleteFunc(r.applies, func(a *fgraph.Apply) bool { return !need[a] })
}

// input reads "input %x : type".
func (r *reader) input() error {
	ids, types, ok := strings.Cut(strings.TrimPrefix(r.text, "input "), " : ")
	if !ok {
		return r.fault("an input has the form \"input %%x : type\"")
	}
	t, err := r.d.ParseType(types)
	if err != nil {
		return r.fault("the type %q: %w", fileio.Excerpt(types, 0), err)
	}
	v := fgraph.NewInput(t, "")
	r.inputs = append(r.inputs, v)
	return r.declare(strings.TrimSpace(ids), v)
}

// definition reads "%1, %2 = op(%x, %y) @3 : type, type" or "%1 = constant {data} : type".
func (r *reader) definition() error {
	names, text, ok := cutOutside(r.text, " = ")
	if !ok {
		return r.fault("neither an input, a constant, an apply nor \"return\": %q", fileio.Excerpt(r.text, 0))
	}
	if data, ok := strings.CutPrefix(text, "constant {"); ok {
		return r.constant(names, data)
	}
	op, text, ok := cutOutside(text, "(")
	if !ok {
		return r.fault("\"(\" is missing after the op %q", fileio.Excerpt(op, 0))
	}
	args, text, ok := strings.Cut(text, ")")
	if !ok {
		return r.fault("\")\" is missing after the inputs of %q", fileio.Excerpt(op, 0))
	}
	origin := -1
	if number, ok := strings.CutPrefix(text, " @"); ok {
		digits, rest, _ := strings.Cut(number, " ")
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || n < 0 {
			return r.fault("the origin %q is not a number", fileio.Excerpt(digits, 0))
		}
		origin, text = int(n), " "+rest
	}
	types, ok := strings.CutPrefix(text, " : ")
	if !ok {
		return r.fault("the types of the results are missing after %q", fileio.Excerpt(op, 0))
	}
	return r.apply(names, op, args, types, origin)
}

func (r *reader) constant(name, text string) error {
	data, types, ok := cutOutside(text, "}")
	if !ok || !strings.HasPrefix(types, " : ") {
		return r.fault("a constant has the form \"%%1 = constant {data} : type\"")
	}
	t, err := r.d.ParseType(types[len(" : "):])
	if err != nil {
		return r.fault("the type %q: %w", fileio.Excerpt(types, 0), err)
	}
	value, err := r.d.ParseData(t, data)
	if err != nil {
		return r.fault("the constant %q: %w", fileio.Excerpt(data, 0), err)
	}
	return r.declare(name, fgraph.NewConstant(t, value, ""))
}

func (r *reader) apply(names, text, args, typeList string, origin int) error {
	op, err := r.d.ParseOp(text)
	if err != nil {
		return r.fault("the op %q: %w", fileio.Excerpt(text, 0), err)
	}
	inputs, err := r.operands(args)
	if err != nil {
		return err
	}
	var types []fgraph.Type
	for _, s := range splitOutside(typeList) {
		t, err := r.d.ParseType(s)
		if err != nil {
			return r.fault("the type %q: %w", fileio.Excerpt(s, 0), err)
		}
		types = append(types, t)
	}
	a := fgraph.NewApply(op, inputs, types...)
	a.SetOrigin(origin)
	list := splitOutside(names)
	if len(list) != len(types) {
		return r.fault("%d results, but %d types", len(list), len(types))
	}
	if err := r.d.Check(a); err != nil {
		return r.fault("%s: %w", fileio.Excerpt(text, 0), err)
	}
	r.applies = append(r.applies, a)
	for i, id := range list {
		if err := r.declare(id, a.Outputs()[i]); err != nil {
			return err
		}
	}
	return nil
}

// declare enters a variable under an id, behind which there may be its name in quotes.
func (r *reader) declare(id string, v *fgraph.Variable) error {
	id, quoted, hasName := strings.Cut(id, `"`)
	text, ok := strings.CutPrefix(id, "%")
	if _, err := strconv.ParseUint(text, 10, 32); !ok || err != nil && !isName(text) || hasName && err != nil {
		return r.fault("%q is not a variable, such as %%x, %%1 or %%1\"a name\"", fileio.Excerpt(id, 0))
	} else if err != nil {
		v.SetName(text)
	}
	if hasName {
		name, err := strconv.Unquote(`"` + quoted)
		if err != nil {
			return r.fault("the name of %s: %w", id, err)
		}
		v.SetName(name)
	}
	if r.vars[id] != nil {
		return r.fault("%s is there already", id)
	}
	r.vars[id] = v
	return nil
}

// operands returns the variables of a list of ids.
func (r *reader) operands(list string) ([]*fgraph.Variable, error) {
	var vars []*fgraph.Variable
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	for id := range strings.SplitSeq(list, ",") {
		id = strings.TrimSpace(id)
		v := r.vars[id]
		if v == nil {
			return nil, r.fault("there is no %q above", fileio.Excerpt(id, 0))
		}
		vars = append(vars, v)
	}
	return vars, nil
}

// cutOutside cuts a text at the first separator that is outside of braces, brackets and quotes.
func cutOutside(text, separator string) (before, after string, found bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		if depth == 0 && strings.HasPrefix(text[i:], separator) {
			return text[:i], text[i+len(separator):], true
		}
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return text, "", false
}

// splitOutside splits a text at commas outside of braces, brackets and quotes.
func splitOutside(text string) []string {
	var list []string
	for {
		part, rest, more := cutOutside(text, ",")
		list = append(list, strings.TrimSpace(part))
		if !more {
			return list
		}
		text = rest
	}
}
