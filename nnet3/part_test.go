package nnet3

import (
	"errors"
	"strings"
	"testing"
)

// TestFor: a part of a network has what its outputs need, and nothing else.
func TestFor(t *testing.T) {
	nn := mustParse(t, `
input-node name=unused dim=3
component name=idle type=AffineComponent input-dim=4 output-dim=2
component-node name=idle component=idle input=input
output-node name=other input=Append(idle, unused)
input-node name=input dim=4
component name=a type=NoOpComponent dim=4
component name=b type=NoOpComponent dim=4
component-node name=x component=b input=Sum(input, IfDefined(Offset(y, -1)))
dim-range-node name=half input-node=x dim=2 dim-offset=1
component-node name=y component=a input=Append(half, Offset(half, 1))
component-node name=z component=a input=Switch(x, y)
output-node name=output input=z objective=quadratic
output-node name=third input=Round(half, 3)
`)
	part, err := nn.For("output", "third")
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Check(); err != nil {
		t.Fatal(err)
	}
	want := `input-node name=unused dim=3
input-node name=input dim=4
component-node name=x component=b input=Sum(input, IfDefined(Offset(y, -1))) input-dim=4 output-dim=4
dim-range-node name=half input-node=x dim-offset=1 dim=2
component-node name=y component=a input=Append(half, Offset(half, 1)) input-dim=4 output-dim=4
component-node name=z component=a input=Switch(x, y) input-dim=4 output-dim=4
output-node name=output input=z objective=quadratic dim=4
output-node name=third input=Round(half, 3) objective=linear dim=2
component name=b type=NoOpComponent`
	info := part.Info()
	for line := range strings.Lines(want) {
		if !strings.Contains(info, strings.TrimSpace(line)) {
			t.Errorf("%q is missing in\n%s", line, info)
		}
	}
	if strings.Contains(info, "idle") || strings.Contains(info, "other") || len(part.Components) != 2 || part.NodeIndex("third") < 0 {
		t.Errorf("%s", info)
	}
	for _, bad := range []string{"none", "x", "input"} {
		if _, err := nn.For("output", bad); !errors.Is(err, ErrNetwork) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
