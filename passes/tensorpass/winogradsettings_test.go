package tensorpass_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestWinogradSettings: what a processor is good at decides which convolutions are computed by tiles.
func TestWinogradSettings(t *testing.T) {
	usual := tensorpass.Pass("winograd").(rewrite.Configurable)
	for _, c := range []struct{ name, value, want string }{
		{"min-channels", "16", "Winograd{4}{pads=1,1,1,1}"}, {"min-channels", "200", "ConvLast{2}{pads=1,1,1,1}"},
		{"moved-flops", "120", "Winograd{4}{pads=1,1,1,1}"}, {"moved-flops", "1e6", "ConvLast{2}{pads=1,1,1,1}"},
		{"prepared-flops", "100", "Winograd{4}{pads=1,1,1,1}"}, {"prepared-flops", "1e5", "ConvLast{2}{pads=1,1,1,1}"},
		{"byte-flops", "40", "Winograd{4}{pads=1,1,1,1}"}, {"byte-flops", "1e5", "ConvLast{2}{pads=1,1,1,1}"},
	} {
		p, err := usual.Configured(c.name, c.value)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, s := range p.Settings() {
			found = found || s.Name == c.name && s.Doc != "" && s.Value != "" && s.Default != ""
		}
		r := rand.New(rand.NewPCG(1, 2))
		x := fgraph.NewInput(tensor.NewType(array.Float32, 1, 64, 40, 40), "x")
		out := tensor.Conv(x, float32s(r, 96, 64, 3, 3), nil, tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}, 1)
		g, err := tensor.NewGraph([]variable{x}, []variable{out})
		if err != nil {
			t.Fatal(err)
		}
		rewritetest.Run(t, rewrite.NewSequence("tiles", tensorpass.Pass("channels_last"), p.(rewrite.GraphRewriter)), g)
		if got := opsOf(g); got != c.want || !found {
			t.Errorf("%s=%s leaves %s, want %s", c.name, c.value, got, c.want)
		}
	}
	for _, value := range []string{"", "many", "-1", "NaN", "Inf"} {
		if _, err := usual.Configured("byte-flops", value); err == nil {
			t.Errorf("%q operations", value)
		}
	}
}
