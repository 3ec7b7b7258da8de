package standard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// smallConfig is a network with everything in it that matters here: an i-vector, time offsets, a
// factored layer.
const smallConfig = `# a small TDNN-F
input-node name=ivector dim=3
input-node name=input dim=4
component name=a type=NaturalGradientAffineComponent input-dim=15 output-dim=8
component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1), ReplaceIndex(ivector, t, 0))
component name=a.relu type=RectifiedLinearComponent dim=8
component-node name=a.relu component=a.relu input=a
component name=a.bn type=BatchNormComponent dim=8
component-node name=a.bn component=a.bn input=a.relu
component name=f.linear type=TdnnComponent input-dim=8 output-dim=4 time-offsets=-3,0 use-bias=false
component-node name=f.linear component=f.linear input=a.bn
component name=f.affine type=TdnnComponent input-dim=4 output-dim=8 time-offsets=0,3
component-node name=f.affine component=f.affine input=f.linear
component name=f.noop type=NoOpComponent dim=8
component-node name=f.noop component=f.noop input=Sum(Scale(0.66, a.bn), f.affine)
component name=out type=NaturalGradientAffineComponent input-dim=8 output-dim=5
component-node name=out component=out input=f.noop
output-node name=output input=out
`

// withoutTimes removes the members of a JSON object that hold seconds.
func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for name := range object {
		if strings.HasSuffix(name, "seconds") {
			delete(object, name)
		}
	}
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestInitAndInfo(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	dir := t.TempDir()
	binary, text := filepath.Join(dir, "binary.raw"), filepath.Join(dir, "text.raw")
	contains(t, nnopt(t, "init", "--srand=7", config, binary).ok(t).stderr, "309 parameters")
	nnopt(t, "init", "--srand=7", "--binary=false", config, text).ok(t)
	info := nnopt(t, "info", binary).ok(t).stdout
	contains(t, info, "left-context: 4", "right-context: 4", "num-parameters: 309", "component-node name=f.noop")
	if other := nnopt(t, "info", text).ok(t).stdout; other != info {
		t.Errorf("the model in text is described as\n%s\nin binary as\n%s", other, info)
	}
	// The seed decides about the parameters, and nothing else does.
	again := nnopt(t, "init", "--srand=7", config, "-").ok(t).stdout
	if model, err := os.ReadFile(binary); err != nil || again != string(model) {
		t.Errorf("the same seed gives another model (%v)", err)
	}
	if nnopt(t, "init", "--srand=8", config, "-").ok(t).stdout == again {
		t.Error("another seed gives the same model")
	}
	// A model passes through a pipe.
	if piped := nnoptWith(t, again, "info", "-").ok(t).stdout; piped != info {
		t.Errorf("from standard input: %s", piped)
	}
	var report struct {
		Parameters int `json:"parameters"`
		Left       int `json:"left_context"`
		Nodes      []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(nnopt(t, "info", "--json", binary).ok(t).stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.Parameters != 309 || report.Left != 4 || len(report.Nodes) != 10 {
		t.Errorf("info --json: %+v", report)
	}
	nnopt(t, "init", binary, "-").fails(t, statusUsage, "is a model, not config lines")
}

// TestTooShortChunk: info says how long a chunk must be at least where that is more than a frame,
// and so does the error about one that is shorter.
func TestTooShortChunk(t *testing.T) {
	model := recipes + "/xvector_infer/model.raw"
	contains(t, nnopt(t, "info", model).ok(t).stdout, "left-context: 0\nright-context: 7\nsmallest-chunk: 8\n")
	contains(t, nnopt(t, "info", "--json", model).ok(t).stdout, `"smallest_chunk":8,`)
	nnopt(t, "compile", "--frames-per-chunk=7", model).fails(t, statusFault, "the smallest chunk that can be computed is one of 8 frames")
	nnopt(t, "compile", "--frames-per-chunk=8", model).ok(t)
	feats := file(t, "feats.txt", "u  [\n"+strings.Repeat(strings.Repeat(" 1", 16)+"\n", 8)+" ]\n")
	nnopt(t, "run", "--frames-per-chunk=4", model, "ark:"+feats, "ark:"+filepath.Join(t.TempDir(), "out.ark")).
		fails(t, statusFault, "the smallest chunk that can be computed is one of 8 frames")
	nnopt(t, "run", model, "ark:"+feats, "ark:"+filepath.Join(t.TempDir(), "out.ark")).ok(t)
	if info := nnopt(t, "info", recipes+"/tdnnf_infer/model.raw").ok(t).stdout; strings.Contains(info, "smallest-chunk") {
		t.Error(info)
	}
}

// TestBadNetworks: every fault of a model is one error that says where it is.
func TestBadNetworks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, to string
		wanted         []string
	}{
		{"unknown key", "output-dim=5", "output-dim=5 bias-stdev=0", []string{"net.config:16", "bias-stdev"}},
		{"unknown type", "type=NoOpComponent", "type=NopComponent", []string{"net.config:14", "NoOpComponent"}},
		{"descriptor does not parse", "Sum(Scale(0.66, a.bn), f.affine)", "Sum(Scale(0.66, a.bn), f.affine", []string{"net.config:15", "f.noop"}},
		{"unknown function", "Offset(input, -1)", "Offzet(input, -1)", []string{"net.config:5", "Offset"}},
		{"unknown node", "input=f.noop", "input=f.nop", []string{"net.config:17", "f.nop"}},
		{"dimensions", "input-dim=8 output-dim=5", "input-dim=9 output-dim=5", []string{"net.config", "out", "9", "8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(smallConfig, c.from) {
				t.Fatalf("the test replaces %q, which is not there", c.from)
			}
			config := file(t, "net.config", strings.Replace(smallConfig, c.from, c.to, 1))
			for _, verb := range [][]string{{"info", config}, {"compile", config}, {"profile", config}, {"init", config, "-"}, {"bench", "nnet3", "--model", config}} {
				nnopt(t, verb...).fails(t, statusFault, c.wanted...)
			}
		})
	}
	t.Run("empty file", func(t *testing.T) { nnopt(t, "info", file(t, "x.raw", "")).fails(t, statusFault, "x.raw", "empty") })
	t.Run("no file", func(t *testing.T) { nnopt(t, "info", "nowhere.raw").fails(t, statusFault, "nowhere.raw") })
	t.Run("folder", func(t *testing.T) { nnopt(t, "info", t.TempDir()).fails(t, statusFault, "directory") })
}

// TestTruncatedModels: a model that ends too early, or has one byte changed, gives an error with
// its place or is a model.
func TestTruncatedModels(t *testing.T) {
	model, err := os.ReadFile(filepath.Join(recipes, "tdnnf_infer/model.raw"))
	if err != nil {
		t.Fatal(err)
	}
	step := 997
	if !longtest.Enabled() {
		step = 9973
	}
	for end := 1; end < len(model); end += step {
		r := nnopt(t, "info", file(t, "cut.raw", string(model[:end])))
		r.fails(t, statusFault, "cut.raw")
		if end > 20_000 && !strings.Contains(r.stderr, "byte") {
			t.Errorf("cut at %d: the error has no offset: %s", end, r.stderr)
		}
	}
	for at := 3; at < len(model); at += step {
		flipped := append([]byte(nil), model...)
		flipped[at] ^= 0x55
		r := nnopt(t, "info", file(t, "flipped.raw", string(flipped)))
		if r.status != statusOK {
			r.fails(t, statusFault, "flipped.raw")
		}
	}
}

func TestRequests(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	compact := `{"n": 2, "input_t": [-4, 13], "output_t": [0, 9, 3], "ivector_t": [0, 1], "outputs": ["output"], "need_model_derivative": false}`
	for name, request := range map[string]string{
		"request itself":    file(t, "request.json", compact),
		"member request":    file(t, "case.json", `{"what": "x", "request": `+compact+`}`),
		"one of several":    file(t, "all.json", `{"first": {}, "second": {"request": `+compact+`}}`) + "#second",
		"by flags of Kaldi": "",
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"compile", "--json", "--query=none", config, "--request", request}
			if request == "" {
				args = []string{"compile", "--json", "--query=none", config, "--frames-per-chunk=9", "--frame-subsampling-factor=3", "--num-sequences=2", "--outputs=output"}
			}
			contains(t, nnopt(t, args...).ok(t).stdout, `"kAcceptInput":2`, `"kProvideOutput":1`)
		})
	}
	for _, c := range []struct {
		name, request string
		wanted        []string
	}{
		{"output can't be computed", `{"n": 1, "input_t": [-3, 13], "output_t": [0, 9, 3], "outputs": ["output"]}`, []string{`"output"`, `"input"`, "-4"}},
		{"unknown output", `{"n": 1, "input_t": [-4, 13], "output_t": [0, 9, 3], "outputs": ["outptu"]}`, []string{"outptu"}},
		{"no JSON", `{"n": 1, `, []string{"request.json"}},
		{"too many rows", `{"n": 1000000000, "input_t": [-4, 13], "output_t": [0, 9, 3], "outputs": ["output"]}`, []string{"1000000000"}},
		{"nothing wanted", `{}`, []string{"outputs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nnopt(t, "compile", config, "--request", file(t, "request.json", c.request)).fails(t, statusFault, c.wanted...)
		})
	}
	nnopt(t, "compile", config, "--request", file(t, "all.json", "{}")+"#x").fails(t, statusFault, `no member "x"`)
	nnopt(t, "compile", config, "--request", "nowhere.json").fails(t, statusFault, "nowhere.json")
	nnopt(t, "compile", config, "--outputs=other").fails(t, statusFault, `"other"`)
	nnopt(t, "compile", config, "--frames-per-chunk=-5").fails(t, statusUsage, "--frames-per-chunk=-5")
}

// TestIntegers: compile and profile tell which products multiply integers, and the error that they
// make.
func TestIntegers(t *testing.T) {
	config := file(t, "net.config", `
input-node name=input dim=40
component name=first type=NaturalGradientAffineComponent input-dim=40 output-dim=64
component-node name=first component=first input=input
component name=relu type=RectifiedLinearComponent dim=64
component-node name=relu component=relu input=first
component name=out type=LinearComponent input-dim=64 output-dim=20
component-node name=out component=out input=relu
output-node name=output input=out`)
	contains(t, nnopt(t, "compile", "--query", "+fast_run +int8", "--frames-per-chunk=5", config).ok(t).stderr,
		"derived0: first in int8, expected error 0.7", "derived1: out in int8, expected error 0.")
	contains(t, nnopt(t, "compile", "--query", "+fast_run +int8 +int16", "--frames-per-chunk=5", config).ok(t).stderr, "first in int8", "out in int16")
	contains(t, nnopt(t, "compile", "--query", "+fast_run +int8", "--quantize.error=1e-9", "--frames-per-chunk=5", config).ok(t).stderr, "optimized:")
	contains(t, nnopt(t, "profile", "--query", "+fast_run +int8", "--quantize.error=0.001", "--frames-per-chunk=5", config).ok(t).stdout,
		"nb_int8 2", "nb_int16 ", "error of first+relu 0.7", "output_error 0.0")
	nnopt(t, "compile", "--quantize.error=-1", config).fails(t, statusUsage, "-1")
	nnopt(t, "compile", "--quantize.error=much", config).fails(t, statusUsage, "much")
}
