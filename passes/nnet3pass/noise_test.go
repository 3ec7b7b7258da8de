package nnet3pass_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/passes/nnet3pass/internal/noise"
)

// TestEstimateReusesMemory: the estimate of errors is the same whether or not memory is used again,
// and takes less of it.
func TestEstimateReusesMemory(t *testing.T) {
	const affine = " type=NaturalGradientAffineComponent input-dim="
	for name, lines := range map[string]string{
		"chain": `component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1))
component-node name=ar component=ar input=a
component-node name=b component=b input=ar
component-node name=br component=br input=b
component-node name=c component=b input=Sum(br, Scale(0.5, ar))
component-node name=d component=b input=Switch(c, ar)
output-node name=output input=d`,
		"ranges": `component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1))
dim-range-node name=low input-node=a dim=32 dim-offset=0
dim-range-node name=high input-node=a dim=32 dim-offset=32
component-node name=ar component=ar input=a
component-node name=b component=b input=Append(high, low)
component-node name=c component=b input=Append(low, Offset(high, 2))
output-node name=first input=b
output-node name=output input=Sum(c, ar)`,
		"loop": `component-node name=a component=a input=Append(Offset(input, -1), input, IfDefined(Offset(n, -1)))
component-node name=ar component=ar input=a
component-node name=n component=narrow input=ar
output-node name=output input=ar`,
	} {
		net, err := nnet3.ParseConfig(strings.NewReader("input-node name=input dim=40\ncomponent name=a"+affine+"120 output-dim=64\ncomponent name=ar type=RectifiedLinearComponent dim=64\n"+
			"component name=br type=RectifiedLinearComponent dim=64\ncomponent name=b"+affine+"64 output-dim=64\ncomponent name=narrow"+affine+"64 output-dim=40\n"+lines), name, 3)
		if err != nil {
			t.Fatal(err)
		}
		reused := noise.NewEstimate(net, noise.Pool{})
		if got, want := reused.Network(), noise.NewEstimate(net, nil).Network(); !reflect.DeepEqual(got, want) || len(got.Products) == 0 {
			t.Errorf("%s: %v\nwithout reuse %v", name, got, want)
		}
		kept := reused.Kept()
		if all := len(net.Nodes); (kept == all) != (name == "loop") {
			t.Errorf("%s: %d of %d nodes are kept", name, kept, all)
		}
	}
}
