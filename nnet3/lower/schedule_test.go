package lower

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
)

// TestScheduleOrderings lets a component overwrite a matrix that a later command reads: the handler lets
// that happen if the reader comes first, so the schedule has to put it there.
func TestScheduleOrderings(t *testing.T) {
	c, net := computationtest.MustParse(t, `
		component affine 3x3 simple
		component relu 3x3 simple|propagate-in-place
		component other 3x3 simple
		m1 6x3
		m2 6x3
		m3 6x3
		m4 6x3
		accept m1 for input
		m2 = undefined(6, 3)
		m2 = affine.Propagate(m1)
		m3 = undefined(6, 3)
		m3 = relu.Propagate(m2)
		m4 = undefined(6, 3)
		m4 = other.Propagate(m2)
		provide m3 for output
		provide m4 for late`)
	p, err := Lower(c, net)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Graph.Attach(fgraph.NewDestroyHandler(p.Destroyable)); err != nil {
		t.Fatal(err)
	}
	for a := range p.Graph.Applies() {
		if op, ok := a.Op().(Propagate); ok && op.Name == "relu" {
			op.InPlace = true
			b := fgraph.NewApply(op, a.Inputs(), a.Out().Type())
			b.SetOrigin(a.Origin())
			err := p.Graph.ReplaceAllValidate([]fgraph.Replacement{{Old: a.Out(), New: b.Out()}}, nil, fgraph.Reason{Pass: "test"})
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	s, err := PlanStorage(p)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.PlaceInPlace(); n != 1 {
		t.Errorf("%d components run in place, not 1", n)
	}
	got, err := Emit(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := computationtest.Same(net, c, got); err != nil {
		t.Error(err)
	}
}
