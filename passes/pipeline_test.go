package passes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestPipelines: whatever a query selects from the standard database prints as a pipeline that
// builds the same optimizer.
func TestPipelines(t *testing.T) {
	db := passes.Default()
	queries := []string{"none", "fast_run", "fast_compile", "+fast_run <49", "+fast_run canonicalize{max-use=3} limit_derivative_times{max-deriv-time=7}"}
	tags := map[string]bool{}
	for _, e := range db.Entries() {
		for _, tag := range append(e.Tags, e.Name) {
			if !tags[tag] {
				tags[tag] = true
				queries = append(queries, "+fast_run -"+tag, "+"+tag)
			}
		}
	}
	if !longtest.Enabled() {
		n := 0
		queries = slices.DeleteFunc(queries, func(q string) bool {
			n++
			return strings.HasPrefix(q, "+fast_run -local_") || strings.HasPrefix(q, "+local_") || n > 5 && n%9 > 0
		})
	}
	tree := func(o *optdb.Optimizer) string {
		_, lines, _ := strings.Cut(o.String(), "\n")
		return lines
	}
	build := func(q optdb.Query, err error) *optdb.Optimizer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		o, err := db.Build(q)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, query := range queries {
		want := build(optdb.ParseQuery(query))
		got := build(optdb.ParsePipeline(want.Pipeline()))
		if tree(got) != tree(want) {
			t.Errorf("%s\nprints as %s\nwhich is\n%s\nwant\n%s", query, want.Pipeline(), tree(got), tree(want))
		}
	}
	const firsts = "merge1, ShapeOpt, integer_products, weight_codes, bodies1, pre_local_logsoftmax_grad, limit_derivative_times, useless, merge1.1, consolidate_model_update, pre_local_IncSubtensor_serialize, canonicalize, "
	if p := build(optdb.ParseQuery("fast_run")).Pipeline(); !strings.HasPrefix(p, firsts) || strings.Contains(p, "(") {
		t.Errorf("fast_run is %s", p)
	}
}

// TestPipelineOrders: a pipeline of the standard database that contradicts a declared order says why.
func TestPipelineOrders(t *testing.T) {
	q, err := optdb.ParsePipeline("specialize, canonicalize")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Default().Build(q); err == nil || !strings.Contains(err.Error(), "it must run after canonicalize, because its rules match the normal form") {
		t.Errorf("%v", err)
	}
}
