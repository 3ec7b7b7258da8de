package component

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// testConfigs has configuration lines for every type. Nothing in them is clipped or repaired, so
// that derivatives can be checked.
var testConfigs = map[string][]string{
	"AffineComponent":             {"input-dim=7 output-dim=5 orthonormal-constraint=-1 max-change=0.75"},
	"BackpropTruncationComponent": {"dim=5 scale=0.7 clipping-threshold=1000 zeroing-threshold=1000 recurrence-interval=3", "dim=4"},
	"BatchNormComponent": {"dim=6 target-rms=0.5", "dim=6 block-dim=3", "dim=6 test-mode=true",
		"dim=6 block-dim=2 epsilon=0.1 target-rms=2"},
	"BlockAffineComponent":  {"input-dim=8 output-dim=12 num-blocks=4"},
	"ClipGradientComponent": {"dim=4 clipping-threshold=1000", "dim=4 clipping-threshold=1000 norm-based-clipping=true"},
	"CompositeComponent": {
		"num-components=1 component1='type=BlockAffineComponent input-dim=8 output-dim=4 num-blocks=2'",
		`max-rows-process=3 num-components=3 component1="type=AffineComponent input-dim=6 output-dim=4" component2='type=TanhComponent dim=4' component3="type=LinearComponent input-dim=4 output-dim=3"`,
		`max-rows-process=0 num-components=3 component1="type=AffineComponent input-dim=6 output-dim=4" component2='type=BatchNormComponent dim=4' component3="type=SigmoidComponent dim=4"`,
	},
	"ConstantComponent":         {"output-dim=3 output-stddev=1", "output-dim=3 is-updatable=false"},
	"ConstantFunctionComponent": {"input-dim=4 output-dim=3 output-stddev=1", "input-dim=3 output-dim=3 is-updatable=false"},
	"ConvolutionComponent": {
		"input-x-dim=5 input-y-dim=4 input-z-dim=2 filt-x-dim=3 filt-y-dim=2 filt-x-step=2 filt-y-step=1 num-filters=3 input-vectorization-order=zyx",
		"input-x-dim=4 input-y-dim=3 input-z-dim=2 filt-x-dim=2 filt-y-dim=3 filt-x-step=1 filt-y-step=1 num-filters=2 input-vectorization-order=yzx",
	},
	"DistributeComponent":         {"input-dim=12 output-dim=4", "input-dim=3 output-dim=3"},
	"DropoutComponent":            {"dim=5 dropout-proportion=0.3", "dim=5 dropout-proportion=0.4 dropout-per-frame=true", "dim=5 dropout-proportion=0.2 test-mode=true", "dim=3 dropout-proportion=0 test-mode=true"},
	"DropoutMaskComponent":        {"output-dim=2 dropout-proportion=0.3", "output-dim=5 dropout-proportion=0.3 continuous=true", "output-dim=3 dropout-proportion=0.2 test-mode=true", "output-dim=4 dropout-proportion=0.5"},
	"ElementwiseProductComponent": {"input-dim=6 output-dim=3", "input-dim=9 output-dim=3", "input-dim=3 output-dim=3"},
	"FixedAffineComponent":        {"input-dim=5 output-dim=4"},
	"FixedBiasComponent":          {"dim=4"},
	"FixedScaleComponent":         {"dim=4"},
	"GeneralDropoutComponent": {"dim=6 dropout-proportion=0.4", "dim=6 block-dim=3 time-period=2 dropout-proportion=0.2 continuous=true",
		"dim=12 block-dim=6 dropout-proportion=0 specaugment-max-proportion=0.5 specaugment-max-regions=3", "dim=6 test-mode=true"},
	"GruNonlinearityComponent":                {"cell-dim=5 recurrent-dim=3 self-repair-scale=0", "cell-dim=4 self-repair-scale=0"},
	"LinearComponent":                         {"input-dim=7 output-dim=5 l2-regularize=0.01"},
	"LogSoftmaxComponent":                     {"dim=6"},
	"LstmNonlinearityComponent":               {"cell-dim=4 self-repair-scale=0", "cell-dim=3 use-dropout=true self-repair-scale=0"},
	"MaxpoolingComponent":                     {"input-x-dim=4 input-y-dim=3 input-z-dim=5 pool-x-size=2 pool-y-size=3 pool-z-size=2 pool-x-step=2 pool-y-step=1 pool-z-step=3"},
	"NaturalGradientAffineComponent":          {"input-dim=7 output-dim=5 bias-mean=1 learning-rate-factor=0.5"},
	"NaturalGradientPerElementScaleComponent": {"dim=5 param-mean=0.5 param-stddev=1"},
	"NaturalGradientRepeatedAffineComponent":  {"input-dim=6 output-dim=9 num-repeats=3"},
	"NoOpComponent":                           {"dim=5"},
	"NormalizeComponent":                      {"dim=6 target-rms=0.5", "dim=6 block-dim=2", "dim=6 block-dim=3 add-log-stddev=true"},
	"OutputGruNonlinearityComponent":          {"cell-dim=4 self-repair-scale=0"},
	"PerElementOffsetComponent":               {"dim=6 param-stddev=1", "dim=6 block-dim=3 param-stddev=1"},
	"PerElementScaleComponent":                {"dim=6 param-stddev=1"},
	"PermuteComponent":                        {"column-map=3,0,2,1,4"},
	"PnormComponent":                          {"input-dim=8 output-dim=4"},
	"RectifiedLinearComponent":                {"dim=6", "dim=6 block-dim=2"},
	"RepeatedAffineComponent":                 {"input-dim=6 output-dim=9 num-repeats=3 bias-stddev=1"},
	"RestrictedAttentionComponent": {
		"num-heads=2 key-dim=3 value-dim=2 time-stride=1 num-left-inputs=2 num-right-inputs=1 num-left-inputs-required=0 num-right-inputs-required=1",
		"num-heads=1 key-dim=2 value-dim=3 time-stride=2 num-left-inputs=1 num-right-inputs=1 output-context=false key-scale=1",
	},
	"ScaleAndOffsetComponent":      {"dim=5", "dim=6 block-dim=2"},
	"SigmoidComponent":             {"dim=5"},
	"SoftmaxComponent":             {"dim=5"},
	"SpecAugmentTimeMaskComponent": {"dim=3 zeroed-proportion=0.4 time-mask-max-frames=2", "dim=3 test-mode=true"},
	"StatisticsExtractionComponent": {"input-dim=3 input-period=1 output-period=2 include-variance=true",
		"input-dim=2 input-period=2 output-period=4 include-variance=false"},
	"StatisticsPoolingComponent": {"input-dim=5 left-context=2 right-context=1 output-stddevs=true num-log-count-features=2",
		"input-dim=4 left-context=1 right-context=3"},
	"SumBlockComponent": {"input-dim=6 output-dim=2 scale=0.5"},
	"SumGroupComponent": {"sizes=1,3,2", "input-dim=6 output-dim=3"},
	"TanhComponent":     {"dim=5"},
	"TdnnComponent":     {"input-dim=4 output-dim=3 time-offsets=-1,0,2", "input-dim=4 output-dim=3 time-offsets=-3,3 use-bias=false"},
	"TimeHeightConvolutionComponent": {
		"num-filters-in=2 num-filters-out=3 height-in=5 height-out=5 time-offsets=-1,0,1 height-offsets=-1,0,1 required-time-offsets=0",
		"num-filters-in=3 num-filters-out=2 height-in=6 height-out=2 height-subsample-out=2 offsets=-2,0;0,-3;0,1;0,2;1,0 bias-stddev=1",
		"num-filters-in=2 num-filters-out=2 height-in=3 height-out=3 time-offsets=0 height-offsets=0,1 init-unit=true",
	},
}

// testCase is a component with the arguments to compute with it.
type testCase struct {
	name string
	c    Component
	pre  Precomputed
	in   kernel.Matrix
	rows int // of the output
	seed uint64
}

// eachCase calls f with a component for each configuration of each type. It fails if a type has
// none.
func eachCase(t *testing.T, f func(t *testing.T, k *testCase)) {
	for _, typ := range kaldi.Types() {
		if len(testConfigs[typ]) == 0 {
			t.Errorf("%s has no configuration to test", typ)
		}
		for _, config := range testConfigs[typ] {
			t.Run(typ+"/"+config, func(t *testing.T) { f(t, newCase(t, typ, config)) })
		}
	}
	for typ := range testConfigs {
		if !slices.Contains(kaldi.Types(), typ) {
			t.Errorf("there is no type %s", typ)
		}
	}
}

func newComponent(t *testing.T, typ, config string, rnd *rand.Rand) Component {
	t.Helper()
	line, err := ParseConfigLine(config)
	if err != nil {
		t.Fatal(err)
	}
	line.Rand = rnd
	c, ok := kaldi.New(typ)
	if !ok {
		t.Fatalf("unknown type %s", typ)
	}
	if err := Init(c, line); err != nil {
		t.Fatal(err)
	}
	if left := line.Unused(); left != "" {
		t.Fatalf("unused: %s", left)
	}
	return c
}

func newCase(t *testing.T, typ, config string) *testCase {
	t.Helper()
	rnd := rand.New(rand.NewPCG(11, 12))
	k := &testCase{name: typ, c: newComponent(t, typ, config, rnd), rows: 7, seed: 99}
	inRows := k.rows
	if n, ok := k.c.(NonSimple); ok {
		in, out := testIndexes(k.c, n, rnd)
		inRows, k.rows = len(in), len(out)
		if k.rows == 0 {
			t.Fatal("nothing is computable")
		}
		pre, err := n.PrecomputeIndexes(in, out, true)
		if err != nil {
			t.Fatal(err)
		}
		k.pre = pre
	} else if !k.c.Properties().Has(Simple) {
		t.Fatal("neither simple nor NonSimple")
	}
	k.in = randomMatrix(rnd, inRows, k.c.InputDim())
	if p, ok := k.c.(*statisticsPoolingComponent); ok {
		for i := range k.in.Rows {
			row := kernel.Row(k.in, i)
			row[0] = 1 + rnd.Float32()
			for j := range row[1:] {
				if p.outputStddevs && j >= (p.inputDim-1)/2 {
					row[1+j] = 10 + rnd.Float32()
				}
			}
		}
	}
	return k
}

// testIndexes returns the output indexes that can be computed from inputs at the times -2 to 9, and
// the indexes of these inputs, in random order unless the component needs that of the outputs.
func testIndexes(c Component, n NonSimple, rnd *rand.Rand) (in, out []index.Index) {
	has := func(x index.Index) bool { return x.T >= -2 && x.T <= 9 }
	seen := map[index.Index]bool{}
	for x := range int32(3) {
		if _, ok := c.(*distributeComponent); !ok && x > 0 {
			continue
		}
		for t := int32(-2); t < 10; t++ {
			for s := range int32(2) {
				o := index.Index{N: s, T: t, X: x}
				var used []index.Index
				if !n.IsComputable(o, has, &used) {
					continue
				}
				out = append(out, o)
				for _, u := range used {
					if !seen[u] {
						seen[u] = true
						in = append(in, u)
					}
				}
			}
		}
	}
	if _, ordered := n.(interface{ SetTestMode(bool) }); !ordered {
		if _, ordered := n.(*backpropTruncationComponent); !ordered {
			rnd.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		}
	}
	return in, out
}

func randomMatrix(rnd *rand.Rand, rows, cols int) kernel.Matrix {
	m := kernel.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(rnd.NormFloat64())
	}
	return m
}

// spread returns a copy of m with gaps between its rows, which are filled with NaN, and the whole
// buffer.
func spread(m kernel.Matrix) (kernel.Matrix, kernel.Matrix) {
	whole := kernel.New(m.Rows+2, m.Cols+5)
	for i := range whole.Data {
		whole.Data[i] = float32(math.NaN())
	}
	v := kernel.View(whole, 1, m.Rows, 3, m.Cols)
	kernel.Copy(v, m)
	return v, whole
}

// gapsIntact reports whether the elements of the buffer around the view are still NaN.
func gapsIntact(whole kernel.Matrix, rows, cols int) bool {
	for i := range whole.Rows {
		for j, v := range kernel.Row(whole, i) {
			inside := i >= 1 && i < 1+rows && j >= 3 && j < 3+cols
			if !inside && v == v {
				return false
			}
		}
	}
	return true
}

// workspace returns a workspace with the case's random numbers.
func (k *testCase) workspace() *Workspace {
	return &Workspace{Rand: rand.New(rand.NewPCG(k.seed, 1))}
}

// empty returns an output for the case: zero if the component adds to it, otherwise full of NaN.
func (k *testCase) empty() kernel.Matrix {
	y := kernel.New(k.rows, k.c.OutputDim())
	if !k.c.Properties().Has(PropagateAdds) {
		kernel.Fill(y, float32(math.NaN()))
	}
	return y
}

func (k *testCase) propagate(t *testing.T, c Component, in kernel.Matrix) (kernel.Matrix, Memo) {
	t.Helper()
	y := k.empty()
	memo, err := Propagate(c, k.workspace(), ForwardPass{Pre: k.pre}, in, y)
	if err != nil {
		t.Fatal(err)
	}
	return y, memo
}

func equalBits(a, b kernel.Matrix) bool {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return false
	}
	for i := range a.Rows {
		x, y := kernel.Row(a, i), kernel.Row(b, i)
		for j := range x {
			if math.Float32bits(x[j]) != math.Float32bits(y[j]) && !(x[j] != x[j] && y[j] != y[j]) {
				return false
			}
		}
	}
	return true
}

func near(a, b kernel.Matrix, tolerance float64) bool {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return false
	}
	var diff, norm float64
	for i := range a.Rows {
		x, y := kernel.Row(a, i), kernel.Row(b, i)
		for j := range x {
			d := float64(x[j]) - float64(y[j])
			diff += d * d
			norm += float64(x[j]) * float64(x[j])
		}
	}
	return math.Sqrt(diff) <= tolerance*math.Sqrt(norm)+1e-6
}
