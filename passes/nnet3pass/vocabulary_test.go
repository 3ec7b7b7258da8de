package nnet3pass_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// TestVocabulary applies rules as text to values of a network.
func TestVocabulary(t *testing.T) {
	nn, _, err := pipeline.LoadFrom(strings.NewReader(`
input-node name=input dim=4
component name=tanh type=TanhComponent dim=4
component-node name=tanh component=tanh input=input
component name=copy type=NoOpComponent dim=4
component-node name=copy component=copy input=tanh
component name=dropout type=DropoutComponent dim=4 dropout-proportion=0.5
component-node name=dropout component=dropout input=copy
output-node name=output input=dropout`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	run := func(component string, x *fgraph.Variable) *fgraph.Variable {
		i := nn.ComponentIndex(component)
		c, _ := nn.Component(i)
		op := lower.Propagate{Component: lower.Component{C: c, Number: int32(i), Name: component}}
		return fgraph.NewApply(op, []*fgraph.Variable{x}, x.Type()).Out()
	}
	type in struct{ x, y, wide *fgraph.Variable }
	part := func(x *fgraph.Variable) *fgraph.Variable { return lower.NewBlock(x, lower.Rect{R0: 1, R1: 3, C1: 4}) }
	appended := func(x, y *fgraph.Variable) *fgraph.Variable {
		return lower.NewAssemble(6, 6, []lower.Term{
			{Input: 0, NumRows: 6, NumCols: 4, Scale: 1}, {Input: 1, NumRows: 6, NumCols: 2, DstCol: 4, Scale: 1},
		}, []*fgraph.Variable{x, y})
	}
	scaled := func(x *fgraph.Variable) *fgraph.Variable {
		return lower.NewAssemble(6, 4, []lower.Term{{NumRows: 6, NumCols: 4, Scale: 2}}, []*fgraph.Variable{x})
	}
	tests := []struct {
		rule string
		make func(in) *fgraph.Variable
		want string
	}{
		{"(TanhComponent (TanhComponent x)) => x", func(i in) *fgraph.Variable { return run("tanh", run("tanh", i.x)) }, "[x]"},
		{"(TanhComponent (TanhComponent x)) => x", func(i in) *fgraph.Variable { return run("tanh", run("copy", i.x)) }, "[Propagate{tanh}(Propagate{copy}(x))]"},
		{"(TanhComponent{c} (Block{r} x)) => (Block{r} (TanhComponent{c} x))", func(i in) *fgraph.Variable { return run("tanh", part(i.x)) }, "[Block{1:3,0:4}(Propagate{tanh}(x))]"},
		{"(TanhComponent{c} (Block{r} x)) => (Block{r} (TanhComponent{c} x))", func(i in) *fgraph.Variable { return run("tanh", part(i.wide)) }, "[Propagate{tanh}(Block{1:3,0:4}(wide))]"},
		{"(Propagate{c} x) && identity(c) => x", func(i in) *fgraph.Variable { return run("copy", run("tanh", i.x)) }, "[Propagate{tanh}(x)]"},
		{"(Propagate{c} x) => 0", func(i in) *fgraph.Variable { return run("dropout", i.x) }, "[Propagate{dropout}(x)]"},
		{"(Propagate{c} x) => 0.5", func(i in) *fgraph.Variable { return run("tanh", i.x) }, "[Fill{0.5}()]"},
		{"(Propagate{c} 0) => 0", func(i in) *fgraph.Variable { return run("tanh", lower.NewFill(6, 4, 0)) }, "[Fill{0}()]"},
		{"(Propagate{c} 0) => 0", func(i in) *fgraph.Variable { return run("tanh", lower.NewFill(6, 4, 1)) }, "[Propagate{tanh}(Fill{1}())]"},
		{"(Concat{a} x y) => (Concat{a} y x)", func(i in) *fgraph.Variable { return appended(i.x, i.y) }, "[Concat{6x6}(y, x)]"},
		{"(Concat{a} x y) => (Concat{a} y x)", func(i in) *fgraph.Variable { return appended(i.wide, lower.NewBlock(i.x, lower.Rect{R1: 6, C1: 2})) }, "[Concat{6x6}(wide, Block{0:6,0:2}(x))]"},
		{"(Concat{a} x y) && same_size(x, y) => x", func(i in) *fgraph.Variable { return appended(i.wide, i.x) }, "[Concat{6x6}(wide, x)]"},
		{"(Scale{a} (Propagate{c} x)) => (Propagate{c} (Scale{a} x))", func(i in) *fgraph.Variable { return scaled(run("tanh", i.x)) }, "[Propagate{tanh}(Scale{6x4}(x))]"},
		{"(Assemble{a} ...xs) && once(xs) => (Assemble{a} 1)", func(i in) *fgraph.Variable { return scaled(i.x) }, "[Scale{6x4}(Fill{1}())]"},
		{"(Sum{a} x) => x", func(i in) *fgraph.Variable { return scaled(i.x) }, "[Scale{6x4}(x)]"},
	}
	for _, test := range tests {
		rule, err := pattern.Compile(nnet3pass.Vocabulary(), test.rule)
		if err != nil {
			t.Error(err)
			continue
		}
		narrow := lower.MatrixType{Rows: 6, Cols: 4}
		i := in{fgraph.NewInput(narrow, "x"), fgraph.NewInput(narrow, "y"), fgraph.NewInput(lower.MatrixType{Rows: 6, Cols: 8}, "wide")}
		g, err := fgraph.New([]*fgraph.Variable{i.x, i.y, i.wide}, []*fgraph.Variable{test.make(i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := rewrite.Run(t.Context(), rewrite.In2Out("walk", rule), g, nil); err != nil {
			t.Fatal(err)
		}
		if g.String() != test.want {
			t.Errorf("%s: %s, want %s", test.rule, g, test.want)
		}
	}
	for _, text := range []string{"(NoSuchComponent x) => x", "(Component x) => x", "(Tanh x) => x", "(TanhComponent x) => (TanhComponent 0)", "(Backprop{b} ...xs) => (Backprop{b} 0)"} {
		if _, err := pattern.Compile(nnet3pass.Vocabulary(), text); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
}
