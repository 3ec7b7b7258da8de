package ir

import "github.com/nnopt/nnopt/onnx"

// NewOp completes an op. Graphs among its attributes that see nothing around them become bodies.
func (l *Operators) NewOp(op Op, opsets ...*onnx.Opset) *Op {
	for _, a := range op.Attributes {
		if a.Graph == nil {
			continue
		}
		im := &importer{Options: Options{Operators: l, Lenient: true}, source: NewSource(l)}
		if b, _, err := im.body(a.Name, a.Graph, nil, op, im.scope(nil, new(graphOf), &frame{opsets: opsetsOf(opsets)})); err == nil && len(im.faults) == 0 {
			op.Bodies = append(op.Bodies, b)
		}
	}
	return l.newOp(op)
}

// StandardNames returns ONNX's own operators.
func StandardNames() []Operator { return standard }
