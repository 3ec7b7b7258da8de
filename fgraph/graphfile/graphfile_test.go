package graphfile_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
)

// word is an op, a type, and a dialect in which every text without separators is one. Data are
// strings.
type (
	word     string
	wordType string
	words    struct{}
)

func (w word) String() string                     { return string(w) }
func (t wordType) String() string                 { return string(t) }
func (t wordType) Accepts(other fgraph.Type) bool { return t == other }

func (words) OpText(op fgraph.Op) (string, error) {
	if op == word("secret") {
		return "", errors.New("it can't be written")
	}
	return op.String(), nil
}

func (words) ParseOp(text string) (fgraph.Op, error) {
	if text == "" || text == "secret" {
		return nil, errors.New("there is no such op")
	}
	return word(text), nil
}

func (words) ParseType(text string) (fgraph.Type, error) {
	if text == "" || text == "void" {
		return nil, errors.New("there is no such type")
	}
	return wordType(text), nil
}

func (words) DataText(_ fgraph.Type, data any) (string, error) {
	return strconv.Quote(data.(string)), nil
}
func (words) ParseData(_ fgraph.Type, text string) (any, error) { return strconv.Unquote(text) }

func (words) Check(a *fgraph.Apply) error {
	if a.Op() == word("lonely") && len(a.Inputs()) > 0 {
		return errors.New("it has inputs")
	}
	return nil
}

// all is a file with everything that a file can have.
const all = `query: +fast_run
note: two
	lines
empty:

graph {
    input %x : t[?, 3]
    input %0 : t
    input %1"a b" : u{1, 2}
    input %2"x" : t
    %c = constant {"} ) \" ,"} : t
    %3 = add{"(", [1, 2]}(%x, %c, %x) : t
    %y, %4 = two(%3, %0) @7 : t[?, 3], u{1, 2}
    %5 = lonely() : t
    %6"%z" = constant {""} : u
    return %y, %1, %6, %5, %y
}
`

func TestFormat(t *testing.T) {
	f, err := graphfile.Parse("all", all, words{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := graphfile.Format(f, words{})
	if err != nil || text != all {
		t.Errorf("%v\n%s", err, text)
	}
	g := f.Graph
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	if got := g.String(); got != `[*1 -> two(add{"(", [1, 2]}(x, c, x), <t>)::0, a b, %z, lonely(), *1::0]` {
		t.Error(got)
	}
	if o := g.Outputs()[0].Owner().Origin(); o != 7 || f.Field("note") != "two\nlines" || f.Field("empty") != "" || f.Field("none") != "" {
		t.Error(o, f.Head)
	}
	if c := g.Outputs()[2]; !c.IsConstant() || c.Data() != "" || c.Name() != "%z" {
		t.Error(c)
	}
}

func TestParseTakesComments(t *testing.T) {
	f, err := graphfile.Parse("f", "# a file\n\ngraph {\n# an input\n\n  input %x : t\r\n\treturn %x\n}\n# the end\n", words{})
	if err != nil || f.Graph.String() != "[x]" || len(f.Head) != 0 {
		t.Error(f, err)
	}
}

func TestFaults(t *testing.T) {
	line := func(s string) string { return "graph {\n input %x : t\n " + s + "\n return %x\n}\n" }
	for text, want := range map[string]string{
		"":                                       "f:0: \"graph {\" is missing",
		"nonsense\n":                             "f:1: neither a field",
		"graph: x\n":                             "f:1: neither a field",
		"graph {\n":                              "f:1: \"return\" is missing",
		"graph {\n return\n":                     "f:2: \"}\" is missing",
		"graph {\n return\n}\n}\n":               "f:4: nothing may follow",
		"graph {\n return %x\n}\n":               "f:2: there is no \"%x\" above",
		line("input %x : t"):                     "f:3: %x is there already",
		line("input %y"):                         "f:3: an input has the form",
		line("input %y : void"):                  "f:3: the type \"void\": there is no such type",
		line("input y : t"):                      `f:3: "y" is not a variable`,
		line(`input %y"z" : t`):                  `f:3: "%y" is not a variable`,
		line(`input %1"z : t`):                   "f:3: the name of %1",
		line("%1 add(%x) : t"):                   "f:3: neither an input",
		line("%1 = add : t"):                     "f:3: \"(\" is missing",
		line("%1 = add{(%x) : t"):                "f:3: \"(\" is missing",
		line("%1 = add(%x : t"):                  "f:3: \")\" is missing",
		line("%1 = add(%x)"):                     "f:3: the types of the results are missing",
		line("%1 = add(%x) @z : t"):              "f:3: the origin \"z\"",
		line("%1 = add(%x) @99999999999 : t"):    "f:3: the origin \"99999999999\"",
		line("%1 = secret(%x) : t"):              "f:3: the op \"secret\": there is no such op",
		line("%1 = lonely(%x) : t"):              "f:3: lonely: it has inputs",
		line("%1 = add(%y) : t"):                 "f:3: there is no \"%y\" above",
		line("%1, %2 = add(%x) : t"):             "f:3: 2 results, but 1 types",
		line("%1, %1 = add(%x) : t, t"):          "f:3: %1 is there already",
		line("%1 = add(%x) : void"):              "f:3: the type \"void\"",
		line("%1 = constant {2 : t"):             "f:3: a constant has the form",
		line("%1 = constant {x} : t"):            "f:3: the constant \"x\"",
		line("%1 = constant {\"x\"} : void"):     "f:3: the type",
		line("%1 = " + strings.Repeat("z", 1e4)): "z…\"",
	} {
		_, err := graphfile.Parse("f", text, words{})
		if !errors.Is(err, graphfile.ErrSyntax) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	x := fgraph.NewInput(wordType("t"), "x")
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{fgraph.NewApply(word("secret"), []*fgraph.Variable{x}, wordType("t")).Out()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := graphfile.Format(&graphfile.File{Graph: g}, words{}); err == nil || !strings.Contains(err.Error(), "secret(x): it can't be written") {
		t.Error(err)
	}
	if _, err := graphfile.Format(&graphfile.File{Head: []graphfile.Field{{Name: "a b"}}, Graph: g}, words{}); err == nil {
		t.Error("a field is called a b")
	}
}

// FuzzParse: a text is an error with a line, or it prints as text that reads as the same.
func FuzzParse(f *testing.F) {
	f.Add(all)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := graphfile.Parse("f", text, words{})
		if err != nil {
			if !errors.Is(err, graphfile.ErrSyntax) {
				t.Error(err)
			}
			return
		}
		printed, err := graphfile.Format(file, words{})
		if err != nil {
			return // the words of types are too strange to be written
		}
		again, err := graphfile.Parse("f", printed, words{})
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if second, err := graphfile.Format(again, words{}); err != nil || second != printed {
			t.Errorf("%v\n%s\n%s", err, printed, second)
		}
	})
}
