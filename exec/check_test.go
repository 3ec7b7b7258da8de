package exec_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
)

// lyingComponent is a component that doesn't do what it declares.
type lyingComponent struct {
	component.Component
	how string
}

func (l lyingComponent) Propagate(w *component.Workspace, pass component.ForwardPass, in, out kernel.Matrix) (component.Memo, error) {
	last := kernel.Row(out, out.Rows-1)
	was := slices.Clone(last)
	memo, err := l.Component.Propagate(w, pass, in, out)
	switch l.how {
	case "input":
		in.Data[1]++
	case "unwritten":
		copy(last, was)
	case "reads":
		last[0] += was[0]
	}
	return memo, err
}

func (l lyingComponent) Backprop(w *component.Workspace, pass component.BackwardPass) error {
	last := kernel.Row(pass.InDeriv, pass.InDeriv.Rows-1)
	was := slices.Clone(last)
	err := l.Component.(component.Backpropper).Backprop(w, pass)
	switch l.how {
	case "value":
		pass.OutValue.Data[1]++
	case "derivative":
		pass.OutDeriv.Data[1]++
	case "unwritten derivative":
		copy(last, was)
	}
	return err
}

// TestCheckOfComponents: Check finds every component that writes outside of its output, or not all
// of its output, forward and backward. Components that do what they declare pass.
func TestCheckOfComponents(t *testing.T) {
	for _, c := range []struct{ how, want string }{
		{"honest", ""},
		{"input", "overwrites element 1 of m"}, {"unwritten", "reads row"}, {"reads", "reads row"},
		{"value", "overwrites element 1 of m"}, {"derivative", "overwrites element 1 of m"}, {"unwritten derivative", "reads row"},
	} {
		nn := parseNet(t, smallNet)
		i := slices.Index(nn.ComponentNames, "relu")
		nn.Components[i] = lyingComponent{nn.Components[i], c.how}
		comp := newComputer(t, compileSmall(t, nn, true), nn, exec.ComputerOptions{ToUpdate: gradientOf(nn), Check: true})
		r := rand.New(rand.NewPCG(3, 3))
		accept(t, comp, "input", random(r, 20, 5))
		err := comp.Run(t.Context())
		if err == nil {
			accept(t, comp, "output", random(r, 10, 3))
			err = comp.Run(t.Context())
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, fgraph.ErrDeclaration) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "relu")) {
			t.Errorf("%s: %v", c.how, err)
		}
	}
}
