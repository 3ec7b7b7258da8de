package graphfile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
)

// tabled is the dialect words whose ops are numbers of a table.
type tabled struct{ words }

type tables struct {
	words
	ops []string
}

func (tabled) Open() graphfile.Tables { return new(tables) }

func (t *tables) OpText(op fgraph.Op) (string, error) {
	i := slices.Index(t.ops, op.String())
	if i < 0 {
		i = len(t.ops)
		t.ops = append(t.ops, op.String())
	}
	return fmt.Sprint("op", i), nil
}

func (t *tables) ParseOp(text string) (fgraph.Op, error) {
	var i int
	if _, err := fmt.Sscanf(text, "op%d", &i); err != nil || i < 0 || i >= len(t.ops) {
		return nil, errors.New("it is not in the table")
	}
	return word(t.ops[i]), nil
}

func (t *tables) Tables() []graphfile.Section {
	return []graphfile.Section{{Name: "ops", Lines: t.ops}}
}

func (t *tables) ReadTable(s *graphfile.Section) (bool, error) {
	if s.Name == "ops" {
		t.ops = append(t.ops, s.Lines...)
	}
	return s.Name == "ops", nil
}

// marks is a feature that names variables.
type marks struct{ vars []*fgraph.Variable }

func (*marks) OnAttach(*fgraph.FunctionGraph) error { return nil }

func (m *marks) GraphSection(id func(*fgraph.Variable) string) (string, []string, error) {
	if len(m.vars) == 0 {
		return "", nil, nil
	}
	var lines []string
	for _, v := range m.vars {
		if id(v) == "" {
			return "marks", nil, errors.New("a variable has left")
		}
		lines = append(lines, "mark "+id(v))
	}
	return "marks", lines, nil
}

func readMarks(g *fgraph.FunctionGraph, s *graphfile.Section, lookup func(string) *fgraph.Variable) error {
	m := new(marks)
	for i, line := range s.Lines {
		id, _ := strings.CutPrefix(line, "mark ")
		v := lookup(id)
		if v == nil {
			return s.Errorf(i, "there is no %q", id)
		}
		m.vars = append(m.vars, v)
	}
	if len(m.vars) > 3 {
		return errors.New("too many")
	}
	return g.Attach(m)
}

const sectioned = `query: x

ops {
    f
    g
}

graph {
    input %x : t
    %0 = op0(%x) : t
    %1 = op1(%0) : t
    %2 = op0(%1) : t
    return %2
}
marks {
    mark %1
    mark %x
}

graph {
    input %x : t
    %0 = op1(%x) : t
    return %0
}
`

func TestSections(t *testing.T) {
	d := graphfile.WithSections(tabled{}, map[string]graphfile.SectionReader{"marks": readMarks})
	f, err := graphfile.Parse("all", sectioned, d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := graphfile.Format(f, d)
	if err != nil || text != sectioned {
		t.Errorf("%v\n%s", err, text)
	}
	m, ok := fgraph.FeatureOf[*marks](f.Graph)
	if !ok || len(m.vars) != 2 || m.vars[0].Owner().Op() != word("g") || len(f.Graphs()) != 2 {
		t.Errorf("%v %v", ok, m)
	}
	// A feature with nothing to say is not written.
	if err := f.More[0].Attach(new(marks)); err != nil {
		t.Fatal(err)
	}
	f.Set("query", "y")
	f.Set("note", "z")
	if text, err = graphfile.Format(f, d); err != nil || !strings.HasPrefix(text, "query: y\nnote: z\n\nops {") || !strings.HasSuffix(sectioned, text[len(text)-60:]) {
		t.Errorf("%v\n%s", err, text)
	}
	if head, err := graphfile.ParseHead("all", text); err != nil || head.Field("note") != "z" {
		t.Error(head, err)
	}
	m.vars = append(m.vars, fgraph.NewInput(wordType("t"), ""))
	if _, err := graphfile.Format(f, d); err == nil || !strings.Contains(err.Error(), "a variable has left") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		strings.Replace(sectioned, "mark %1", "mark %9", 1):                      "f:16: marks: there is no \"%9\"",
		strings.Replace(sectioned, "mark %1", strings.Repeat("mark %1\n", 3), 1): "f:15: section marks: too many",
		strings.Replace(sectioned, "marks {", "stains {", 1):                     "f:15: there is no section \"stains\" here",
		strings.Replace(sectioned, "ops {", "pos {", 1):                          "f:3: there is no section \"pos\" here",
		sectioned + "ops {\n}\n":                                                 "there is no section \"ops\" here",
		sectioned[:strings.Index(sectioned, "    mark %x")]:                      "\"}\" is missing, which closes section marks of line 15",
		"ops {\n}\n": "\"graph {\" is missing",
	} {
		if _, err := graphfile.Parse("f", text, d); !errors.Is(err, graphfile.ErrSyntax) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
	for _, d := range []graphfile.Dialect{words{}, graphfile.WithSections(words{}, nil)} {
		if _, err := graphfile.Parse("f", sectioned, d); err == nil || !strings.Contains(err.Error(), "there is no section \"ops\"") {
			t.Error(err)
		}
	}
}

// TestOrder: the order of a file is that of the graph, for any outputs.
func TestOrder(t *testing.T) {
	const text = `graph {
    input %x : t
    %0 = f(%x) : t
    %1 = g(%x) : t
    %2 = f(%1) : t
    %3 = h(%0, %2) : t
    return %2, %3
}
`
	f, err := graphfile.Parse("f", strings.Replace(text, "    return", "    %9 = unused(%x) : t\n    return", 1), words{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := graphfile.Format(f, words{}); err != nil || again != text {
		t.Errorf("%v\n%s", err, again)
	}
	order, err := f.Graph.Toposort()
	if err != nil || len(order) != 4 || order[1].Op() != word("g") {
		t.Error(order, err)
	}
}
