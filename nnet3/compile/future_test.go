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
			nn := futureNetwork(t, c.nodes)
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

// futureNetwork makes a network of lines, each of a node with its input.
func futureNetwork(t *testing.T, nodes string) *nnet3.Nnet {
	t.Helper()
	text := "input-node name=input dim=2\ncomponent name=same type=NoOpComponent dim=2\n" +
		"component name=attention type=RestrictedAttentionComponent num-heads=1 key-dim=1 value-dim=1 num-left-inputs=1 num-right-inputs=3 num-right-inputs-required=1 time-stride=2\n"
	for _, line := range strings.Split(nodes, "\n") {
		name, input, _ := strings.Cut(line, " ")
		switch name {
		case "output", "other":
			text += "output-node name=" + name + " input=" + input + "\n"
		case "attention":
			text += "component-node name=attention component=attention input=" + input + "\n"
		default:
			text += "component-node name=" + name + " component=same input=" + input + "\n"
		}
	}
	nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

// TestLookahead: what a network uses of the future where it is there counts, whether or not it is needed.
func TestLookahead(t *testing.T) {
	for _, c := range []struct {
		nodes       string
		step, right int
		want        int // -1 if it is all of the future
	}{
		{"output input", 1, 0, 0},
		{"output Offset(input, -3)", 1, 0, 0},
		{"output Offset(input, 3)", 1, 3, 3},
		{"output Sum(input, IfDefined(Offset(input, 3)))", 1, 0, 3},
		{"output Failover(Offset(input, 2), input)", 1, 0, 2},
		{"a Sum(input, IfDefined(Offset(input, 3)))\noutput Sum(Offset(a, 1), IfDefined(Offset(a, 2)))", 1, 1, 5},
		{"a Sum(Offset(input, 2), IfDefined(Offset(a, -1)))\noutput a", 1, 2, 2},
		{"a Sum(input, IfDefined(Switch(Offset(a, 3), Offset(a, -5))))\noutput a", 1, 0, 3},
		{"output Sum(input, IfDefined(Switch(input, Offset(input, 1))))", 1, 0, 1},
		{"output Sum(input, IfDefined(Switch(input, Offset(input, 1))))", 2, 0, 0},
		{"attention Append(input, input, input, input)\noutput attention", 1, 2, 6},
		{"a Sum(input, IfDefined(Offset(a, 1)))\noutput a", 1, 0, -1},
	} {
		nn := futureNetwork(t, c.nodes)
		if got, err := lookahead(nn, c.step); c.want < 0 && !errors.Is(err, ErrUnbounded) || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("%s\nwith steps of %d: %d, %v, want %d", c.nodes, c.step, got, err, c.want)
		}
		if _, right, err := Context(nn); err != nil || right != c.right {
			t.Errorf("%s\nneeds %d, %v, want %d", c.nodes, right, err, c.right)
		}
	}
}
