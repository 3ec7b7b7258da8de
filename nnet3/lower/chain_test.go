package lower_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// threeSegments serves three requests. The second and the third take over a matrix, the third one
// that the second has no use for; zeros that were never written are not worth handing on.
func threeSegments() *computation.Computation {
	c := computation.New()
	a, b, unused := c.NewMatrix(2, 3, false), c.NewMatrix(2, 3, false), c.NewMatrix(2, 3, false)
	in := []int32{c.NewMatrix(2, 3, false), c.NewMatrix(2, 3, false), c.NewMatrix(2, 3, false)}
	out := []int32{c.NewMatrix(2, 3, false), c.NewMatrix(2, 3, false), c.NewMatrix(2, 3, false)}
	do := func(t computation.CommandType, args ...int32) {
		c.Commands = append(c.Commands, computation.NewCommand(t, args...))
	}
	do(computation.AcceptInput, in[0], 0)
	for _, m := range append([]int32{a, b, unused}, out...) {
		do(computation.AllocMatrix, m)
		c.Commands = append(c.Commands, computation.NewScaledCommand(computation.SetConst, 0, m))
	}
	for i := range out {
		if i > 0 {
			do(computation.AcceptInput, in[i], 0)
		}
		do(computation.MatrixAdd, out[i], in[i])
		switch i {
		case 0:
			do(computation.MatrixAdd, a, in[i])
			do(computation.MatrixAdd, b, in[i])
		case 1:
			do(computation.MatrixAdd, out[i], a)
		case 2:
			do(computation.MatrixAdd, unused, in[i])
			do(computation.MatrixAdd, out[i], b)
			do(computation.MatrixAdd, out[i], unused)
		}
		do(computation.ProvideOutput, out[i], 1)
		do(computation.NoOperationMarker)
	}
	for _, m := range append([]int32{a, b, unused}, in...) {
		do(computation.DeallocMatrix, m)
	}
	return c
}

// TestChain: a segment takes over what it or a later one reads, and nothing else.
func TestChain(t *testing.T) {
	c := threeSegments()
	chain, err := lower.LowerChain(c, computationtest.Net{})
	if err != nil {
		t.Fatal(err)
	}
	carried := func(ports []lower.Port) (list []int32) {
		for _, p := range ports {
			if p.Carried > 0 {
				list = append(list, p.Carried)
			}
		}
		return list
	}
	want := [][2][]int32{{nil, {1, 2}}, {{1, 2}, {2}}, {{2}, nil}, {nil, nil}}
	if len(chain.Programs) != len(want) || chain.Loop != -1 {
		t.Fatalf("%d programs, loop %d", len(chain.Programs), chain.Loop)
	}
	for i, p := range chain.Programs {
		if in, out := carried(p.Inputs), carried(p.Outputs); !slices.Equal(in, want[i][0]) || !slices.Equal(out, want[i][1]) {
			t.Errorf("segment %d takes over %v and hands on %v, want %v", i, in, out, want[i])
		}
		if err := p.Graph.Check(); err != nil {
			t.Error(err)
		}
	}
	got, err := chain.Emit()
	if err != nil {
		t.Fatal(err)
	}
	if err := computation.Check(got, nil, computation.CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	computationtest.Compare(t, computationtest.Net{}, c, got)
}

// TestUnsupported: what has no form as values is refused.
func TestUnsupported(t *testing.T) {
	net := computationtest.NewNet([]computation.ComponentInfo{{Name: "a", Type: "NoOpComponent", InputDim: 3, OutputDim: 3, Properties: component.Simple}})
	loop := func(commands ...computation.Command) *computation.Computation {
		c := computation.New()
		for range 3 {
			c.NewMatrix(2, 3, false)
		}
		c.Commands = commands
		return c
	}
	cmd := computation.NewCommand
	marker, label := cmd(computation.NoOperationMarker), cmd(computation.NoOperationLabel)
	for name, c := range map[string]*computation.Computation{
		"backward among segments": loop(cmd(computation.AcceptInput, 1, 0), marker, cmd(computation.AcceptInput, 2, 0),
			cmd(computation.Backprop, 0, 0, 0, 0, 1, 2, 0), marker),
		"no label":            loop(cmd(computation.AcceptInput, 1, 0), marker, cmd(computation.GotoLabel, 0)),
		"jump from elsewhere": loop(label, cmd(computation.AcceptInput, 1, 0), cmd(computation.GotoLabel, 0), marker),
		"from nowhere":        loop(label, cmd(computation.MatrixAdd, 2, 1), marker, cmd(computation.GotoLabel, 0)),
	} {
		if _, err := lower.LowerChain(c, net); !errors.Is(err, lower.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := lower.Lower(threeSegments(), net); !errors.Is(err, lower.ErrUnsupported) {
		t.Errorf("several segments in one program: %v", err)
	}
}
