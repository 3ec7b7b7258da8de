package exec

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// QuantizedInputs returns how many instructions quantize their input, and how many find it quantized.
func (p *Program) QuantizedInputs() (made, kept int) {
	for i := range p.instrs {
		switch s := p.instrs[i].rowSlot; {
		case s.precision == kernel.Float32:
		case s.view == 0:
			kept++
		default:
			made++
		}
	}
	return made, kept
}

// NextFactors returns what follows the Propagate instructions.
func (p *Program) NextFactors() (next []component.Factors) {
	for i := range p.instrs {
		if p.instrs[i].typ == computation.Propagate {
			next = append(next, p.instrs[i].next)
		}
	}
	return next
}

// Regions returns how many regions of a function are computed side by side.
func Regions(f *Function) int { return len(f.regions) }

// Unplanned makes a function leave all memory to the workspace of a runner.
func Unplanned(f *Function) {
	f.memory, f.placed, f.open = memoryPlan{}, nil, nil
	for i := range f.steps {
		f.steps[i].free, f.steps[i].dead = append(f.steps[i].free, f.steps[i].dead...), nil
	}
	for i := range f.regions {
		f.regions[i].free, f.regions[i].dead = append(f.regions[i].free, f.regions[i].dead...), nil
	}
	f.shown = nil
	for slot, kind := range f.kinds {
		if kind == displayed && int(f.roots[slot]) == slot {
			f.shown = append(f.shown, int32(slot))
		}
	}
}

// Poisoning makes a runner overwrite what is dead.
func Poisoning(r *Runner) { r.poison = true }

// Step is what a step of a function does to memory in homes: what it begins to need, and what no later step does.
type Step struct{ Made, Dead []Home }

// Home is where a value is in the block of a runner.
type Home struct{ Offset, Bytes int }

// Homes returns what the steps of a function do, in order.
func Homes(f *Function) []Step {
	steps := make([]Step, len(f.steps))
	last := make(map[int32]int)
	for i, s := range f.steps {
		for _, slot := range s.out {
			if f.settled(slot) && f.kinds[slot] == computed {
				steps[i].Made = append(steps[i].Made, Home{f.memory.homes[slot].offset, f.memory.homes[slot].bytes()})
			}
		}
		for _, slot := range append(s.in[:len(s.in):len(s.in)], s.out...) {
			last[f.roots[slot]] = i
		}
	}
	for slot, i := range last {
		if f.settled(slot) && f.kinds[slot] == computed {
			steps[i].Dead = append(steps[i].Dead, Home{f.memory.homes[slot].offset, f.memory.homes[slot].bytes()})
		}
	}
	return steps
}

// Planned returns how many bytes the plan of a runner has.
func Planned(r *Runner) int64 { return r.memory.memory.Peak() }

// ByCommand returns a row for each command that ran, in the order of the commands.
func (t *Timing) ByCommand() []TimingRow {
	var rows []TimingRow
	printer := t.program.printer()
	for i := range t.took {
		if t.runs[i] > 0 {
			rows = append(rows, t.row(printer.Command(i), i))
		}
	}
	return rows
}
