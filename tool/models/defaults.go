package models

import "github.com/nnopt/nnopt/onnx"

// defaultsOf counts the inputs of a model that are initializers, too. These are defaults, which whoever runs the
// model may replace. Files of before version 4 of the format have all weights among the inputs.
func defaultsOf(m *onnx.Model) int {
	return len(m.Graph.Inputs) - len(m.FixDefaults().Graph.Inputs)
}

// read reads a model, and makes its defaults constants if the flag says so. defaults counts them.
func (a *argumentFlags) read(name string) (m *onnx.Model, defaults int, err error) {
	if m, err = onnx.ReadFile(name); err != nil || m.Graph == nil {
		return m, 0, err
	}
	if defaults = defaultsOf(m); defaults > 0 && a.fixDefaults {
		m = m.FixDefaults()
	}
	return m, defaults, nil
}
