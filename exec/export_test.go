package exec

import "github.com/nnopt/nnopt/kernel"

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
