package models

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// defaultsOf counts the inputs of a model that are initializers, too. These are defaults, which whoever runs the
// model may replace. Files of before version 4 of the format have all weights among the inputs.
func defaultsOf(m *onnx.Model) int { return len(m.Graph.Inputs) - len(withoutDefaults(m).Inputs) }

// withoutDefaults returns the graph of a model without inputs that are initializers.
func withoutDefaults(m *onnx.Model) *onnx.Graph {
	initial := initializers(m)
	g := *m.Graph
	g.Inputs = slices.DeleteFunc(slices.Clone(g.Inputs), func(in *onnx.ValueInfo) bool { return initial[in.Name] })
	return &g
}

// initializers returns the names of the initializers of a model.
func initializers(m *onnx.Model) map[string]bool {
	names := make(map[string]bool)
	for _, t := range m.Graph.Initializers {
		names[t.Name] = true
	}
	return names
}

// fixed returns the model in which defaults are constants. That takes version 4 of the format.
func fixed(m *onnx.Model) *onnx.Model {
	c := *m
	c.Graph, c.IRVersion = withoutDefaults(m), max(m.IRVersion, 4)
	return &c
}

// read reads a model, and makes its defaults constants if the flag says so. defaults counts them.
func (a *argumentFlags) read(name string) (m *onnx.Model, defaults int, err error) {
	if m, err = onnx.ReadFile(name); err != nil || m.Graph == nil {
		return m, 0, err
	}
	if defaults = defaultsOf(m); defaults > 0 && a.fixDefaults {
		m = fixed(m)
	}
	return m, defaults, nil
}
