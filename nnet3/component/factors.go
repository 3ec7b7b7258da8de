package component

import "github.com/nnopt/nnopt/kernel"

// Factors are the weights that a component multiplies its input by in float32.
type Factors []*weights

// FactorsOf returns the factors of a product, an affine component or a TDNN, and nil for any other
// component.
func FactorsOf(c Component) (f Factors) {
	var blocks []productBlock
	switch c := c.(type) {
	case *Product:
		if c.precision == kernel.Float32 {
			blocks = c.blocks
		}
	case *tdnnComponent:
		blocks = c.products
	case interface{ factor() *affine }:
		return Factors{&c.factor().weights}
	}
	for i := range blocks {
		f = append(f, blocks[i].w)
	}
	return f
}

// preparedForms returns the prepared forms of factors, valid until the next call, or nil if one of
// them is not prepared.
func (w *Workspace) preparedForms(factors Factors) []*kernel.Weights {
	w.next = w.next[:0]
	for _, f := range factors {
		if f.prepared == nil {
			return nil
		}
		w.next = append(w.next, f.prepared)
	}
	return w.next
}
