package repro_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// FuzzFromFile: a reproducer is refused, or printed as one that is read the same.
func FuzzFromFile(f *testing.F) {
	f.Add("failure: values\npass: canonicalize\nrule: wrong\nnode: abs(x)\nquery: +fast_run\ncheck: graph\nbudget: 1\nseed: 7\nvalues:\n\t[2] 1 -2\n\t[2] 3 4\ncommand: a\n\tb\n\n" +
		"graph {\n    input %x : float64 vector\n    input %y : float64 vector\n    %0 = abs(%x) @1 : float64 vector\n    %1 = add(%0, %y) @8 : float64 vector\n    return %1\n}\n")
	d := expr.Default().Dialect()
	f.Fuzz(func(t *testing.T, s string) {
		file, err := graphfile.Parse("f", s, d)
		if err != nil {
			return
		}
		c, err := repro.FromFile(file, tensors.World(d), passes.Default().Build)
		if err != nil {
			return
		}
		print := func(c *repro.Case) string {
			file, err := c.File()
			check(t, err)
			s, err := graphfile.Format(file, d)
			check(t, err)
			return s
		}
		first := print(c)
		file, err = graphfile.Parse("f", first, d)
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		c, err = repro.FromFile(file, tensors.World(d), passes.Default().Build)
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if again := print(c); again != first {
			t.Errorf("%s\nis read as\n%s", first, again)
		}
	})
}
