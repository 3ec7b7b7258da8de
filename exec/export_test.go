package exec

import (
	"github.com/nnopt/nnopt/kernel"
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
