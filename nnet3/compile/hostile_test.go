package compile

import (
	"errors"
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"
)

// TestHostileNetworks asks for the context of networks that want too much: an error, soon, and little memory.
func TestHostileNetworks(t *testing.T) {
	const noOp = "component name=c type=NoOpComponent dim=4"
	layers := func(n int, input string) []string {
		lines, last := []string{noOp}, "input"
		for i := range n {
			in := strings.NewReplacer("LAST", last, "STEP", fmt.Sprint(1<<min(i, 29))).Replace(input)
			lines = append(lines, fmt.Sprintf("component-node name=n%d component=c input=%s", i, in))
			last = fmt.Sprint("n", i)
		}
		return append(lines, "output-node name=output input="+last)
	}
	tdnn := "component name=c type=TdnnComponent input-dim=4 output-dim=4 time-offsets=-2000000000,2000000000"
	for _, c := range []struct {
		name  string
		lines []string
		want  error
	}{
		{"a circle without delay", []string{noOp, "component-node name=x component=c input=Sum(input, x)", "output-node name=output input=x"}, ErrNotComputable},
		{"without a beginning", []string{noOp, "component-node name=x component=c input=Sum(input, Offset(x, -1))", "output-node name=output input=x"}, ErrNotComputable},
		{"many layers", layers(12000, "LAST"), ErrUnbounded},
		{"wide layers", layers(3000, "Sum(Offset(LAST, -1), Offset(LAST, 1))"), ErrNotComputable},
		{"twice as far with every layer", layers(40, "Sum(LAST, Offset(LAST, STEP))"), ErrNotComputable},
		{"a large modulus", []string{"output-node name=output input=Round(input, 2000000000)"}, ErrNotComputable},
		{"the product of moduli", []string{"output-node name=output input=Append(Round(input, 101), Round(input, 103), Round(input, 107), Round(input, 109), Round(input, 113))"}, ErrNotComputable},
		{"far offsets", []string{tdnn, "component-node name=x component=c input=input", "output-node name=output input=x"}, ErrNotComputable},
	} {
		t.Run(c.name, func(t *testing.T) {
			nn := parse(t, append([]string{"input-node name=input dim=4"}, c.lines...)...)
			sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
			metrics.Read(sample)
			before := sample[0].Value.Uint64()
			_, _, err := Context(nn, []string{"output"})
			metrics.Read(sample)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if used := sample[0].Value.Uint64() - before; used > 256<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}
