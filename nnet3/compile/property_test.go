package compile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// generator draws networks of NoOpComponents. Every node that a descriptor may refer to has two
// columns.
type generator struct {
	t        *rapid.T
	required bool // no Failover, no IfDefined but of the past of the node itself, one input
	lines    []string
	names    []string // of the nodes so far
}

func (g *generator) number(low, high int) int { return rapid.IntRange(low, high).Draw(g.t, "n") }

// leaf draws a descriptor without sums.
func (g *generator) leaf(depth int) string {
	kinds := 8
	if g.required {
		kinds = 7 // nor a row at a fixed time, which an endless input leaves behind
	}
	if depth == 0 {
		kinds = 4
	}
	switch g.number(0, kinds-1) {
	case 0, 1:
		return rapid.SampledFrom(g.names).Draw(g.t, "node")
	case 2, 3:
		return fmt.Sprintf("Offset(%s, %d)", rapid.SampledFrom(g.names).Draw(g.t, "node"), g.number(-4, 4))
	case 4:
		return fmt.Sprintf("Round(%s, %d)", g.leaf(depth-1), g.number(1, 4))
	case 5:
		return fmt.Sprintf("Switch(%s, %s)", g.leaf(depth-1), g.leaf(depth-1))
	case 6:
		return fmt.Sprintf("Scale(%d, %s)", g.number(-3, 3), g.leaf(depth-1))
	default:
		return fmt.Sprintf("ReplaceIndex(%s, t, %d)", g.leaf(depth-1), g.number(-2, 2))
	}
}

// sum draws a descriptor of two columns.
func (g *generator) sum(depth int) string {
	kinds := 6
	if g.required {
		kinds = 4
	}
	if depth == 0 {
		kinds = 2
	}
	switch g.number(0, kinds-1) {
	case 0, 1:
		return g.leaf(2)
	case 2:
		return fmt.Sprintf("Sum(%s, %s)", g.sum(depth-1), g.sum(depth-1))
	case 3:
		return fmt.Sprintf("Sum(%s, Const(%d, 2))", g.sum(depth-1), g.number(-2, 2))
	case 4:
		return fmt.Sprintf("Failover(%s, %s)", g.sum(depth-1), g.sum(depth-1))
	default:
		return fmt.Sprintf("IfDefined(%s)", g.sum(depth-1))
	}
}

// network draws the config lines of a network.
func (g *generator) network() string {
	g.lines = []string{"input-node name=input dim=2"}
	g.names = []string{"input"}
	if !g.required && rapid.Bool().Draw(g.t, "second input") {
		g.lines = append(g.lines, "input-node name=other dim=2")
		g.names = append(g.names, "other")
	}
	for i := range g.number(1, 4) {
		name := fmt.Sprintf("c%d", i)
		parts := g.number(1, 3)
		descriptor := g.sum(2)
		for range parts - 1 {
			descriptor += ", " + g.sum(1)
		}
		if parts > 1 {
			descriptor = "Append(" + descriptor + ")"
		}
		if rapid.IntRange(0, 2).Draw(g.t, "recurrent") == 0 {
			back := fmt.Sprintf("IfDefined(Offset(%s.out, %d))", name, g.number(-3, -1))
			if rapid.Bool().Draw(g.t, "append") {
				descriptor, parts = fmt.Sprintf("Append(%s, %s)", descriptor, back), parts+1
			} else if parts == 1 {
				descriptor = fmt.Sprintf("Sum(%s, %s)", descriptor, back)
			}
		}
		g.lines = append(g.lines,
			fmt.Sprintf("component name=%s type=NoOpComponent dim=%d", name, 2*parts),
			fmt.Sprintf("component-node name=%s component=%s input=%s", name, name, descriptor),
			fmt.Sprintf("dim-range-node name=%s.out input-node=%s dim=2 dim-offset=%d", name, name, g.number(0, 2*parts-2)))
		g.names = append(g.names, name+".out")
	}
	g.lines = append(g.lines, "output-node name=output input="+g.sum(1))
	return strings.Join(g.lines, "\n")
}

// oracle computes rows by the definition, without any planning.
type oracle struct {
	nn     *nnet3.Nnet
	values map[index.Cindex][]float64 // what is known; nil is not computable
}

// at returns the row of a node, nil if it isn't computable. Rows long before all inputs count as
// not computable.
func (o *oracle) at(c index.Cindex) []float64 {
	if v, ok := o.values[c]; ok {
		return v
	}
	n := &o.nn.Nodes[c.Node]
	var row []float64
	switch {
	case c.Index.T < -100:
	case n.Kind == nnet3.ComponentNode:
		row = o.at(index.Cindex{Node: c.Node - 1, Index: c.Index})
	case n.Kind == nnet3.DimRangeNode:
		if all := o.at(index.Cindex{Node: int32(n.Input), Index: c.Index}); all != nil {
			row = all[n.DimOffset : n.DimOffset+n.Dim]
		}
	case n.Kind == nnet3.DescriptorNode:
		row = []float64{}
		for i := range n.Descriptor.Parts {
			has := func(c index.Cindex) bool { return o.at(c) != nil }
			terms, constant, ok := n.Descriptor.Parts[i].Eval(c.Index, has, nil)
			if !ok {
				row = nil
				break
			}
			part := []float64{float64(constant), float64(constant)}
			for _, t := range terms {
				addTo(part, t.Scale, o.at(t.Cindex))
			}
			row = append(row, part...)
		}
	}
	o.values[c] = row
	return row
}

// keep copies the rows that a computable row is computed from to kept.
func (o *oracle) keep(c index.Cindex, kept map[index.Cindex][]float64) {
	if _, ok := kept[c]; ok {
		return
	}
	kept[c] = o.at(c)
	n := &o.nn.Nodes[c.Node]
	switch n.Kind {
	case nnet3.ComponentNode:
		o.keep(index.Cindex{Node: c.Node - 1, Index: c.Index}, kept)
	case nnet3.DimRangeNode:
		o.keep(index.Cindex{Node: int32(n.Input), Index: c.Index}, kept)
	case nnet3.DescriptorNode:
		var used []index.Cindex
		n.Descriptor.IsComputable(c.Index, func(c index.Cindex) bool { return o.at(c) != nil }, &used)
		for _, d := range used {
			o.keep(d, kept)
		}
	}
}

// drawRequest draws a request for computable rows, with values for the inputs.
func drawRequest(t *rapid.T, nn *nnet3.Nnet) (*computation.Request, *oracle) {
	sequences := rapid.IntRange(1, 3).Draw(t, "sequences")
	grid := func(name string, low, high int) computation.IoSpecification {
		s := computation.IoSpecification{Name: name}
		for n := range sequences {
			for i := low; i < high; i++ {
				s.Indexes = append(s.Indexes, index.Index{N: int32(n), T: int32(i)})
			}
		}
		if rapid.Bool().Draw(t, "sort") {
			slices.SortFunc(s.Indexes, index.Compare)
		}
		return s
	}
	o := &oracle{nn: nn, values: map[index.Cindex][]float64{}}
	req := &computation.Request{}
	for i := range nn.Nodes {
		if !nn.IsInputNode(i) {
			continue
		}
		s := grid(nn.Nodes[i].Name, rapid.IntRange(-8, 0).Draw(t, "first"), rapid.IntRange(1, 14).Draw(t, "last"))
		if len(s.Indexes) > 1 && rapid.IntRange(0, 4).Draw(t, "irregular") == 0 {
			s.Indexes = s.Indexes[:len(s.Indexes)-1]
		}
		s.HasDeriv = true
		for _, ix := range s.Indexes {
			o.values[index.Cindex{Node: int32(i), Index: ix}] = []float64{value(i, ix, 0), value(i, ix, 1)}
		}
		req.Inputs = append(req.Inputs, s)
	}
	out := grid("output", -4, 12)
	kept := out.Indexes[:0]
	for _, ix := range out.Indexes {
		if o.at(index.Cindex{Node: int32(nn.NodeIndex("output")), Index: ix}) != nil {
			kept = append(kept, ix)
		}
	}
	out.Indexes, out.HasDeriv = kept, true
	req.Outputs = []computation.IoSpecification{out}
	return req, o
}

// value returns a number for an element of an input.
func value(node int, ix index.Index, col int) float64 {
	return math.Sin(float64(1+node*1000+int(ix.T)*7+int(ix.N)*131+col*17) * 1.37)
}

// TestProperty compiles random networks and compares what the commands compute with the definition:
// values, and derivatives by the identity <J x, y> = <x, Jᵀ y>, which holds because these networks
// are linear except for constants.
func TestProperty(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := (&generator{t: t}).network()
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil {
			t.Skip(err) // such as Append of nothing
		}
		req, o := drawRequest(t, nn)
		if len(req.Outputs[0].Indexes) == 0 {
			t.Skip("nothing is computable")
		}
		c, err := Compile(nn, req, Options{DebugInfo: true})
		if errors.Is(err, ErrUnbounded) || errors.Is(err, errCyclic) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		info := computation.NewNetworkInfo(nn, nil)
		if err := computation.Check(c, info, computation.CheckOptions{Rewrite: true, AllowUnused: true}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		compareShortcut(t, nn, req)
		runBoth(t, nn, req, o, c, text)
	})
}

// runBoth runs a computation forward and backward and compares.
func runBoth(t *rapid.T, nn *nnet3.Nnet, req *computation.Request, o *oracle, c *computation.Computation, text string) {
	derivs := map[int32][]float64{}
	p := newInterpreter(c, nn)
	output := int32(nn.NodeIndex("output"))
	p.accept = func(node int32) []float64 {
		var rows []float64
		indexes := req.Outputs[0].Indexes
		if node != output {
			indexes = req.Input(nn.Nodes[node].Name).Indexes
		}
		for _, ix := range indexes {
			rows = append(rows, value(int(node), ix, 0), value(int(node), ix, 1))
		}
		return rows
	}
	var got []float64
	p.provide = func(node int32, values []float64) {
		if node == output {
			got = append(got, values...)
		} else {
			derivs[node] = append([]float64(nil), values...)
		}
	}
	next, err := p.run(0)
	if err == nil {
		_, err = p.run(next)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	zero := &oracle{nn: nn, values: map[index.Cindex][]float64{}} // the constants alone
	for at, v := range o.values {
		if nn.IsInputNode(int(at.Node)) && v != nil {
			zero.values[at] = []float64{0, 0}
		}
	}
	forward, scale := 0.0, 1.0
	for i, ix := range req.Outputs[0].Indexes {
		at := index.Cindex{Node: output, Index: ix}
		want, offset := o.at(at), zero.at(at)
		for k := range want {
			if d := got[2*i+k] - want[k]; math.Abs(d) > 1e-9*(1+math.Abs(want[k])) {
				t.Fatalf("%v column %d is %g, want %g\n%s", ix, k, got[2*i+k], want[k], text)
			}
			forward += (want[k] - offset[k]) * value(int(output), ix, k)
			scale += math.Abs((want[k] - offset[k]) * value(int(output), ix, k))
		}
	}
	backward := 0.0
	for _, in := range req.Inputs {
		node := int32(nn.NodeIndex(in.Name))
		if len(derivs[node]) != 2*len(in.Indexes) {
			t.Fatalf("derivative of %s has %d numbers for %d rows\n%s", in.Name, len(derivs[node]), len(in.Indexes), text)
		}
		for i, ix := range in.Indexes {
			for k := range 2 {
				backward += derivs[node][2*i+k] * value(int(node), ix, k)
			}
		}
	}
	if math.Abs(forward-backward) > 1e-9*scale {
		t.Fatalf("<Jx, y> is %g and <x, Jᵀy> is %g\n%s", forward, backward, text)
	}
}
