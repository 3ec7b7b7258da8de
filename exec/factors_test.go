package exec_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/nnet3/component"
)

// An instruction knows the weights of the product after it. The first one follows the last one.
func TestNextFactors(t *testing.T) {
	nn := parseNet(t, smallNet)
	p, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	affine, tdnn := component.FactorsOf(nn.Components[0]), component.FactorsOf(nn.Components[2])
	if len(affine) != 1 || len(tdnn) != 3 || component.FactorsOf(nn.Components[1]) != nil {
		t.Fatalf("%d and %d factors", len(affine), len(tdnn))
	}
	next, want := p.NextFactors(), []component.Factors{tdnn, tdnn, affine}
	if len(next) != len(want) {
		t.Fatalf("%d components run", len(next))
	}
	for i := range want {
		if !slices.Equal(next[i], want[i]) {
			t.Errorf("component %d is followed by %d factors, want %d", i, len(next[i]), len(want[i]))
		}
	}
}
