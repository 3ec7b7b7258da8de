package compile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
)

// TestExplainHuge checks that an explanation with too much to list costs little and still has an
// example.
func TestExplainHuge(t *testing.T) {
	layers := func(n int, input string) []string {
		lines, last := []string{"input-node name=input dim=4", "component name=c type=NoOpComponent dim=4"}, "input"
		for i := range n {
			in := strings.NewReplacer("LAST", last, "STEP", fmt.Sprint(1<<min(i, 29))).Replace(input)
			lines = append(lines, fmt.Sprintf("component-node name=n%d component=c input=%s", i, in))
			last = fmt.Sprint("n", i)
		}
		return append(lines, "output-node name=output input="+last)
	}
	for _, c := range []struct {
		name   string
		lines  []string
		frames int32
	}{
		{"without a beginning", layers(1, "Sum(LAST, Offset(n0, -1))"), 5120},
		{"with a far past", layers(1, "Sum(LAST, Offset(n0, -1), Offset(n0, -10000))"), 5120},
		{"deep and wide", layers(3000, "Sum(Offset(LAST, -1), Offset(LAST, 1))"), 150},
		{"twice as far with every layer", layers(40, "Sum(LAST, Offset(LAST, STEP))"), 40},
		{"long", layers(60, "Sum(Offset(LAST, -1), Offset(LAST, 1))"), 10000},
	} {
		t.Run(c.name, func(t *testing.T) {
			nn := parse(t, c.lines...)
			req := ask(rowsOf{"input": at(1, -1000, -999)}, rowsOf{"output": at(1, 0, c.frames)})
			allocated := alloctest.Start()
			_, err := Compile(nn, req, Options{})
			e, ok := errors.AsType[*NotComputableError](err)
			if !ok {
				t.Fatal(err)
			}
			if used := allocated(); used > 100<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
			if len(e.outputs) != 1 || e.outputs[0].count != int(c.frames) || len(e.Inputs) != 1 || e.Inputs[0].count == 0 || !e.partial {
				t.Errorf("%.500s", err)
			}
			if n := len(e.chain); n < 3 || n > maxChain || e.names[0] != "output" || e.names[n-1] != "input" {
				t.Errorf("example %.200v", e.names)
			}
		})
	}
}

// TestExplainWhole checks that an explanation is complete if it can be, even for an utterance.
func TestExplainWhole(t *testing.T) {
	lines := []string{"input-node name=input dim=4", "component name=c type=NoOpComponent dim=4", "component-node name=n0 component=c input=input"}
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("component-node name=n%d component=c input=Sum(Offset(n%[2]d, -1), Offset(n%[2]d, 1))", i+1, i))
	}
	nn := parse(t, append(lines, "output-node name=output input=n20")...)
	_, err := Compile(nn, ask(nil, rowsOf{"output": at(1, 0, 3000)}), Options{})
	e, ok := errors.AsType[*NotComputableError](err)
	if !ok || e.partial || len(e.Inputs) != 1 || e.Inputs[0].count != 3040 || e.Inputs[0].First[0].T != -20 || len(e.chain) != 23 {
		t.Errorf("%.500s", err)
	}
}
