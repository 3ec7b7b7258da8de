package compile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/index"
)

// A fixpoint finds the computable rows by definition: it goes over all rows that outputs may depend
// on until no more of them become computable.
type fixpoint struct {
	nn         *nnet3.Nnet
	first, end int // times that are given, of an i-vector also those before
	computable map[index.Cindex]bool
}

// dependencies returns all rows that a row may depend on.
func (f *fixpoint) dependencies(c index.Cindex) []index.Cindex {
	n := &f.nn.Nodes[c.Node]
	switch n.Kind {
	case nnet3.DescriptorNode:
		return n.Descriptor.Dependencies(c.Index, nil)
	case nnet3.DimRangeNode:
		return []index.Cindex{{Node: int32(n.Input), Index: c.Index}}
	case nnet3.ComponentNode:
		general, ok := f.nn.Components[n.Component].(interface {
			InputIndexes(index.Index, []index.Index) []index.Index
		})
		if !ok {
			return []index.Cindex{{Node: c.Node - 1, Index: c.Index}}
		}
		var list []index.Cindex
		for _, ix := range general.InputIndexes(c.Index, nil) {
			list = append(list, index.Cindex{Node: c.Node - 1, Index: ix})
		}
		return list
	}
	return nil
}

// look reports whether a row is computable from the rows known to be.
func (f *fixpoint) look(c index.Cindex) bool {
	n := &f.nn.Nodes[c.Node]
	switch n.Kind {
	case nnet3.InputNode:
		t := int(c.Index.T)
		return t < f.end && (t >= f.first || n.Name == ivectorName)
	case nnet3.DescriptorNode:
		return n.Descriptor.IsComputable(c.Index, func(d index.Cindex) bool { return f.computable[d] }, nil)
	case nnet3.ComponentNode:
		if general, ok := f.nn.Components[n.Component].(interface {
			IsComputable(index.Index, func(index.Index) bool, *[]index.Index) bool
		}); ok {
			return general.IsComputable(c.Index, func(ix index.Index) bool { return f.computable[index.Cindex{Node: c.Node - 1, Index: ix}] }, nil)
		}
	}
	return f.computable[f.dependencies(c)[0]]
}

// outputs reports at which times from first to end all outputs are computable from the given
// frames.
func (f *fixpoint) outputs(outputs []string, first, end int) []bool {
	f.computable = map[index.Cindex]bool{}
	seen := map[index.Cindex]bool{}
	var rows []index.Cindex
	add := func(c index.Cindex) {
		if t := int(c.Index.T); !seen[c] && t >= min(first, f.first)-50 && t < max(end, f.end)+50 {
			seen[c] = true
			rows = append(rows, c)
		}
	}
	for _, name := range outputs {
		for t := first; t < end; t++ {
			add(index.Cindex{Node: int32(f.nn.NodeIndex(name)), Index: index.Index{T: int32(t)}})
		}
	}
	for i := 0; i < len(rows); i++ {
		for _, d := range f.dependencies(rows[i]) {
			add(d)
		}
	}
	slices.Reverse(rows) // what comes first has fewer dependencies
	for again := true; again; {
		again = false
		for _, c := range rows {
			if !f.computable[c] && f.look(c) {
				f.computable[c] = true
				again = true
			}
		}
	}
	ok := make([]bool, end-first)
	for i := range ok {
		ok[i] = true
		for _, name := range outputs {
			ok[i] = ok[i] && f.computable[index.Cindex{Node: int32(f.nn.NodeIndex(name)), Index: index.Index{T: int32(first + i)}}]
		}
	}
	return ok
}

// checkContext compares Context and SmallestChunk with the definition.
func checkContext(t *testing.T, nn *nnet3.Nnet) (left, right, smallest int) {
	t.Helper()
	var outputs []string
	for i := range nn.Nodes {
		if nn.IsOutputNode(i) {
			outputs = append(outputs, nn.Nodes[i].Name)
		}
	}
	left, right, err := Context(nn, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	if smallest, err = SmallestChunk(nn, outputs...); err != nil {
		t.Fatal(err)
	}
	// all reports whether the outputs from first to end are computable from so many frames before
	// and after.
	all := func(first, end, left, right int) bool {
		f := &fixpoint{nn: nn, first: first - left, end: end + right}
		return !slices.Contains(f.outputs(outputs, first, end), false)
	}
	far := left + right + smallest + 20
	enough, lessLeft, lessRight, shorter := true, false, false, false
	for t := range nn.Modulus() {
		enough = enough && all(t, t+smallest, left, right) && all(t, t+smallest+7, left, right)
		lessLeft = lessLeft || !all(t, t+1, left-1, far)
		lessRight = lessRight || !all(t, t+1, far, right-1)
		shorter = shorter || !all(t, t+smallest-1, left, right)
	}
	if !enough || !lessLeft && left > 0 || !lessRight && right > 0 || !shorter && smallest > 1 {
		t.Errorf("context %d and %d, smallest chunk %d: enough %t; needed to the left %t, to the right %t, as a chunk %t", left, right, smallest, enough, lessLeft, lessRight, shorter)
	}
	return left, right, smallest
}

// TestContextByDefinition compares the contexts of small networks and of the reference cases with
// the definition.
func TestContextByDefinition(t *testing.T) {
	const in = "input-node name=input dim=2"
	stats := func(period, left, right int) []string {
		return []string{in,
			fmt.Sprintf("component name=s type=StatisticsExtractionComponent input-dim=2 input-period=1 output-period=%d include-variance=true", period),
			"component-node name=s component=s input=Offset(input, 1)",
			fmt.Sprintf("component name=p type=StatisticsPoolingComponent input-dim=5 input-period=%d left-context=%d right-context=%d num-log-count-features=0 output-stddevs=true", period, left, right),
			"component-node name=p component=p input=s",
			fmt.Sprintf("output-node name=output input=Round(p, %d)", period)}
	}
	for _, c := range []struct {
		name string
		net  []string
		want [3]int // left, right, smallest chunk
	}{
		{"spliced", spliced, [3]int{1, 0, 1}},
		{"recurrent", recurrent, [3]int{0, 0, 1}},
		{"switch", []string{in, "output-node name=output input=Switch(Offset(input, -2), Offset(input, 3))"}, [3]int{2, 3, 1}},
		{"switch of rounds", []string{in, "output-node name=output input=Switch(Round(input, 4), Offset(Round(input, 3), 2), input)"}, [3]int{3, 2, 1}},
		{"only later", []string{in, "output-node name=output input=Offset(input, 5)"}, [3]int{0, 5, 1}},
		{"a fixed time", []string{in, "output-node name=output input=ReplaceIndex(input, t, 3)"}, [3]int{0, 3, 1}},
		{"either side", []string{in, "output-node name=output input=Failover(Offset(input, -5), Offset(input, 5))"}, [3]int{0, 0, 10}},
		{"not needed", []string{in, "output-node name=output input=Sum(Offset(input, 1), IfDefined(Offset(input, -9)))"}, [3]int{0, 1, 1}},
		{"two inputs", []string{in, "input-node name=other dim=2", "output-node name=output input=Append(Offset(input, -3), Offset(other, 4))"}, [3]int{3, 4, 1}},
		{"two outputs", []string{in, "output-node name=output input=Offset(input, -3)", "output-node name=more input=Round(input, 6)"}, [3]int{5, 0, 1}},
		{"i-vectors", []string{in, "input-node name=ivector dim=2", "output-node name=output input=Append(Offset(input, -1), Round(ivector, 10))"}, [3]int{1, 0, 1}},
		{"statistics", stats(1, 0, 12), [3]int{0, 1, 1}},
		{"statistics of a period", stats(5, 10, 10), [3]int{0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nn := parse(t, c.net...)
			left, right, smallest := checkContext(t, nn)
			if got := [3]int{left, right, smallest}; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	for _, f := range fullSizes(t) {
		if f.name == "xvector" || longtest.Enabled() {
			t.Run(f.name, func(t *testing.T) { checkContext(t, f.nn) })
		}
	}
	for i, dir := range goldenDirs(t) {
		if i%longtest.Of(6, 1) != 0 {
			continue
		}
		c := readGolden(t, dir)
		t.Run(c.name, func(t *testing.T) { checkContext(t, c.nn) })
	}
}
