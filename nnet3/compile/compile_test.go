package compile

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// parse makes a network from config lines.
func parse(t testing.TB, lines ...string) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(strings.Join(lines, "\n")), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

// at returns the indexes of the sequences 0 to sequences-1 at the times [first, end), sequence by
// sequence.
func at(sequences, first, end int32) (list []index.Index) {
	for n := range sequences {
		for t := first; t < end; t++ {
			list = append(list, index.Index{N: n, T: t})
		}
	}
	return list
}

// ask returns a request for inputs and outputs, each a name and its indexes.
func ask(inputs, outputs map[string][]index.Index) *computation.Request {
	req := &computation.Request{}
	for _, name := range sortedKeys(inputs) {
		req.Inputs = append(req.Inputs, computation.IoSpecification{Name: name, Indexes: inputs[name]})
	}
	for _, name := range sortedKeys(outputs) {
		req.Outputs = append(req.Outputs, computation.IoSpecification{Name: name, Indexes: outputs[name]})
	}
	return req
}

func sortedKeys(m map[string][]index.Index) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

type rowsOf = map[string][]index.Index

var (
	spliced = []string{
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=4",
		"component-node name=a component=a input=Append(Offset(input, -1), input)",
		"output-node name=output input=a",
	}
	recurrent = []string{
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=2",
		"component-node name=a component=a input=Sum(input, IfDefined(Offset(a, -2)))",
		"component name=b type=NoOpComponent dim=2",
		"component-node name=b component=b input=a",
		"output-node name=output input=b",
	}
)

func TestBadRequests(t *testing.T) {
	nn := parse(t, spliced...)
	good := func() *computation.Request { return ask(rowsOf{"input": at(1, -1, 4)}, rowsOf{"output": at(1, 0, 4)}) }
	if _, err := Compile(nn, good(), Options{}); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r *computation.Request){
		"no outputs":          func(r *computation.Request) { r.Outputs = nil },
		"no indexes":          func(r *computation.Request) { r.Inputs[0].Indexes = nil },
		"unknown node":        func(r *computation.Request) { r.Inputs[0].Name = "inputt" },
		"not an output":       func(r *computation.Request) { r.Outputs[0].Name = "a" },
		"hidden node":         func(r *computation.Request) { r.Inputs[0].Name = "a_input" },
		"twice":               func(r *computation.Request) { r.Inputs = append(r.Inputs, r.Inputs[0]) },
		"index twice":         func(r *computation.Request) { r.Inputs[0].Indexes[1] = r.Inputs[0].Indexes[0] },
		"output index twice":  func(r *computation.Request) { r.Outputs[0].Indexes[1] = r.Outputs[0].Indexes[0] },
		"no time":             func(r *computation.Request) { r.Inputs[0].Indexes[0].T = index.NoTime },
		"derivatives of what": func(r *computation.Request) { r.NeedModelDerivative = true },
	} {
		req := good()
		spoil(req)
		if _, err := Compile(nn, req, Options{}); !errors.Is(err, errBadRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Compile(nn, nil, Options{}); !errors.Is(err, errBadRequest) {
		t.Errorf("nil: %v", err)
	}
	if _, err := Segments(nn, nil, Options{}); !errors.Is(err, errBadRequest) {
		t.Errorf("no segments: %v", err)
	}
	withDeriv := good()
	withDeriv.Outputs[0].HasDeriv = true
	if _, err := Segments(nn, []*computation.Request{withDeriv, good()}, Options{}); !errors.Is(err, errBadRequest) {
		t.Errorf("derivatives in segments: %v", err)
	}
}

func TestSuggestion(t *testing.T) {
	nn := parse(t, spliced...)
	_, err := Compile(nn, ask(rowsOf{"imput": at(1, 0, 1)}, rowsOf{"output": at(1, 0, 1)}), Options{})
	if err == nil || !strings.Contains(err.Error(), `is "input" meant?`) {
		t.Error(err)
	}
}

func TestNotComputable(t *testing.T) {
	for _, c := range []struct {
		name        string
		net         []string
		req         *computation.Request
		outputs     int // that can't be computed
		missing     []index.Index
		count       int
		chainLength int
	}{
		{"one frame", spliced, ask(rowsOf{"input": at(1, 0, 4)}, rowsOf{"output": at(1, 0, 4)}), 1, at(1, -1, 0), 1, 3},
		{"both ends", spliced, ask(rowsOf{"input": at(1, 0, 3)}, rowsOf{"output": at(1, 0, 4)}), 2, []index.Index{{T: -1}, {T: 3}}, 2, 3},
		{"two sequences", spliced, ask(rowsOf{"input": at(2, 0, 4)}, rowsOf{"output": at(2, 0, 4)}), 2, at(1, -1, 0), 2, 3},
		{"no input at all", spliced, ask(nil, rowsOf{"output": at(1, 0, 4)}), 4, at(1, -1, 4), 5, 3},
		{"recurrent", recurrent, ask(rowsOf{"input": at(1, 0, 9)}, rowsOf{"output": at(1, 8, 10)}), 1, at(1, 9, 10), 1, 4},
	} {
		_, err := Compile(parse(t, c.net...), c.req, Options{})
		e, ok := errors.AsType[*NotComputableError](err)
		if !ok || !errors.Is(err, ErrNotComputable) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(e.outputs) != 1 || e.outputs[0].count != c.outputs || len(e.Inputs) != 1 || e.Inputs[0].count != c.count ||
			!cmp.Equal(e.Inputs[0].First, c.missing) || len(e.chain) != c.chainLength || e.partial {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

// TestTimesOutOfRange checks that a row can't be computed if offsets lead beyond the range of
// times, even if others lead back to an input.
func TestTimesOutOfRange(t *testing.T) {
	const last = math.MaxInt32
	for _, c := range []struct {
		a, output     string // what the node a takes, and the output
		given, wanted index.Index
	}{
		{"input", "Offset(a, 2147483647)", index.Index{T: -2}, index.Index{T: last}},
		{"Offset(input, -2000000000)", "Offset(a, 2000000000)", index.Index{T: 2000000000}, index.Index{T: 2000000000}},
		{"Round(input, 1000)", "Offset(a, -147483640)", index.Index{T: 2147483296}, index.Index{T: -2000000000}},
		{"input", "Offset(a, 0, 1)", index.Index{X: math.MinInt32}, index.Index{X: last}},
		{"Sum(Const(1, 2), IfDefined(input))", "Offset(a, 10)", index.Index{T: -last}, index.Index{T: last}},
	} {
		nn := parse(t, "input-node name=input dim=2", "component name=a type=NoOpComponent dim=2",
			"component-node name=a component=a input="+c.a, "output-node name=output input="+c.output)
		if _, err := Compile(nn, ask(rowsOf{"input": {c.given}}, rowsOf{"output": {c.wanted}}), Options{}); !errors.Is(err, ErrNotComputable) {
			t.Errorf("%s of %s: %v", c.output, c.a, err)
		}
	}
	req := ask(rowsOf{"input": at(1, -1, 4)}, rowsOf{"output": at(1, 0, 4)})
	for i := range req.Inputs[0].Indexes {
		req.Inputs[0].Indexes[i].T += last - 3
	}
	for i := range req.Outputs[0].Indexes {
		req.Outputs[0].Indexes[i].T += last - 3
	}
	if _, err := Compile(parse(t, spliced...), req, Options{}); err != nil {
		t.Errorf("at the end of time: %v", err)
	}
}

// TestManySequences checks that sequences may come in any order. Insertion into a sorted list would
// take minutes here.
func TestManySequences(t *testing.T) {
	const n = 1 << 20
	req := ask(rowsOf{"input": make([]index.Index, 0, n)}, rowsOf{"output": at(1, 0, 1)})
	for i := range int32(n) {
		req.Inputs[0].Indexes = append(req.Inputs[0].Indexes, index.Index{N: n - i})
	}
	if got := sequences([]*computation.Request{req}); len(got) != n+1 || !slices.IsSorted(got) {
		t.Errorf("%d sequences", len(got))
	}
}

// TestLargeMatrices checks that matrices with too many columns or sequences are refused before they
// take memory.
func TestLargeMatrices(t *testing.T) {
	wide := parse(t, "input-node name=input dim=2147483647", "output-node name=output input=input")
	_, err := Compile(wide, ask(rowsOf{"input": at(1, 0, 40)}, rowsOf{"output": at(1, 0, 40)}), Options{})
	if !errors.Is(err, errBadRequest) || !strings.Contains(err.Error(), `"input" would have a matrix of 40 rows and 2147483647 columns`) {
		t.Error(err)
	}
	long := parse(t, "input-node name=input dim=1", "component name=a type=NoOpComponent dim=1",
		"component-node name=a component=a input=Failover(input, Sum(Offset(a, -1)))", "output-node name=output input=Offset(a, 10000)")
	_, err = Compile(long, ask(rowsOf{"input": at(50000, 0, 1)}, rowsOf{"output": at(50000, 0, 1)}), Options{})
	if !errors.Is(err, errBadRequest) || !strings.Contains(err.Error(), "50000 sequences") {
		t.Error(err)
	}
}

// TestSmallestChunk checks that an error about a chunk that is too short, and no other error, says
// how long it must be.
func TestSmallestChunk(t *testing.T) {
	nn := parse(t,
		"input-node name=input dim=2",
		"component name=s type=StatisticsExtractionComponent input-dim=4 input-period=1 output-period=1 include-variance=false",
		"component-node name=s component=s input=Append(Offset(input, -2), Offset(input, 4))",
		"component name=p type=StatisticsPoolingComponent input-dim=5 input-period=1 left-context=0 right-context=9 num-log-count-features=0 output-stddevs=false",
		"component-node name=p component=p input=s",
		"output-node name=output input=p")
	for _, c := range []struct{ first, frames, rows, want int32 }{{0, 5, 1, 3}, {0, 6, 2, 3}, {0, 7, 3, 0}, {0, 20, 20, 0}} {
		_, err := Compile(nn, ask(rowsOf{"input": at(1, c.first, c.frames)}, rowsOf{"output": at(1, 0, c.rows)}), Options{})
		e, ok := errors.AsType[*NotComputableError](err)
		if !ok {
			e = new(NotComputableError)
		}
		said := ok && strings.Contains(err.Error(), "the smallest chunk that can be computed is one of 3 frames, with a context of 0 and 4")
		if e.smallestChunk != int(c.want) || said != (c.want > 0) {
			t.Errorf("%d rows from %d frames: %v", c.rows, c.frames, err)
		}
	}
}

// TestExplainAlternatives checks that both arguments of a Failover are missing, and nothing of an
// IfDefined.
func TestExplainAlternatives(t *testing.T) {
	nn := parse(t,
		"input-node name=one dim=2", "input-node name=two dim=2", "input-node name=three dim=2",
		"component name=a type=NoOpComponent dim=2",
		"component-node name=a component=a input=Sum(Failover(one, two), IfDefined(three))",
		"output-node name=output input=a")
	_, err := Compile(nn, ask(nil, rowsOf{"output": at(1, 0, 1)}), Options{})
	e, ok := errors.AsType[*NotComputableError](err)
	if !ok {
		t.Fatal(err)
	}
	var names []string
	for _, in := range e.Inputs {
		names = append(names, in.Node)
	}
	if !cmp.Equal(names, []string{"one", "two"}) {
		t.Error(err)
	}
}

func TestUnbounded(t *testing.T) {
	nn := parse(t,
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=2",
		"component-node name=a component=a input=Sum(ReplaceIndex(input, t, 0), IfDefined(Offset(a, -1)))",
		"output-node name=output input=a")
	req := ask(rowsOf{"input": at(1, 0, 1)}, rowsOf{"output": at(1, 0, 3)})
	if _, err := Compile(nn, req, Options{}); !errors.Is(err, ErrUnbounded) {
		t.Errorf("rounds: %v", err)
	}
	if _, err := Compile(nn, req, Options{MaxCindexes: 100}); !errors.Is(err, ErrUnbounded) {
		t.Errorf("cindexes: %v", err)
	}
	// Few rows, each of which needs most others.
	var times []string
	for i := range 100 {
		times = append(times, strconv.Itoa(i))
	}
	nn = parse(t,
		"input-node name=input dim=2",
		"component name=a type=TdnnComponent input-dim=2 output-dim=2 time-offsets="+strings.Join(times, ","),
		"component-node name=a component=a input=input",
		"output-node name=output input=a")
	req = ask(rowsOf{"input": at(1, 0, 200)}, rowsOf{"output": at(1, 0, 100)})
	if _, err := Compile(nn, req, Options{MaxCindexes: 1500}); err != nil {
		t.Error(err)
	}
	if _, err := Compile(nn, req, Options{MaxCindexes: 1000}); !errors.Is(err, ErrUnbounded) {
		t.Errorf("dependencies: %v", err)
	}
}

func TestCyclic(t *testing.T) {
	both := parse(t,
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=6",
		"component-node name=a component=a input=Append(input, IfDefined(Offset(r, -1)), IfDefined(Offset(r, 1)))",
		"dim-range-node name=r input-node=a dim=2 dim-offset=0",
		"output-node name=output input=a")
	_, err := Compile(both, ask(rowsOf{"input": at(1, 0, 4)}, rowsOf{"output": at(1, 0, 4)}), Options{})
	if !errors.Is(err, errCyclic) {
		t.Errorf("past and future: %v", err)
	}
	self := parse(t,
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=2",
		"component-node name=a component=a input=Sum(input, a)",
		"output-node name=output input=a")
	_, err = Compile(self, ask(rowsOf{"input": at(1, 0, 1)}, rowsOf{"output": at(1, 0, 1)}), Options{})
	e, ok := errors.AsType[*NotComputableError](err)
	if !ok || len(e.Inputs) != 0 || !strings.Contains(err.Error(), "circle") {
		t.Errorf("itself: %v", err)
	}
}

// TestProvidedComponent checks that nothing is computed for given rows of a component-node.
func TestProvidedComponent(t *testing.T) {
	nn := parse(t, recurrent...)
	req := ask(rowsOf{"input": at(1, 0, 2), "a": at(1, -2, 0)}, rowsOf{"output": at(1, 0, 2)})
	c, err := Compile(nn, req, Options{DebugInfo: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := computation.Check(c, computation.NewNetworkInfo(nn, nil), computation.CheckOptions{Rewrite: true}); err != nil {
		t.Error(err)
	}
	n := c.Counts()
	if n.ByType["kPropagate"] != 2 || n.ByType["kMatrixAdd"] != 4 {
		t.Errorf("%+v", n)
	}
}

// TestNothingToTrain checks that components configured without parameters get no backward commands
// for a gradient.
func TestNothingToTrain(t *testing.T) {
	for _, lines := range [][]string{
		{
			"component name=c type=CompositeComponent num-components=1 component1='type=TanhComponent dim=2'",
			"component-node name=c component=c input=input",
		},
		{
			"component name=c type=ConstantFunctionComponent input-dim=2 output-dim=2 is-updatable=false",
			"component-node name=c component=c input=input",
		},
		{
			"component name=c type=ConstantComponent output-dim=2 is-updatable=false",
			"component-node name=c component=c input=input",
		},
	} {
		nn := parse(t, append(lines, "input-node name=input dim=2", "component name=a type=AffineComponent input-dim=2 output-dim=2",
			"component-node name=a component=a input=Sum(input, c)", "output-node name=output input=a")...)
		req := ask(rowsOf{"input": at(1, 0, 3)}, rowsOf{"output": at(1, 0, 3)})
		req.NeedModelDerivative, req.Outputs[0].HasDeriv = true, true
		c, err := Compile(nn, req, Options{DebugInfo: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := computation.Check(c, computation.NewNetworkInfo(nn, nil), computation.CheckOptions{Rewrite: true}); err != nil {
			t.Errorf("%s: %v", lines[0], err)
		}
		if n := c.Counts().ByType["kBackprop"]; n != 1 {
			t.Errorf("%s: %d backward commands", lines[0], n)
		}
	}
}

func TestEpochs(t *testing.T) {
	nn := parse(t, append(slices.Clone(recurrent),
		"component name=c type=NoOpComponent dim=2",
		"component-node name=c component=c input=Sum(b, Offset(d, 1))",
		"dim-range-node name=d input-node=c dim=2 dim-offset=0",
		"output-node name=second input=c")...)
	net, err := newNetwork(nn)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range net.epochs {
		s := ""
		for _, i := range e.nodes {
			s += net.name(i) + " "
		}
		if e.recurrent {
			s += "again"
		}
		got = append(got, strings.TrimSpace(s))
	}
	want := []string{"input", "a again", "a_input", "b", "b_input", "output", "c d again", "c_input", "second"}
	slices.Sort(want)
	before := func(a, b string) bool { return slices.Index(got, a) < slices.Index(got, b) }
	if !before("input", "a again") || !before("a again", "b") || !before("b", "c d again") || !before("c d again", "second") || !before("b", "output") {
		t.Errorf("order %q", got)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRecurrentSteps checks that a recurrence over two frames makes a step for two frames, and
// nodes after it one step for all.
func TestRecurrentSteps(t *testing.T) {
	nn := parse(t, recurrent...)
	c, err := Compile(nn, ask(rowsOf{"input": at(1, 0, 8)}, rowsOf{"output": at(1, 0, 8)}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	perComponent := map[int32]int{}
	for _, cmd := range c.Commands {
		if cmd.Type == computation.Propagate {
			perComponent[cmd.Args[0]]++
		}
	}
	if want := map[int32]int{0: 4, 1: 1}; !cmp.Equal(perComponent, want) {
		t.Errorf("%v propagations, want %v", perComponent, want)
	}
}

func TestIrregular(t *testing.T) {
	nn := parse(t, spliced...)
	regular := ask(rowsOf{"input": at(3, -1, 4)}, rowsOf{"output": at(3, 0, 4)})
	// As many rows for each sequence, but not the same ones.
	uneven := ask(rowsOf{"input": at(2, -1, 4)}, rowsOf{"output": {{N: 0, T: 0}, {N: 1, T: 1}}})
	// Sequences that are not numbered from 0, in a strange order.
	strange := ask(rowsOf{"input": {{N: 7, T: 0}, {N: -2, T: -1}, {N: -2, T: 0}, {N: 7, T: -1}}},
		rowsOf{"output": {{N: 7, T: 0}, {N: -2, T: 0}}})
	for _, req := range []*computation.Request{regular, uneven, strange} {
		compareShortcut(t, nn, req)
	}
}

// TestSegments checks that the second segment uses rows of the first, and that rows become
// computable that were not in the first.
func TestSegments(t *testing.T) {
	nn := parse(t,
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=4",
		"component-node name=a component=a input=Append(Offset(input, -1), IfDefined(Offset(input, 1)))",
		"output-node name=output input=a")
	requests := []*computation.Request{
		ask(rowsOf{"input": at(1, -1, 3)}, rowsOf{"output": at(1, 0, 3)}),
		ask(rowsOf{"input": at(1, 3, 6)}, rowsOf{"output": at(1, 3, 6)}),
	}
	c, err := Segments(nn, requests, Options{DebugInfo: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := computation.Check(c, computation.NewNetworkInfo(nn, nil), computation.CheckOptions{Rewrite: true}); err != nil {
		t.Error(err)
	}
	n := c.Counts()
	if n.ByType["kAcceptInput"] != 2 || n.ByType["kProvideOutput"] != 2 || n.ByType["kNoOperationMarker"] != 2 || n.ByType["kPropagate"] != 2 {
		t.Errorf("%+v", n)
	}
	requests[1].Outputs[0].Indexes[0].T = 2
	if _, err := Segments(nn, requests, Options{}); !errors.Is(err, errBadRequest) {
		t.Errorf("an output asked for twice: %v", err)
	}
}

func TestContext(t *testing.T) {
	for _, c := range []struct {
		name        string
		net         []string
		left, right int
	}{
		{"spliced", spliced, 1, 0},
		{"recurrence is optional", recurrent, 0, 0},
		{"alternating", []string{"input-node name=input dim=2", "output-node name=output input=Switch(Offset(input, -2), Offset(input, 3))"}, 2, 3},
		{"wide", []string{"input-node name=input dim=2", "output-node name=output input=Sum(Offset(input, -50), Offset(input, 30))"}, 50, 30},
		{"rounded", []string{"input-node name=input dim=2", "output-node name=output input=Round(input, 5)"}, 4, 0},
		{"ivector", []string{"input-node name=input dim=2", "input-node name=ivector dim=2",
			"output-node name=output input=Append(Offset(input, 1), ReplaceIndex(ivector, t, 0))"}, 0, 1},
	} {
		left, right, err := Context(parse(t, c.net...))
		if err != nil || left != c.left || right != c.right {
			t.Errorf("%s: %d and %d (%v), want %d and %d", c.name, left, right, err, c.left, c.right)
		}
	}
	_, _, err := Context(parse(t, "input-node name=input dim=2", "output-node name=output input=Offset(input, 9999)"))
	if !errors.Is(err, ErrNotComputable) {
		t.Errorf("too wide: %v", err)
	}
	if _, _, err := Context(parse(t, "input-node name=in dim=2", "output-node name=output input=in")); !errors.Is(err, nnet3.ErrNetwork) {
		t.Errorf("not simple: %v", err)
	}
}
