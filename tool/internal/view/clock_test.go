package view_test

import (
	"testing"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// TestCoarseClock: passes have their own steps by any clock.
func TestCoarseClock(t *testing.T) {
	g, err := graph("X: matrix; w b: vector", "sum(tanh(dot(X, w) + b)**2*(b + 1)/(1 + b))*0 + dot(dot(X, X), w)")()
	if err != nil {
		t.Fatal(err)
	}
	opt, r := build(t, "fast_run"), view.NewRecorder()
	rec := profile.New(opt.Name(), opt.Class())
	if err := opt.Rewrite(r.Watch(t.Context()), g, rec); err != nil {
		t.Fatal(err)
	}
	rec.End()
	record := rec.Record()
	fine := r.Recording(opt, record, nil)
	for _, p := range record.All() {
		p.Start, p.Time = 0, 0
	}
	coarse, made := r.Recording(opt, record, nil), 0
	for i, p := range coarse.Passes {
		from, to := p.Steps[0], p.Steps[1]
		if want := fine.Passes[i].Steps; want[0] < want[1] {
			if made++; p.Steps != want {
				t.Errorf("%s has the steps %v, not %v", p.Name, p.Steps, want)
			}
		}
		if p.Parent >= 0 {
			if around := coarse.Passes[p.Parent].Steps; from < around[0] || to > around[1] {
				t.Errorf("%s has the steps %v, and runs in a pass with %v", p.Name, p.Steps, around)
			}
		}
		for k := from; k < to; k++ {
			n := coarse.Steps[k].Pass
			for n > i {
				n = coarse.Passes[n].Parent
			}
			if n != i {
				t.Errorf("%s has step %d, which is not its own", p.Name, k)
			}
		}
	}
	if made < 5 {
		t.Errorf("only %d passes made steps", made)
	}
}
