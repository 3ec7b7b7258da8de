package onnxpass

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
)

//go:embed testdata/*.txt
var caseFiles embed.FS

// A Case is a graph on which a rule fires, or must not, as the tests of the rules have them. Programs
// hold them as well: rules that are Go functions have no pattern, so the machine that checks rules can
// fire them on these graphs only.
type Case struct {
	Rule  string
	Graph string // see ParseGraph
	Want  string // the graph that the rule makes in one walk, "!" where it must not fire
	File  string
	Line  int
}

// Cases returns the cases of all rules.
func Cases() []Case {
	names, err := fs.Glob(caseFiles, "testdata/*.txt")
	if err != nil {
		panic(err) // a fault of the program
	}
	var list []Case
	for _, name := range names {
		text, err := caseFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			c := Case{File: name, Line: i + 1}
			c.Rule, line, _ = strings.Cut(line, " | ")
			c.Graph, c.Want, _ = strings.Cut(line, " | ")
			list = append(list, c)
		}
	}
	return list
}

// ParseGraph reads a graph in short: statements with semicolons between them, whose types are inferred.
//
//	x: float[n,3]; s = int64[2] [6,4]; y, z = Split{axis=0}/2(x); y, z
//
// The first statement is an input, the second a constant, the third an apply, where _ is an input that is
// left out, and the last one has the outputs. The ops are those of operators.
func ParseGraph(text string, operators *ir.Operators) (*fgraph.FunctionGraph, error) {
	p := parsing{operators, map[string]*fgraph.Variable{"_": ir.Missing()}, nil}
	statements := strings.Split(text, ";")
	for _, s := range statements[:len(statements)-1] {
		if err := p.statement(strings.TrimSpace(s)); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	outputs, err := p.values(statements[len(statements)-1])
	if err != nil {
		return nil, err
	}
	return fgraph.New(p.inputs, outputs)
}

type parsing struct {
	operators *ir.Operators
	known     map[string]*fgraph.Variable
	inputs    []*fgraph.Variable
}

func (p *parsing) values(list string) ([]*fgraph.Variable, error) {
	var vars []*fgraph.Variable
	for _, name := range strings.Split(list, ",") {
		v := p.known[strings.TrimSpace(name)]
		if v == nil {
			return nil, fmt.Errorf("nothing computes %q", name)
		}
		vars = append(vars, v)
	}
	return vars, nil
}

func (p *parsing) statement(s string) error {
	if name, typ, ok := strings.Cut(s, ": "); ok && !strings.Contains(name, "=") {
		t, err := ir.ParseType(typ)
		if err != nil {
			return err
		}
		v := fgraph.NewInput(t, name)
		p.known[name], p.inputs = v, append(p.inputs, v)
		return nil
	}
	names, value, ok := strings.Cut(s, " = ")
	if !ok {
		return fmt.Errorf("no statement")
	}
	if typ, data, ok := strings.Cut(value, " "); ok && strings.HasSuffix(typ, "]") {
		t, err := ir.ParseType(typ)
		if err != nil {
			return err
		}
		x, err := ir.Text{}.ParseData(t, data)
		if err != nil {
			return err
		}
		p.known[names] = ir.Constant(x.(*ir.Value), "")
		return nil
	}
	open := strings.LastIndex(value, "(")
	if open < 0 || !strings.HasSuffix(value, ")") {
		return fmt.Errorf("no op with its inputs in parentheses")
	}
	parsed, err := ir.Text{Operators: p.operators}.ParseOp(value[:open])
	if err != nil {
		return err
	}
	op := parsed.(*ir.Op)
	inputs, err := p.values(value[open+1 : len(value)-1])
	if err != nil {
		return err
	}
	a, err := p.operators.Apply(op, inputs...)
	if err != nil {
		return err
	}
	for i, name := range strings.Split(names, ",") {
		if i >= len(a.Outputs()) {
			return fmt.Errorf("%s has %d outputs", op.Name(), len(a.Outputs()))
		}
		p.known[strings.TrimSpace(name)] = a.Outputs()[i]
	}
	return nil
}
