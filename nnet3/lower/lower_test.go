package lower_test

import (
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/nnet3/lower/lowertest"
)

// TestRoundTrip lowers Kaldi's computations and emits them again without any pass: they must compute the same.
func TestRoundTrip(t *testing.T) {
	refs := lowertest.References(t, filepath.Join("..", "..", "..", "shared"))
	for _, r := range refs {
		t.Run(r.Name, func(t *testing.T) {
			c, net := lowertest.Load(t, r.Path)
			p, err := lower.Lower(c, net)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Graph.Check(); err != nil {
				t.Fatal(err)
			}
			got, err := lower.Emit(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := computation.Check(got, nil, computation.CheckOptions{}); err != nil {
				t.Fatal(err)
			}
			if !r.Full {
				lowertest.Compare(t, net, c, got)
			}
		})
	}
}
