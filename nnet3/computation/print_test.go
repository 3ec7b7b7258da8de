package computation

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/nnet3/index"
)

var rewrite = flag.Bool("rewrite", false, "rewrite expected texts in testdata")

// TestPrint compares printed computations with texts to be reviewed.
func TestPrint(t *testing.T) {
	for _, c := range []struct {
		file        string
		computation *Computation
		net         *NetworkInfo
	}{
		{"testdata/sample.txt", newSample().Computation, sampleNetwork()},
		{"testdata/sample_nonet.txt", newSample().Computation, nil},
		{"testdata/loop.txt", newLoop().Computation, loopNetwork()},
	} {
		var buf bytes.Buffer
		if err := Print(&buf, c.computation, c.net); err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			if err := os.WriteFile(c.file, buf.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), buf.String()); diff != "" {
			t.Errorf("%s (-want +got; -rewrite accepts):\n%s", c.file, diff)
		}
	}
}

// TestPrintRows: how vectors of rows are shortened.
func TestPrintRows(t *testing.T) {
	c := New()
	c.NewMatrix(40, 8, false)
	view := c.NewSubMatrix(1, 4, 10, 2, 3)
	for _, x := range []struct {
		rows []int32
		most int
		want string
	}{
		{nil, 0, "[]"},
		{[]int32{3}, 0, "[3]"},
		{[]int32{0, 1, 2, 3}, 0, "[0:3]"},
		{[]int32{0, 3, 6, 9, 10, 11}, 0, "[0:9:3, 10:11]"},
		{[]int32{5, 5, 5}, 0, "[5 x3]"},
		{[]int32{-1, -1, 4, 3, 2, -1}, 0, "[- x2, 4:2:-1, -]"},
		{[]int32{0, 9, 1, 8, 2, 7}, 2, "[0:9:9, 1:8:7, ... 2 more]"},
	} {
		c.Indexes = [][]int32{x.rows}
		p := NewPrinter(c, nil)
		p.MaxRuns = x.most
		if got := string(p.appendIndexes(nil, 0)); got != x.want {
			t.Errorf("%v: got %s, want %s", x.rows, got, x.want)
		}
	}
	c.IndexesMulti = [][]Pair{{{1, 0}, {1, 1}, {-1, -1}, {-1, -1}, {view, 5}}}
	if got, want := NewPrinter(c, nil).Command(0), "c0"; got != want {
		t.Errorf("a command that is not there: got %q, want %q", got, want)
	}
	if got, want := string(NewPrinter(c, nil).appendMulti(nil, 0)), "m1[0:1], - x2, m1(4:13, 2:4)[5]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.IndexesRanges = [][]Pair{{{0, 3}, {-1, -1}, {4, 4}, {4, 5}, {4, 5}}}
	if got, want := string(NewPrinter(c, nil).appendRanges(nil, 0)), "0:2, -, -, 4:4 x2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPrintMatrix: debug information in words.
func TestPrintMatrix(t *testing.T) {
	c := New()
	c.NewMatrix(3, 2, true)
	c.MatrixDebugInfo = []MatrixDebugInfo{{}, {IsDeriv: true, Cindexes: []index.Cindex{
		{Node: 3, Index: index.Index{N: 0, T: 5}}, {Node: 3, Index: index.Index{N: 0, T: 6}}, {Node: 3, Index: index.Index{N: 0, T: 7}},
	}}}
	if got, want := string(NewPrinter(c, sampleNetwork()).appendMatrixInfo(nil, 1)), "m1  3x2 (stride = columns)  derivative of output[(0,5:7)]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPrintBroken: a computation that refers to nothing is printed all the same.
func TestPrintBroken(t *testing.T) {
	c := &Computation{}
	for typ := CommandType(-1); typ <= numCommandTypes; typ++ {
		for _, arg := range []int32{-7, 0, 7} {
			c.Commands = append(c.Commands, NewCommand(typ, arg, arg, arg, arg, arg, arg, arg))
		}
	}
	p := NewPrinter(c, nil)
	for i := range c.Commands {
		if p.Command(i) == "" {
			t.Errorf("command %v prints nothing", c.Commands[i])
		}
	}
}
