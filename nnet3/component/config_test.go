package component

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
)

func TestParseConfigLine(t *testing.T) {
	for _, c := range []struct{ line, first, pairs string }{
		{"component name=a type=B dim=3", "component", "name=a|type=B|dim=3"},
		{"  component-node name=x input=Append(Offset(y, -1), y)  component=z ", "component-node", "name=x|input=Append(Offset(y, -1), y)|component=z"},
		{"type=A dim=3", "", "type=A|dim=3"},
		{`component1='type=A dim=3' component2="type=B x='y'" z=1`, "", `component1=type=A dim=3|component2=type=B x='y'|z=1`},
		{"a=1 a=2", "", "a=1"},
		{"a= b=2", "", "a=|b=2"},
		{"a=1 # b=2", "", "a=1"},
		{"a='x # y' b=2 # c", "", "a=x # y|b=2"},
		{"# nothing", "", ""},
		{"", "", ""},
		{"\t\n", "", ""},
		{"output-node", "output-node", ""},
		{"a=1\n", "", "a=1"},
	} {
		got, err := ParseConfigLine(c.line)
		if err != nil {
			t.Errorf("%q: %v", c.line, err)
			continue
		}
		if pairs := strings.Join(pairsOf(got), "|"); got.First != c.first || pairs != c.pairs {
			t.Errorf("%q: %q, %q", c.line, got.First, pairs)
		}
	}
	if _, err := ParseConfigLine("component" + strings.Repeat(" a=1", 1e6)); err != nil {
		t.Errorf("a key a million times: %v", err)
	}
	var keys strings.Builder
	for i := range 1 << 20 {
		fmt.Fprintf(&keys, " a%d=1", i)
	}
	if _, err := ParseConfigLine(keys.String()); !errors.Is(err, ErrConfig) { // looking each of them up would take an hour
		t.Errorf("a million keys: %v", err)
	}
	for _, line := range []string{"component name", "component =3", "component 3x=1", "a='x", "component name=a b c=d =", "comp*nent a=1", "a=1 b", `a="x`} {
		if c, err := ParseConfigLine(line); !errors.Is(err, ErrConfig) && c.Unused() != "a=1 b" {
			t.Errorf("%q: no error, but %q", line, pairsOf(c))
		}
	}
}

func pairsOf(c *ConfigLine) []string {
	var pairs []string
	for _, p := range c.pairs {
		pairs = append(pairs, p.key+"="+p.value)
	}
	return pairs
}

func TestConfigValues(t *testing.T) {
	c, err := ParseConfigLine("i=7 f=2.5 b=T list=1,-2,3 colons=4:-5 empty= text=x y bad=1.5x nan=nan unused=1")
	if err != nil {
		t.Fatal(err)
	}
	list, _ := c.Ints("list")
	if colons, ok := c.Ints("colons"); !ok || len(colons) != 2 || colons[0] != 4 || colons[1] != -5 {
		t.Errorf("colons=4:-5 is read as %v", colons)
	}
	if c.Int("i", 0) != 7 || c.Float("f", 0) != 2.5 || !c.Bool("b", false) || len(list) != 3 || list[1] != -2 || c.Err() != nil {
		t.Errorf("values are misread: %v", c.Err())
	}
	if c.Int("missing", 5) != 5 || c.Float("missing", 6) != 6 || !c.Bool("missing", true) {
		t.Error("defaults are misread")
	}
	if v, ok := c.Value("text"); !ok || v != "x y" {
		t.Errorf("text is %q", v)
	}
	c.Value("empty")
	c.Int("bad", 0)
	c.Float("nan", 0)
	c.Bool("bad", false)
	c.Ints("bad")
	err = c.Err()
	if !errors.Is(err, ErrConfig) || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("errors: %v", err)
	}
	if c.Unused() != "unused=1" {
		t.Errorf("unused: %q", c.Unused())
	}
}

// TestBadConfigs checks that impossible lines are errors.
func TestBadConfigs(t *testing.T) {
	for _, c := range []string{
		"type=AffineComponent input-dim=3",
		"type=AffineComponent input-dim=0 output-dim=1",
		"type=AffineComponent input-dim=16000000 output-dim=16000000",
		"type=AffineComponent input-dim=3 output-dim=2 learning-rate=-1",
		"type=AffineComponent matrix=missing.mat",
		"type=BatchNormComponent dim=6 block-dim=4",
		"type=BlockAffineComponent input-dim=6 output-dim=4 num-blocks=4",
		"type=CompositeComponent num-components=1",
		"type=CompositeComponent num-components=1 component1='type=CompositeComponent'",
		"type=CompositeComponent num-components=1 component1='type=DropoutComponent dim=3 dropout-proportion=0.1'",
		"type=CompositeComponent num-components=1 component1='type=NoOpComponent dim=3 x=4'",
		"type=ConvolutionComponent input-x-dim=5 input-y-dim=4 input-z-dim=2 filt-x-dim=3 filt-y-dim=2 filt-x-step=3 filt-y-step=1 num-filters=3",
		"type=DropoutComponent dim=3",
		"type=GeneralDropoutComponent dim=3 dropout-proportion=1",
		"type=GruNonlinearityComponent cell-dim=3 recurrent-dim=4",
		"type=MaxpoolingComponent input-x-dim=4 input-y-dim=3 input-z-dim=5 pool-x-size=2 pool-y-size=3 pool-z-size=2 pool-x-step=2 pool-y-step=1 pool-z-step=2",
		"type=PermuteComponent column-map=1,2",
		"type=PermuteComponent",
		"type=RestrictedAttentionComponent key-dim=3 value-dim=2 time-stride=0 num-left-inputs=2 num-right-inputs=1",
		"type=StatisticsPoolingComponent input-dim=4 left-context=1000000000 right-context=0",
		"type=StatisticsPoolingComponent input-dim=4 left-context=1 right-context=0 output-stddevs=true",
		"type=StatisticsExtractionComponent input-dim=4 input-period=2 output-period=3",
		"type=TdnnComponent input-dim=3 output-dim=2 time-offsets=1,1",
		"type=TdnnComponent input-dim=3 output-dim=2 time-offsets=",
		"type=TimeHeightConvolutionComponent num-filters-in=2 num-filters-out=3 height-in=5 height-out=5 time-offsets=-1,0,1 height-offsets=-1,0,1 required-time-offsets=4",
		"type=TimeHeightConvolutionComponent num-filters-in=2 num-filters-out=3 height-in=5 height-out=5 offsets=1,2;3",
	} {
		line, err := ParseConfigLine(c)
		if err != nil {
			t.Fatal(err)
		}
		typ, _ := line.Value("type")
		comp, _ := kaldi.New(typ)
		if err := Init(comp, line); err == nil {
			t.Errorf("%s: no error", c)
		}
	}
}

func TestConfigFiles(t *testing.T) {
	files := map[string]string{"m": " [\n 1 2 3\n 4 5 6 ]\n", "v": " [ 1 2 ]\n"}
	for _, c := range []struct {
		line    string
		in, out int
	}{
		{"type=AffineComponent matrix=m", 2, 2},
		{"type=FixedAffineComponent matrix=m input-dim=2", 2, 2},
		{"type=LinearComponent matrix=m output-dim=2", 3, 2},
		{"type=PerElementScaleComponent vector=v", 2, 2},
		{"type=NaturalGradientPerElementScaleComponent scales=v", 2, 2},
		{"type=PerElementOffsetComponent vector=v dim=4", 4, 4},
		{"type=FixedScaleComponent scales=v", 2, 2},
		{"type=FixedBiasComponent bias=v", 2, 2},
		{"type=AffineComponent matrix=m input-dim=3", 0, 0},
		{"type=LinearComponent matrix=none", 0, 0},
	} {
		line, err := ParseConfigLine(c.line)
		if err != nil {
			t.Fatal(err)
		}
		line.open = func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(files[name])), nil }
		typ, _ := line.Value("type")
		comp, _ := kaldi.New(typ)
		err = Init(comp, line)
		if ok := c.in > 0; ok != (err == nil) || ok && (comp.InputDim() != c.in || comp.OutputDim() != c.out || line.Unused() != "") {
			t.Errorf("%s: %s, unused %q, error %v", c.line, Info(comp), line.Unused(), err)
		}
	}
}

func FuzzParseConfigLine(f *testing.F) {
	f.Add("component name=a type=B dim=3 x='y z' # c")
	f.Add(`a="b`)
	for _, typ := range kaldi.Types() {
		for _, config := range testConfigs[typ] {
			f.Add("component type=" + typ + " " + config)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c *ConfigLine
		var err error
		if used := alloctest.Bytes(func() { c, err = ParseConfigLine(text) }); used > alloctest.Bound(len(text)) {
			t.Errorf("%d bytes were allocated for %d", used, len(text))
		}
		if err != nil {
			if !errors.Is(err, ErrConfig) {
				t.Errorf("%v is of no kind", err)
			}
			return
		}
		typ, _ := c.Value("type")
		comp, ok := kaldi.New(typ)
		if !ok {
			return
		}
		c.MaxNumbers = 1 << 20
		c.open = func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(name)), nil }
		if used := alloctest.Bytes(func() { err = Init(comp, c) }); used > alloctest.Bound(len(text)) {
			t.Errorf("%d bytes were allocated for %s", used, text)
		}
		if err == nil && (comp.InputDim() <= 0 || comp.OutputDim() <= 0) {
			t.Errorf("%s: %s", text, Info(comp))
		}
	})
}
