package compile

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3"
)

// TestLoopedFuture: a network is not looped if an output depends on all of the future.
func TestLoopedFuture(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes string // lines, each of a node with its input
		node  string // which the error names; none if there is none
	}{
		{"past", "a Sum(input, IfDefined(Offset(a, -1)))\noutput a", ""},
		{"future", "a Sum(input, IfDefined(Offset(a, 1)))\noutput a", "a"},
		{"future by way of others", "a Sum(input, IfDefined(Offset(b, 3)))\nb Offset(c, -1)\nc Offset(a, -1)\noutput b", "a"},
		{"future that the output does not need", "a Sum(input, IfDefined(Offset(b, 3)))\nb Offset(c, -1)\nc Offset(a, -1)\noutput input\nother b", ""},
		{"both ways", "f Sum(input, IfDefined(Offset(f, -3)))\nb Sum(f, IfDefined(Offset(b, 3)))\noutput Sum(f, b)", "b"},
		{"a cycle that ends where it began", "a Sum(input, IfDefined(Offset(b, 3)))\nb Sum(input, IfDefined(Offset(a, -4)))\noutput b", ""},
		{"a cycle that moves on", "a Sum(input, IfDefined(Offset(b, 3)))\nb Sum(input, IfDefined(Offset(a, -2)))\noutput b", "a"},
		{"in place of what is missing", "a Failover(Offset(a, 2), input)\noutput a", "a"},
		{"the future at even times alone", "a IfDefined(Switch(Offset(a, 1), input))\noutput a", ""},
		{"the future at all times", "a Sum(input, IfDefined(Switch(Offset(a, 1), Offset(a, 1))))\noutput a", "a"},
		{"back and forth", "a Sum(input, IfDefined(Switch(Offset(a, 3), Offset(a, -5))))\noutput a", ""},
		{"on the whole forth", "a Sum(input, IfDefined(Switch(Offset(a, 5), Offset(a, -3))))\noutput a", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "input-node name=input dim=2\ncomponent name=same type=NoOpComponent dim=2\n"
			for _, line := range strings.Split(c.nodes, "\n") {
				name, input, _ := strings.Cut(line, " ")
				if name == "output" || name == "other" {
					text += "output-node name=" + name + " input=" + input + "\n"
				} else {
					text += "component-node name=" + name + " component=same input=" + input + "\n"
				}
			}
			nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			requests, err := LoopedRequests(nn, LoopedConfig{FramesPerChunk: 12, RightContext: 1})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Looped(nn, requests, Options{})
			if c.node == "" && err != nil {
				t.Error(err)
			}
			if c.node != "" && (!errors.Is(err, ErrUnbounded) || !strings.Contains(err.Error(), `rows of node "`+c.node+`"`)) {
				t.Errorf("%v", err)
			}
		})
	}
}
