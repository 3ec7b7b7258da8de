package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/lower"
)

const fileConfig = `input-node name=input dim=4
component name=tdnn type=TdnnComponent input-dim=4 output-dim=6 time-offsets=-1,1
component-node name=tdnn component=tdnn input=input
component name=relu type=RectifiedLinearComponent dim=6
component-node name=relu component=relu input=tdnn
component name=linear type=LinearComponent input-dim=6 output-dim=6
component-node name=linear component=linear input=relu
component name=three type=FixedScaleComponent dim=3
component name=norm type=BatchNormComponent dim=6
component name=lda type=FixedAffineComponent input-dim=4 output-dim=4
component name=affine type=AffineComponent input-dim=4 output-dim=3
component name=pool type=StatisticsPoolingComponent input-dim=9 input-period=1 left-context=1 right-context=1 num-log-count-features=0 output-stddevs=false
component name=constant type=ConstantFunctionComponent input-dim=4 output-dim=2
output-node name=output input=linear
`

func fileNetwork(t testing.TB) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(fileConfig), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	nn.SetTestMode(true)
	return nn
}

// everything is a file with every op and table.
const everything = `note: x

derived {
    1 = masked-relu base=relu first=1 rows=2
    2 = overwriting base=linear
    3 = product base=affine simple bias onto=0.5 blocks=[0/0/4/0/0]
    4 = product base=affine in=5 adds bias relu then=three blocks=[0/0/2/1/1 0/2/2/3/1]
    5 = product base=lda simple bias blocks=[0/0/4/0/0]
    6 = product base=affine after=#5 simple blocks=[0/0/4/0/0]
    7 = product base=tdnn bias scale=norm blocks=[0/0/4/0/0 1/1/3/0/0]
    8 = columns base=affine first=1 n=2
}

indexes {
    1 = of tdnn backward [0/-1:3] [0/0 0/1]
    2 = runs in=4 out=3 [2/1/3/1/1 0/1/0/1/2] [0/1/1/1/3]
    3 = sets in=3 out=2 [1 2] [0:3]
    4 = runs in=4 out=1 [0/1/2/1/1] [0/1/3/1/1]
}

graph {
    input %x : 4x4
    input %state1 : state(1)
    input %0"a b" : 4x4
    %1 = Propagate{tdnn, indexes#1}(%x) @5 : 2x6
    %2 = Propagate{linear, accumulate}(%1, %1) : 2x6
    %3, %4, %5 = Propagate{relu#1, stats, memo, instance=1}(%2, %state1) @7 : 2x6, memo(9), state(1)
    %6 = Fill{4x4, -0.5}() : 4x4
    %7 = Assemble{4x4; 1[{1/0 3/3},0:2]@3; 0[1:3,0:2]>1,2*-1@-4}(%x, %0) : 4x4
    %8 = Sum{4x4; 1[0:4,0:4]*0.1; 0[0:4,0:4]}(%7, %6) : 4x4
    %9 = RowRanges{4; 0:3/2:5 -1/-1}(%8) : 4x4
    %10 = Block{1:3,0:4}(%9) : 2x4
    %11 = Concat{2x7; 0[0:2,0:4]; 1[0:2,0:3]>0,4}(%10, %3) : 2x7
    %12 = Propagate{constant}() : 2x2
    %13 = Backprop{linear#2, dx}(%3) : 2x6
    %14, %15 = Backprop{relu#1, dx, memo, state, update, inplace, instance=2}(%13, %4, %5) @9 : 2x6, state(1)
    %16 = Backprop{tdnn, indexes#1, x, dx}(%x, %14) : 4x4
    %17 = Fill{4x3, 0}() : 4x3
    %18 = Propagate{"a\x20b\x5b"#3, accumulate}(%16, %17) : 4x3
    %19 = Scatter{4x5; 0[{1:4/0},0:5]}(%3) : 4x5
    %20 = SelectRows{3x3; 0[{0/3 1/2 2/0},0:3]}(%18) : 3x3
    %21 = Propagate{affine#4, indexes#2, accumulate}(%19, %20) : 3x3
    %22 = Propagate{lda·affine#6}(%7) : 4x3
    %23 = Fill{3x9, 1}() : 3x9
    %24 = Propagate{pool, indexes#3}(%23) : 2x8
    %25 = Propagate{tdnn#7, indexes#4}(%x) : 1x6
    %26 = Backprop{affine#8, dx}(%20) : 3x2
    return %11, %12, %14, %15, %18, %21, %22, %24, %25, %25, %26
}
`

// TestFileOfEverything: each op and table prints as it was read.
func TestFileOfEverything(t *testing.T) {
	d := lower.Dialect{Network: fileNetwork(t)}
	f, err := graphfile.Parse("all", everything, d)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Graph.Check(); err != nil {
		t.Error(err)
	}
	if text, err := graphfile.Format(f, d); err != nil || text != everything {
		t.Errorf("%v\n%s", err, text)
	}
	for a := range f.Graph.Applies() {
		text, err := d.OpText(a.Op())
		if err != nil || strings.Contains(text, "#") {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestDialectFaults(t *testing.T) {
	d := lower.Dialect{Network: fileNetwork(t)}
	graph := func(line string) string {
		return "graph {\n    input %x : 4x4\n    input %s : state(1)\n    %1 = " + line + "\n    return %1\n}\n"
	}
	table := func(name, line string) string {
		return name + " {\n    " + line + "\n}\n" + graph("Block{0:1,0:1}(%x) : 1x1")
	}
	for text, want := range map[string]string{
		graph("Frob{1}(%x) : 4x4"):                                                    `there is no op "Frob"`,
		graph("Fill(%x) : 4x4"):                                                       "Name{parameters}",
		graph("Fill{4x4}() : 4x4"):                                                    "not a number",
		graph("Fill{4x4, 1}(%x) : 4x4"):                                               "0 inputs",
		graph("Fill{4x4, 1}() : 4x5"):                                                 "the output is 4x4",
		graph("Fill{99999999999x4, 1}() : 4x5"):                                       "the size of a matrix",
		graph("Fill{state(1), 1}() : 4x5"):                                            "the size of a matrix",
		graph("Block{0:5,0:4}(%x) : 5x4"):                                             "no such block",
		graph("Block{3:1,0:4}(%x) : 5x4"):                                             "not a number from 3",
		graph("Block{0:1,0:1}(%s) : 1x1"):                                             "not a matrix",
		graph("Block{0:1,0:1}(%x) : float64"):                                         "not a type",
		graph("Block{0:1,0:1}(%x) : gate(7)"):                                         "not a type",
		graph("constant {1} : 1x1"):                                                   "Fill makes constants",
		graph("RowRanges{4; 0:3/2:5 -1/0}(%x) : 4x4"):                                 "not a range of rows",
		graph("RowRanges{4; 0/5}(%x) : 1x4"):                                          "no rows 0:5",
		graph("RowRanges{3; 0/4}(%x) : 1x3"):                                          "4 columns, not 3",
		graph("Sum{4x4; 0[0:4,0:4]}(%x) : 4x4"):                                       "may also be called Assemble",
		graph("Assemble{4x4; 1[0:4,0:4]}(%x) : 4x4"):                                  "no input 1",
		graph("Assemble{4x4; 0[0:4,0:4]}(%x, %x) : 4x4"):                              "no term reads input 1",
		graph("Assemble{4x4; 0[0:5,0:4]}(%x) : 4x4"):                                  "outside of the result",
		graph("Assemble{9x4; 0[0:5,0:4]}(%x) : 9x4"):                                  "has no part",
		graph("Assemble{4x4; 0[2:2,0:4]}(%x) : 4x4"):                                  "at least one row",
		graph("Assemble{4x4; 0[{},0:4]}(%x) : 4x4"):                                   "at least one row",
		graph("Assemble{4x4; 0[{1/1 0/0},0:4]}(%x) : 4x4"):                            "in the order of the result",
		graph("Assemble{4x4; 0[{0/0 1/1},0:4]>1,0}(%x) : 4x4"):                        "begin at row 0",
		graph("Assemble{4x4; 0[0:4]}(%x) : 4x4"):                                      "rows and columns are missing",
		graph("Assemble{4x4; 0[0:1,0:4]1,1}(%x) : 4x4"):                               "not a place in the result",
		graph("Assemble{4x4; 0[0:1,0:4]x}(%x) : 4x4"):                                 `"x"`,
		graph("Assemble{4x4; 0[0:1,0:4]*x}(%x) : 4x4"):                                "not a number",
		graph("Assemble{4x4; 0[0:1,0:4]@x}(%x) : 4x4"):                                "not a number",
		graph("Propagate{nobody}(%x) : 4x3"):                                          "no component nobody",
		graph("Propagate{}(%x) : 4x3"):                                                "a name is missing",
		graph("Propagate{\"x}(%x) : 4x3"):                                             "missing",
		graph("Propagate{affine#1}(%x) : 4x3"):                                        "no derived component #1",
		graph("Propagate{affine, indexes#1}(%x) : 4x3"):                               "no indexes #1",
		graph("Propagate{affine, loud}(%x) : 4x3"):                                    `unknown parameter "loud"`,
		graph("Propagate{affine, memo, memo}(%x) : 4x3"):                              "is repeated",
		graph("Propagate{affine}(%x) : 4x2"):                                          "not a matrix with 3 columns",
		graph("Propagate{affine}(%x) : 3x3"):                                          "row by row",
		graph("Propagate{affine, stats}(%x) : 4x3"):                                   "input 1 is missing",
		graph("Propagate{affine, memo}(%x) : 4x3"):                                    "output 1 is missing",
		graph("Propagate{affine}(%x, %s) : 4x3"):                                      "2 inputs and 1 outputs, not 1 and 1",
		graph("Propagate{affine, accumulate}(%x, %x) : 4x3"):                          "the addend",
		graph("Propagate{affine, inplace}(%x) : 4x3"):                                 "can't work in place",
		graph("Backprop{affine}(%x) : 4x3"):                                           "4x4, not a matrix with 3 columns",
		table("derived", "2 = overwriting base=linear"):                               `begins with "1 = "`,
		table("derived", "1 = melting base=linear"):                                   `no kind "melting"`,
		table("derived", "1 = overwriting"):                                           "base= is missing",
		table("derived", "1 = overwriting base=#1"):                                   "no derived component #1",
		table("derived", "1 = overwriting base=relu loud"):                            `"loud" is unknown`,
		table("derived", "1 = masked-relu base=linear"):                               "not a ReLU",
		table("derived", "1 = masked-relu base=relu first=x"):                         "not a number",
		table("derived", "1 = masked-relu base=relu rows=-1"):                         "no such rows",
		table("derived", "1 = columns base=relu n=2"):                                 "not affine",
		table("derived", "1 = columns base=affine first=3 n=2"):                       "no such columns",
		table("derived", "1 = columns base=affine first=-1 n=2"):                      "no such columns",
		table("derived", "1 = columns base=affine"):                                   "no such columns",
		table("derived", "1 = product base=relu blocks=[0/0/4/0/0]"):                  "not affine",
		table("derived", "1 = product base=affine"):                                   "blocks= is missing",
		table("derived", "1 = product base=affine blocks=[1/0/4/0/0]"):                "no block 1",
		table("derived", "1 = product base=affine blocks=[0/0/5/0/0]"):                "does not fit",
		table("derived", "1 = product base=affine blocks=[0/0/4/1/0]"):                "does not fit",
		table("derived", "1 = product base=affine blocks=[0/0/4/0/1]"):                "does not add",
		table("derived", "1 = product base=affine blocks=[0/0/4/0/0"):                 "not closed",
		table("derived", "1 = product base=affine simple blocks=[0/0/2/0/0]"):         "as wide as its input",
		table("derived", "1 = product base=affine then=tdnn blocks=[0/0/4/0/0]"):      "can't follow",
		table("derived", "1 = product base=affine scale=three blocks=[0/0/4/0/0]"):    "no batch normalization",
		table("derived", "1 = product base=affine adds onto=2 blocks=[0/0/4/0/0]"):    "can't accumulate",
		table("derived", "1 = product base=linear bias blocks=[0/0/6/0/0]"):           "no bias",
		table("derived", "1 = product base=affine after=linear blocks=[0/0/4/0/0]"):   "does not follow",
		table("derived", "1 = product base=affine in=99999999999 blocks=[0/0/4/0/0]"): "not a number",
		table("indexes", "1 = of tdnn sideways [0/0] [0/0]"):                          "have the form",
		table("indexes", "1 = of affine forward [0/0] [0/0]"):                         "does not look at indexes",
		table("indexes", "1 = of tdnn forward [0/0:2] [0/0]"):                         "missing",
		table("indexes", "1 = of tdnn forward [0] [0/0]"):                             "1 numbers",
		table("indexes", "1 = runs in=4"):                                             "runs in=4",
		table("indexes", "1 = runs in=4 out=x"):                                       "a number of rows",
		table("indexes", "1 = runs in=4 out=2000000000"):                              "more than",
		table("indexes", "1 = runs in=4 out=2 [0/1/0/1/1]"):                           "no input for 1",
		table("indexes", "1 = runs in=4 out=2 [0/1/0/1/3]"):                           "outside of the rows",
		table("indexes", "1 = runs in=4 out=2 [0/1/0/1/2 0/1/0/1/1]"):                 "outside of the rows",
		table("indexes", "1 = runs in=4 out=2 [0/1/0/1/1 0/1/0/1/1]"):                 "two inputs",
		table("indexes", "1 = runs in=4 out=2 [0/1/3/1/2]"):                           "outside of the rows",
		table("indexes", "1 = sets in=4 out=2 [1 1] [0 4]"):                           "no input row 4",
		table("indexes", "1 = sets in=4 out=2 [1 1] [0]"):                             "1 rows in total, not 2",
		table("indexes", "1 = sets in=4 out=2 [1] [0]"):                               "sets of 2 rows",
		table("indexes", "1 = sets in=4 out=1 [0] [0]"):                               "at least one row",
		table("indexes", "1 = bags in=4 out=1"):                                       "bags",
	} {
		if _, err := graphfile.Parse("f", text, d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v, want %s", text, err, want)
		}
	}
	if _, err := graphfile.Parse("f", everything, lower.Dialect{}); err == nil || !strings.Contains(err.Error(), "there is no network") {
		t.Error(err)
	}
}

// TestLargeFiles: long lists of rows take little text, and the work of reading grows with the text.
func TestLargeFiles(t *testing.T) {
	d := lower.Dialect{Network: fileNetwork(t)}
	text := func(applies int) string {
		var b strings.Builder
		b.WriteString("graph {\n    input %x : 7000x4\n    %0 = SelectRows{3000x4; 0[{0:3/0:6:2+3/7*1000},0:4]}(%x) : 3000x4\n")
		for i := range applies {
			fmt.Fprintf(&b, "    %%%d = Sum{3000x4; 0[0:3000,0:4]@%d; 1[0:3000,0:4]@%d}(%%0, %%%d) : 3000x4\n", i+1, i, i, i)
		}
		fmt.Fprintf(&b, "    return %%%d\n}\n", applies)
		return b.String()
	}
	work := func(applies int) float64 {
		text := text(applies)
		return testing.AllocsPerRun(1, func() {
			if _, err := graphfile.Parse("f", text, d); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := work(1000), work(10000); many > 11*few {
		t.Errorf("%g allocations for 1,000 applies, %g for 10,000", few, many)
	}
	f, err := graphfile.Parse("f", text(10000), d)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := graphfile.Format(f, d)
	if err != nil || len(printed) > 10000*100 {
		t.Errorf("%d bytes, %v", len(printed), err)
	}
}
