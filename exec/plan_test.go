package exec

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// TestPlanRules: buffers that live at the same time do not overlap, nor do those of lanes 2 and 3, and the memory
// holds them all.
func TestPlanRules(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "buffers")
		spans := make([]span, n)
		for i := range spans {
			end := 2*i + 1 + 2*rapid.IntRange(0, 10).Draw(t, "life")
			spans[i] = span{start: 2 * i, end: end, until: end, size: alignment * rapid.IntRange(1, 9).Draw(t, "size")}
			if lane := rapid.Int32Range(1, 3).Draw(t, "lane"); lane > 1 { // of a region up to the end
				spans[i].first, spans[i].last, spans[i].until = lane, lane, 2*n+30
			}
		}
		for name, rule := range map[string]func([]span) int{"bestFit": bestFit, "bySize": bySize} {
			size := rule(spans)
			for i, a := range spans {
				if a.offset < 0 || a.offset+a.size > size {
					t.Fatalf("%s: buffer %d at %d+%d is outside the memory of %d", name, i, a.offset, a.size, size)
				}
				for k, b := range spans[:i] {
					apart := a.start > b.end && (a.first == b.last || a.first+b.last != 5) || b.start > a.end && (b.first == a.last || a.last+b.first != 5)
					if !apart && a.offset < b.offset+b.size && b.offset < a.offset+a.size {
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
