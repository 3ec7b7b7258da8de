package lower_test

import (
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// TestRoundTrip lowers Kaldi's computations and emits them again without any pass: they must
// compute the same.
func TestRoundTrip(t *testing.T) {
	refs := computationtest.References(t, filepath.Join("..", "..", "..", "shared"))
	for i, r := range refs {
		if !longtest.Enabled() && i%5 != 0 {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			c, net := computationtest.Load(t, r.Path)
			p, err := lower.Lower(c, net)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Graph.Check(); err != nil {
				t.Fatal(err)
			}
			if _, err := lower.Emit(p); err == nil {
				t.Error("a program without a storage is emitted")
			}
			if _, err := lower.PlanStorage(p); err != nil {
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
				computationtest.Compare(t, net, c, got)
			}
		})
	}
}

// TestLargestOp: what a component makes counts with what it reads, unless it can make the one over
// the other.
func TestLargestOp(t *testing.T) {
	for properties, want := range map[string]int64{"simple": 24, "simple|propagate-in-place": 12} {
		c, net := computationtest.MustParse(t, `
component f 3x3 `+properties+`
m1 4x3
m2 4x3
accept m1 for a
m2 = undefined(4, 3)
m2 = f.Propagate(m1)
m1 = []
provide m2 for b
`)
		p, err := lower.Lower(c, net)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.LargestOp(); got != want {
			t.Errorf("%s: LargestOp() = %d, want %d", properties, got, want)
		}
	}
}
