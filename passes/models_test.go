package passes_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestForModels: models avoid what is free with NaN and overflow, and get it if they name it.
func TestForModels(t *testing.T) {
	for text, want := range map[string]struct {
		query string
		zero  bool // eliminate_zero_term, which has the tag unsafe_nan
	}{
		"fast_run":                      {"+fast_run ~unsafe_nan ~overflow", false},
		"debug":                         {"debug ~unsafe_nan ~overflow", false},
		"+fast_run +saturate":           {"+fast_run +saturate ~unsafe_nan ~overflow", false},
		"+eliminate_zero_term":          {"+eliminate_zero_term ~unsafe_nan ~overflow", true},
		"+fast_run +unsafe_nan":         {"+fast_run +unsafe_nan ~unsafe_nan ~overflow", true},
		"+fast_run -unsafe_nan":         {"+fast_run -unsafe_nan ~unsafe_nan ~overflow", false},
		"[simplify_nodes]":              {"[simplify_nodes]", true},
		"+onnx simplify_nodes(+limits)": {"+onnx ~unsafe_nan ~overflow simplify_nodes(+limits)", false},
		"none":                          {"none", false},
	} {
		q, err := optdb.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		opt, err := passes.ForModels(q)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := opt.Query().String(); got != want.query {
			t.Errorf("%s: %s, want %s", text, got, want.query)
		}
		if got := opt.Selected("eliminate_zero_term"); got != want.zero {
			t.Errorf("%s: %s", text, opt.Explain("eliminate_zero_term"))
		}
		if again := passes.ModelQuery(opt.Query()); !again.Equal(opt.Query()) {
			t.Errorf("%s again: %s", text, again)
		}
	}
	// Nothing else is left out.
	plain, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.ForModels(optdb.Include("fast_run"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range plain.Outline() {
		free := slices.Contains(l.Tags, "unsafe_nan") || slices.Contains(l.Tags, "overflow")
		if !l.Database && opt.Selected(l.Path) == free {
			t.Errorf("%s with tags %v: %s", l.Path, l.Tags, opt.Explain(l.Path))
		}
	}
}
