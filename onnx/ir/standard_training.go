package ir

import "slices"

// training is the domain of operators that train, which were never final.
const training = "ai.onnx.preview.training"

// standardTraining are operators that train. The inputs of optimizers are a rate, a count, and lists of
// tensors, of their gradients, and of what is accumulated; the results are new tensors and what is
// accumulated, of the same shapes.
var standardTraining = slices.Concat(
	named(Operator{Domain: training, MinInputs: 3, MaxInputs: -1, Infer: func(c *Call) { c.optimizer(3) }}, "Adagrad", "Momentum"),
	named(Operator{Domain: training, MinInputs: 3, MaxInputs: -1, Infer: func(c *Call) { c.optimizer(4) }}, "Adam"),
	// A gradient is like what it is of.
	named(Operator{Domain: training, MinInputs: 1, MaxInputs: -1, Infer: func(c *Call) {
		for k := range min(c.Op.Outputs, c.NumInputs()) {
			c.like(k, k)
		}
	}}, "Gradient"),
)

// optimizer infers the results of an optimizer with so many lists.
func (c *Call) optimizer(lists int) {
	n := (c.NumInputs() - 2) / lists
	for k := range c.Op.Outputs {
		if n > 0 && k < n*(lists-1) {
			c.like(k, 2+k%n)
		}
	}
}
