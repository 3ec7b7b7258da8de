package ir

// NewOp completes an op.
func (l *Operators) NewOp(op Op) *Op { return l.newOp(op) }
