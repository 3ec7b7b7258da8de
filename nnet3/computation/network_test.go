package computation

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

func tdnnNet(t *testing.T) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=3
component name=tdnn type=TdnnComponent input-dim=3 output-dim=2 time-offsets=-1,1
component-node name=tdnn component=tdnn input=input
component name=relu type=RectifiedLinearComponent dim=2
component-node name=relu component=relu input=tdnn
output-node name=output input=relu
`), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

// TestNetworkInfo: nodes and components come in the network's order, derived components follow.
func TestNetworkInfo(t *testing.T) {
	nn := tdnnNet(t)
	got := NewNetworkInfo(nn, []component.Component{nn.Components[1]})
	if diff := cmp.Diff([]NodeInfo{
		{Name: "input", Dim: 3, IsInput: true},
		{Name: "tdnn_input", Dim: 3}, {Name: "tdnn", Dim: 2, IsComponent: true},
		{Name: "relu_input", Dim: 2}, {Name: "relu", Dim: 2, IsComponent: true},
		{Name: "output", Dim: 2, IsOutput: true},
	}, got.Nodes); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, c := range got.Components {
		names = append(names, c.Name+" "+c.Type)
	}
	if diff := cmp.Diff([]string{"tdnn TdnnComponent", "relu RectifiedLinearComponent", "derived0 RectifiedLinearComponent"}, names); diff != "" {
		t.Error(diff)
	}
	c := &Computation{Derived: []component.Component{nn.Components[1]}}
	for i, want := range []component.Component{nn.Components[0], nn.Components[1], nn.Components[1], nil} {
		if got := c.Component(nn, int32(i)); got != want {
			t.Errorf("component %d is %v", i, got)
		}
	}
}

// TestPrecompute: what is missing is asked of the component that uses it; what nobody can
// precompute is reported.
func TestPrecompute(t *testing.T) {
	nn := tdnnNet(t)
	base := func() *Computation {
		c := New()
		c.PrecomputedIndexes = append(c.PrecomputedIndexes, PrecomputedIndexesInfo{
			InputIndexes: []index.Index{{T: 0}, {T: 1}, {T: 2}, {T: 3}}, OutputIndexes: []index.Index{{T: 1}, {T: 2}},
		})
		c.Commands = []Command{NewCommand(Propagate, 0, 1, 0, 0, 0, 0)}
		return c
	}
	c := base()
	data, err := c.Precomputed(nn)
	if err != nil || len(data) != 2 || data[1] == nil || c.PrecomputedIndexes[1].Data != nil {
		t.Errorf("got %v, %v", data, err)
	}
	c.PrecomputedIndexes[1].Data = data[1]
	if again, err := c.Precomputed(nn); err != nil || again[1] != data[1] {
		t.Errorf("present data is computed again: %v, %v", again, err)
	}
	for name, change := range map[string]func(c *Computation){
		"two users":    func(c *Computation) { c.Commands = append(c.Commands, NewCommand(Backprop, 1, 1, 0, 0, 0, 0, 0)) },
		"simple":       func(c *Computation) { c.Commands[0].Args[0] = 1 },
		"none":         func(c *Computation) { c.Commands[0].Args[0] = 7 },
		"input misses": func(c *Computation) { c.PrecomputedIndexes[1].InputIndexes = c.PrecomputedIndexes[1].InputIndexes[:3] },
	} {
		c := base()
		change(c)
		if _, err := c.Precomputed(nn); !errors.Is(err, errComponent) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
