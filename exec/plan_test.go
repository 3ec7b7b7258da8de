package exec

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// TestPlanRules: buffers that live at the same time do not overlap, and the memory holds them all.
func TestPlanRules(t *testing.T) {
	longtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "buffers")
		spans := make([]span, n)
		for i := range spans {
			end := 2*i + 1 + 2*rapid.IntRange(0, 10).Draw(t, "life")
			spans[i] = span{start: 2 * i, end: end, until: end, size: alignment * rapid.IntRange(1, 9).Draw(t, "size")}
		}
		for name, rule := range map[string]func([]span) int{"bestFit": bestFit, "bySize": bySize} {
			size := rule(spans)
			for i, a := range spans {
				if a.offset < 0 || a.offset+a.size > size {
					t.Fatalf("%s: buffer %d at %d+%d is outside the memory of %d", name, i, a.offset, a.size, size)
				}
				for k, b := range spans[:i] {
					if a.start <= b.end && b.start <= a.end && a.offset < b.offset+b.size && b.offset < a.offset+a.size {
						t.Fatalf("%s: buffers %d and %d overlap: %+v, %+v", name, k, i, b, a)
					}
				}
			}
		}
	})
}

// TestPlan: a chain of matrices needs the memory of two. A swapped buffer lives as long as the
// matrix that holds it. Loops have no plan.
func TestPlan(t *testing.T) {
	c := computation.New()
	var m [4]int32
	for i := range m {
		m[i] = c.NewMatrix(4, 8, false)
	}
	do := func(t computation.CommandType, args ...int32) {
		c.Commands = append(c.Commands, computation.NewCommand(t, args...))
	}
	do(computation.AllocMatrix, m[0])
	do(computation.AllocMatrix, m[1])
	do(computation.DeallocMatrix, m[0])
	do(computation.SwapMatrix, m[2], m[1])
	do(computation.AllocMatrix, m[3])
	do(computation.DeallocMatrix, m[2])
	do(computation.DeallocMatrix, m[3])
	p := newPlan(c)
	if p.size != 64 || p.offsets[0] == p.offsets[1] || p.offsets[4] != p.offsets[0] || p.offsets[2] != -1 {
		t.Errorf("got %+v", p)
	}
	c.Commands[3] = computation.NewCommand(computation.NoOperationLabel)
	do(computation.GotoLabel, 3)
	if p := newPlan(c); p.size != 0 {
		t.Errorf("a loop is planned: %+v", p)
	}
}
