package nnet3

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// small is a network with every kind of node, a cycle, and lines in no particular order.
const small = `
# a comment
output-node name=output input=sum objective=quadratic   # another
component-node name=sum component=noop input=Sum(affine, IfDefined(Offset(half_twice, -1)))
component name=affine type=AffineComponent input-dim=10 output-dim=4
component-node name=affine component=affine input=Append(Offset(input, -1), input)
input-node name=input dim=5
dim-range-node name=half input-node=sum dim-offset=2 dim=2
component name=noop type=NoOpComponent dim=4
component-node name=half_twice component=noop input=Append(half, half)
`

func parse(text string) (*Nnet, error) { return ParseConfig(strings.NewReader(text), "test.config", 1) }

func mustParse(t *testing.T, text string) *Nnet {
	t.Helper()
	nn, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

// nodes lists the nodes, including hidden ones.
func nodes(nn *Nnet) string {
	var names []string
	for i := range nn.Nodes {
		names = append(names, nn.NodeName(i))
	}
	return strings.Join(names, " ")
}

func TestParseConfig(t *testing.T) {
	nn := mustParse(t, small)
	const want = "output sum_input sum affine_input affine input half half_twice_input half_twice"
	if got := nodes(nn); got != want {
		t.Errorf("nodes %s, want %s", got, want)
	}
	for i, name := range strings.Fields(want) {
		if nn.NodeIndex(name) != i {
			t.Errorf("NodeIndex(%s) is %d, want %d", name, nn.NodeIndex(name), i)
		}
	}
	if nn.NodeIndex("nowhere") != -1 {
		t.Error("there is a node called nowhere")
	}
	kinds := map[string][3]bool{"output": {2: true}, "sum_input": {1: true}, "input": {0: true}, "sum": {}, "half": {}}
	for name, want := range kinds {
		i := nn.NodeIndex(name)
		if got := [3]bool{nn.IsInputNode(i), nn.IsComponentInputNode(i), nn.IsOutputNode(i)}; got != want {
			t.Errorf("%s: input, component input, output: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]int{"output": 4, "sum_input": 4, "affine": 4, "affine_input": 10, "input": 5, "half": 2} {
		if got := nn.OutputDim(nn.NodeIndex(name)); got != want {
			t.Errorf("%s: %d columns, want %d", name, got, want)
		}
	}
	if nn.InputNodeDim("input") != 5 || nn.InputNodeDim("output") != -1 || nn.OutputNodeDim("output") != 4 || nn.OutputNodeDim("input") != -1 {
		t.Error("dimensions by name are wrong")
	}
	if !nn.Nodes[nn.NodeIndex("output")].quadratic {
		t.Error("the objective is not quadratic")
	}
	if got := nn.Modulus(); got != 1 {
		t.Errorf("modulus %d", got)
	}
	if got := nn.NumParameters(); got != 44 {
		t.Errorf("%d parameters, want 44", got)
	}
}

// TestConfigErrors checks that errors report all wrong lines with their numbers.
func TestConfigErrors(t *testing.T) {
	const ok = "input-node name=input dim=5\noutput-node name=output input=input\n"
	for _, c := range []struct {
		text string
		want []string // one per fault
	}{
		{"inptu-node name=x dim=1", []string{`test.config:3: inptu-node: unknown kind of line "inptu-node"; did you mean "input-node"?`}},
		{"input-node dim=1", []string{`test.config:3: input-node: name= is missing`}},
		{"input-node name=1x dim=1", []string{`:3: input-node 1x: "1x" is not a valid name`}},
		{"name=x dim=1", []string{":3: the line does not begin with what it defines: name=x dim=1"}},
		{"input-node name=x", []string{":3: input-node x: dim= is missing"}},
		{"input-node name=x dim=0", []string{"dim=0: must be at least 1"}},
		{"input-node name=x dim=5x", []string{"dim=5x is not an integer"}},
		{"input-node name=x dimm=5 dim=5", []string{`unknown key "dimm"; did you mean "dim"? (known: name, dim)`}},
		{"output-node name=x input=inputt", []string{`no input node, component node or dim-range node is called "inputt"; did you mean input?`}},
		{"output-node name=x input=output", []string{"it is an output-node, which nothing can take as its input"}},
		{"output-node name=x input=Offset(input 1)", []string{"is a comma missing?"}},
		{"output-node name=x input=input objective=cubic", []string{"objective=cubic: must be linear or quadratic"}},
		{"output-node name=x", []string{"input= is missing"}},
		{"component-node name=x component=y input=input", []string{`component=y: there is no component "y"`}},
		{"component name=x type=NoOpComponent dim=5\noutput-node name=y input=x", []string{"it is a component, which has to be made a node by a component-node line"}},
		{"component name=x type=NoOpComponent dim=5\ncomponent-node name=y component=x input=input\noutput-node name=z input=y_input", []string{"it is the hidden input of a component-node"}},
		{"component name=x type=NoOpComponent dim=5\ncomponent-node name=y component=x input=input\ninput-node name=y_input dim=3", []string{"the name y_input is taken by line 4 (component-node y)"}},
		{"component name=x type=NoopComponent dim=5", []string{`type "NoopComponent" is not supported; did you mean NoOpComponent?`}},
		{"component name=x type=NoOpComponent dim=5 colour=red", []string{"NoOpComponent does not know colour=red"}},
		{"component name=x type=NoOpComponent dim=5 backprop-scael=0.5", []string{"NoOpComponent does not know backprop-scael=0.5; did you mean backprop-scale (for backprop-scael)?"}},
		{"component name=x type=AffineComponent inputdim=5 output-dim=3", []string{"input-dim is required: bad component configuration; did you mean input-dim (for inputdim)?"}},
		{"component name=x dim=5", []string{"type= is missing"}},
		{"dim-range-node name=x input-node=output dim=1 dim-offset=0", []string{"input-node=output: it is an output-node"}},
		{"dim-range-node name=x input-node=input dim=1 dim-offset=5", []string{"dim-range-node x: 1 columns from column 5 on do not lie within the 5 columns of input"}},
		{"dim-range-node name=x input-node=inputs dim=1 dim-offset=0", []string{"there is no such node; did you mean input?"}},
		{"component name=x type=NoOpComponent dim=4\ncomponent-node name=y component=x input=input", []string{"component x takes 4 columns, the input has 5: input"}},
		{"input-node name=i4 dim=4\noutput-node name=x input=Sum(input, i4)", []string{"terms have 5 and 4 columns"}},
		{"input-node name=x dim=4\noutput-node name=input input=x", []string{":4: output-node input: already defined on line 1"}},
		{"input-node name=x dim=4\ninput-node name=x dim=4\ninput-node name=x dim=5", []string{":4: input-node x: already defined on line 3", ":5: input-node x: already defined on line 3"}},
		{"component name=x type=NoOpComponent dim=4\ncomponent name=x type=NoOpComponent dim=4", []string{":4: component x: already defined on line 3"}},
		{"input-node name=x dim=0\nfoo\ninput-node name=y dim=-1", []string{":4: foo: unknown kind of line"}},
		{"input-node name=x dim=0\ninput-node name=y dim=-1", []string{":3: input-node x: dim=0", ":4: input-node y: dim=-1"}},
	} {
		_, err := parse(ok + c.text)
		if err == nil {
			t.Errorf("%q: no error", c.text)
			continue
		}
		if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrNetwork) {
			t.Errorf("%q: %v is of no kind", c.text, err)
		}
		faults := []error{err}
		if m := (*multierror.Error)(nil); errors.As(err, &m) {
			faults = m.Errors
		}
		if len(faults) != len(c.want) {
			t.Errorf("%q: %d faults, want %d: %v", c.text, len(faults), len(c.want), err)
			continue
		}
		for i, f := range faults {
			if !strings.Contains(f.Error(), c.want[i]) {
				t.Errorf("%q:\ngot  %v\nwant %s", c.text, f, c.want[i])
			}
		}
	}
	if _, err := parse(""); !errors.Is(err, ErrNetwork) {
		t.Errorf("nothing at all: %v", err)
	}
	if _, err := parse(ok + "output-node name=x input=y"); !errors.Is(err, descriptor.ErrUnknownNode) {
		t.Errorf("the cause is lost: %v", err)
	}
	if _, err := parse(ok + "component name=x type=AffineComponen"); err == nil || !strings.Contains(err.Error(), "did you mean AffineComponent?") {
		t.Errorf("a type with a letter too few: %v", err)
	}
	if _, err := parse(ok + "component name=x type=Foo"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// TestManyFaults checks that reading gives up after some faults.
func TestManyFaults(t *testing.T) {
	_, err := parse(strings.Repeat("nonsense\n", 10000))
	var m *multierror.Error
	if !errors.As(err, &m) || len(m.Errors) != maxFaults+1 {
		t.Errorf("%v", err)
	}
}

// TestReplace changes a network by config lines.
func TestReplace(t *testing.T) {
	nn := mustParse(t, small)
	affine := nn.Components[nn.ComponentIndex("affine")]
	err := nn.ReadConfig(strings.NewReader(`
component name=noop type=NoOpComponent dim=4 backprop-scale=0.5
component name=relu type=RectifiedLinearComponent dim=4
component-node name=relu component=relu input=sum
output-node name=output input=relu
`), "edit", 1)
	if err != nil {
		t.Fatal(err)
	}
	const want = "sum_input sum affine_input affine input half half_twice_input half_twice relu_input relu output"
	if got := nodes(nn); got != want {
		t.Errorf("nodes %s, want %s", got, want)
	}
	if nn.Components[nn.ComponentIndex("affine")] != affine {
		t.Error("a component that the lines do not name changed")
	}
	if got := len(nn.Components); got != 3 {
		t.Errorf("%d components, want 3", got)
	}
	if got := nn.ConfigLine(nn.NodeIndex("output")); got != "output-node name=output input=relu objective=linear" {
		t.Error(got)
	}
	// The later of two lines counts, and so does its position.
	nn = mustParse(t, "input-node name=x dim=1\noutput-node name=output input=input\ninput-node name=input dim=5\n")
	if err := nn.ReadConfig(strings.NewReader("input-node name=x dim=7"), "edit", 1); err != nil {
		t.Fatal(err)
	}
	if got := nodes(nn); got != "output input x" || nn.InputNodeDim("x") != 7 {
		t.Errorf("nodes %s, x has %d columns", got, nn.InputNodeDim("x"))
	}
	before := fmt.Sprint(nn)
	for _, wrong := range []string{"input-node name=input dim=6\nfoo", "input-node name=input dim=6\ninput-node name=input dim=6"} {
		if err := nn.ReadConfig(strings.NewReader(wrong), "edit", 1); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	if fmt.Sprint(nn) != before {
		t.Error("an error left its traces")
	}
}

// TestModelDefinesTwice: the lines of a model may not define a node twice, either.
func TestModelDefinesTwice(t *testing.T) {
	read := func(line string) error {
		r, err := kaldiio.NewReader(strings.NewReader("<Nnet3> \ninput-node name=input dim=5\noutput-node name=output input=input\n"+line+"\n<NumComponents> 0 </Nnet3> "), "test.raw")
		if err != nil {
			t.Fatal(err)
		}
		_, err = ReadNnet(r)
		return err
	}
	if err := read(""); err != nil {
		t.Error(err)
	}
	if err := read("input-node name=input dim=5\n"); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "already defined on line 1") {
		t.Error(err)
	}
}

// params returns the parameters of a component.
func params(nn *Nnet, name string) string {
	u := nn.Components[nn.ComponentIndex(name)].(component.UpdatableComponent)
	var b strings.Builder
	for _, p := range u.Params() {
		fmt.Fprintln(&b, p.Name, p.Values.Data)
	}
	return b.String()
}

// TestSeed checks that random parameters depend only on the seed and the name.
func TestSeed(t *testing.T) {
	one := params(mustParse(t, small), "affine")
	if again := params(mustParse(t, small), "affine"); again != one {
		t.Error("the same seed gives other parameters")
	}
	more := params(mustParse(t, "component name=first type=AffineComponent input-dim=3 output-dim=3\n"+small), "affine")
	if more != one {
		t.Error("another component changes the parameters")
	}
	other, err := ParseConfig(strings.NewReader(small), "", 2)
	if err != nil {
		t.Fatal(err)
	}
	if params(other, "affine") == one {
		t.Error("another seed gives the same parameters")
	}
}

func TestCopy(t *testing.T) {
	nn := mustParse(t, small)
	before := params(nn, "affine")
	c := nn.Copy()
	if params(c, "affine") != before {
		t.Error("the copy differs")
	}
	component.ScaleParams(c.Components[c.ComponentIndex("affine")].(component.UpdatableComponent), 2)
	c.Nodes[0].Name = "changed"
	if params(nn, "affine") != before || nn.Nodes[0].Name != "output" {
		t.Error("the copy shares something with the original")
	}
}

func TestUnused(t *testing.T) {
	nn := mustParse(t, small+"component name=idle type=NoOpComponent dim=4\ncomponent-node name=orphan component=noop input=sum\n")
	if got := fmt.Sprint(nn.UnusedComponents()); got != "[2]" {
		t.Errorf("unused components %s", got)
	}
	var orphans []string
	for _, i := range nn.orphanNodes() {
		orphans = append(orphans, nn.Nodes[i].Name)
	}
	if got := strings.Join(orphans, " "); got != "orphan_input orphan" {
		t.Errorf("orphans %s", got)
	}
	info := nn.Info()
	for _, want := range []string{
		"num-nodes: 7\n", "num-components: 3\n", "num-parameters: 44\n", "modulus: 1\n",
		"component-node name=affine component=affine input=Append(Offset(input, -1), input) input-dim=10 output-dim=4\n",
		"output-node name=output input=sum objective=quadratic dim=4\n",
		"unused components: idle\n", "nodes that no output needs: orphan\n", "component name=noop type=NoOpComponent, ",
	} {
		if !strings.Contains(info, want) {
			t.Errorf("%q is missing in\n%s", want, info)
		}
	}
}

// TestCheck breaks networks by hand.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Nnet)
		want  string
	}{
		{"component", func(nn *Nnet) { nn.Nodes[2].Component = 9 }, "component-node sum: it refers to component 9 of 2"},
		{"no descriptor", func(nn *Nnet) { nn.Nodes[1].Descriptor = descriptor.Descriptor{} }, "its descriptor is empty"},
		{"node out of range", func(nn *Nnet) {
			nn.Nodes[1].Descriptor = pointAt(nn.Nodes[1].Descriptor, 99)
		}, "refers to node 99 of 9"},
		{"descriptor of a descriptor", func(nn *Nnet) {
			nn.Nodes[1].Descriptor = pointAt(nn.Nodes[1].Descriptor, 0)
		}, "refers to output, which is not a node to take an input from"},
		{"twice", func(nn *Nnet) { nn.Nodes[6].Name = "sum" }, "another node of this name"},
		{"hidden node missing", func(nn *Nnet) { nn.Nodes[7] = Node{Kind: InputNode, Name: "x", Dim: 4} }, "it has no descriptor before it"},
		{"range of a range", func(nn *Nnet) { nn.Nodes[6].Input = 6 }, "half is neither an input-node nor a component-node"},
		{"no input", func(nn *Nnet) { nn.Nodes[5] = Node{Kind: DimRangeNode, Name: "input", Input: 2, Dim: 4} }, "the network has no input-node"},
		{"kind", func(nn *Nnet) { nn.Nodes[5].Kind = 7 }, "there is no such kind of node"},
	} {
		nn := mustParse(t, small)
		c.spoil(nn)
		err := nn.Check()
		if !errors.Is(err, ErrNetwork) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// fromFile finds parameters that are read from a file.
var fromFile = regexp.MustCompile(`(matrix|vector|scales|bias)=`)

func FuzzParseConfig(f *testing.F) {
	f.Add(small)
	f.Add("component name=x type=AffineComponent input-dim=3 output-dim=4 \ninput-node name=i dim=3\ncomponent-node name=x component=x input=Offset(i, 1)\noutput-node name=o input=Sum(x, Const(1, 4))")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 || fromFile.MatchString(text) {
			t.Skip()
		}
		nn := new(Nnet)
		var err error
		alloctest.Check(t, "reading", len(text), func() { err = nn.readConfig(strings.NewReader(text), "test.config", 1, 1<<22) })
		if err != nil {
			if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrNetwork) {
				t.Fatalf("%v is of no kind", err)
			}
			return
		}
		var lines []string
		for i := range nn.Nodes {
			lines = append(lines, nn.ConfigLine(i))
		}
		nodes := strings.Join(lines, "\n")
		if err := nn.ReadConfig(strings.NewReader(nodes), "again", 1); err != nil {
			t.Fatalf("%s: %v", nodes, err)
		}
	})
}

// TestEndlessConfig checks that an endless stream is not read as a config.
func TestEndlessConfig(t *testing.T) {
	longtest.Only(t)
	if _, err := ParseConfig(zeros{}, "endless", 0); !errors.Is(err, ErrConfig) {
		t.Errorf("got %v", err)
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// pointAt returns a descriptor that takes everything from one node.
func pointAt(d descriptor.Descriptor, node int32) descriptor.Descriptor {
	return d.Map(func(f descriptor.Forward) descriptor.Forward {
		if f.Kind == descriptor.Node {
			f.Node = node
		}
		return f
	})
}

// TestCheckStats: batch normalization without statistics is named in test mode, also as part of another component.
func TestCheckStats(t *testing.T) {
	nn := mustParse(t, `input-node name=input dim=4
component name=bn type=BatchNormComponent dim=4
component name=parts type=CompositeComponent num-components=2 component1="type=RectifiedLinearComponent dim=4" component2="type=BatchNormComponent dim=4"
component-node name=bn component=bn input=input
component-node name=parts component=parts input=bn
output-node name=output input=parts
`)
	if err := nn.CheckStats(); err != nil {
		t.Errorf("in training: %v", err)
	}
	nn.SetTestMode(true)
	var lacking *StatsError
	if err := nn.CheckStats(); !errors.As(err, &lacking) || !slices.Equal(lacking.Components, []string{"bn", "parts"}) {
		t.Errorf("in test mode: %v", err)
	}
}
