package ir

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

// WithOutputs returns the op with another number of results.
func (op *Op) WithOutputs(n int) *Op {
	c := op.copied()
	c.Outputs = n
	return c
}

// WithAttributes returns the op with other values of attributes, or more of them.
func (op *Op) WithAttributes(list ...*onnx.Attribute) *Op {
	c := op.copied()
	c.Attributes = slices.DeleteFunc(slices.Clone(op.Attributes), func(a *onnx.Attribute) bool {
		return slices.ContainsFunc(list, func(b *onnx.Attribute) bool { return b.Name == a.Name })
	})
	c.Attributes = append(c.Attributes, list...)
	slices.SortStableFunc(c.Attributes, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (op *Op) copied() *Op {
	return Op{Type: op.Type, Domain: op.Domain, overload: op.overload, Attributes: op.Attributes, Bodies: op.Bodies, Outputs: op.Outputs, Legacy: op.Legacy, operator: op.operator}.completed()
}
