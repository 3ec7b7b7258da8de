package passes_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestDialects: on a graph of tensors nothing runs that is for networks, and the other way round.
func TestDialects(t *testing.T) {
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		t.Fatal(err)
	}
	tensors, networks := tensor.ScalarType(array.Float32).Dialect(), lower.MatrixType{}.Dialect()
	serves := map[string][]string{} // by entry of the outermost database
	for _, e := range opt.Entries() {
		if e.Dialect != "" && !slices.Contains(e.Tags, e.Dialect) {
			t.Errorf("%s is for %s and has the tags %q", e.Path, e.Dialect, e.Tags)
		}
		if e.Depth == 0 {
			serves[e.Name] = []string{tensors, networks}
			if e.Dialect != "" {
				serves[e.Name] = []string{e.Dialect}
			}
		}
	}
	serves["useless"], serves["stabilize"], serves["uncanonicalize"] = []string{tensors}, []string{tensors}, []string{tensors} // by their rules
	for _, dialect := range []string{tensors, networks} {
		runs := opt.Passes(dialect)
		for name, dialects := range serves {
			if slices.Contains(runs, name) != slices.Contains(dialects, dialect) {
				t.Errorf("%s is for %q; on a graph of %s these run: %q", name, dialects, dialect, runs)
			}
		}
	}
}
