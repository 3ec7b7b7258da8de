package ir

// NewOp completes an op.
func (l *Operators) NewOp(op Op) *Op { return l.newOp(op) }

// StandardNames returns ONNX's own operators.
func StandardNames() []Operator { return standard }
