package standard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

// compute has models, features and what Kaldi's nnet3-compute makes of them.
const compute = "../../nnet3/testdata/compute/"

// An utterance is an object of a table of matrices.
type utterance struct {
	key string
	m   kernel.Matrix
}

// readTable reads a table of matrices.
func readTable(t *testing.T, rspecifier string) []utterance {
	t.Helper()
	r, err := kaldiio.NewTableReader(new(kaldiio.Opener), rspecifier, kaldiio.MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	var all []utterance
	for key, m := range r.All() {
		all = append(all, utterance{key, kernel.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}})
	}
	if err := r.Close(); err != nil {
		t.Fatalf("%s: %v", rspecifier, err)
	}
	return all
}

// keysOf returns the keys of a table, which must be whole.
func keysOf(t *testing.T, rspecifier string) string {
	t.Helper()
	var keys []string
	for _, u := range readTable(t, rspecifier) {
		keys = append(keys, u.key)
	}
	return strings.Join(keys, " ")
}

// The arguments of the runs of nnet3-compute that are kept beside the features.
var goldenArgs = map[string][]string{
	"tdnnf_online":   {"tdnnf.mdl", "--frames-per-chunk=30", "--frame-subsampling-factor=3", "--online-ivectors=ark:" + compute + "online_ivec.txt", "--online-ivector-period=10"},
	"tdnnf_ivec_exp": {"tdnnf.mdl", "--frames-per-chunk=21", "--frame-subsampling-factor=3", "--ivectors=ark:" + compute + "ivec.txt", "--extra-left-context=3", "--apply-exp=true"},
	"lstmp":          {"lstmp.raw", "--frames-per-chunk=20", "--extra-left-context=10", "--extra-left-context-initial=0", "--ivectors=ark:" + compute + "ivec.txt"},
	"blstm":          {"blstm.raw", "--frames-per-chunk=20", "--extra-left-context=10", "--extra-right-context=10", "--extra-left-context-initial=0", "--extra-right-context-final=0", "--ivectors=ark:" + compute + "ivec.txt"},
}

// runGolden makes one of those runs and returns the output.
func runGolden(t *testing.T, name string, more ...string) []utterance {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.ark")
	args := append([]string{"run", compute + goldenArgs[name][0], "ark:" + compute + "feats.ark", "ark:" + out}, goldenArgs[name][1:]...)
	nnopt(t, append(args, more...)...).ok(t)
	return readTable(t, "ark:"+out)
}

// TestRunGolden: with Kaldi's options comes Kaldi's output.
func TestRunGolden(t *testing.T) {
	t.Parallel()
	for name := range goldenArgs {
		want := readTable(t, "ark:"+compute+name+".ark")
		for _, query := range []string{"+fast_run", "none"}[:longtest.Of(1, 2)] {
			t.Run(name+"/"+query, func(t *testing.T) {
				got := runGolden(t, name, "--query", query)
				if len(got) != len(want) {
					t.Fatalf("%d utterances, want %d", len(got), len(want))
				}
				if name == "tdnnf_ivec_exp" {
					sameExtremes(t, got, want)
					return
				}
				for i, w := range want {
					d, err := pipeline.Compare(got[i].m, w.m)
					if got[i].key != w.key || err != nil || !d.Agrees(1e-4) {
						t.Errorf("%s, want %s: relative difference %.2g (%v)", got[i].key, w.key, d.Relative(), err)
					}
				}
			})
		}
	}
}

// sameExtremes complains unless the same elements are zero and infinite: almost all are. The few in
// between are exponentials of sums of terms up to 10⁵, so that rounding decides about most of their
// digits; package decodable tests the exponents.
func sameExtremes(t *testing.T, got, want []utterance) {
	t.Helper()
	for u, w := range want {
		for i, k := range w.m.Data {
			if e := got[u].m.Data[i]; (k == 0) != (e == 0) || math.IsInf(float64(k), 1) != math.IsInf(float64(e), 1) || math.Abs(math.Log(float64(e)/float64(k))) > 0.1 {
				t.Errorf("%s, element %d is %g, Kaldi's is %g", w.key, i, e, k)
			}
		}
	}
}

// TestRunSame: neither workers nor the kind of archive change a bit.
func TestRunSame(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "feats.scp")
	var lines strings.Builder
	for line := range strings.Lines(readFile(t, compute+"feats.scp")) {
		lines.WriteString(strings.Replace(line, " ", " "+compute, 1))
	}
	if err := os.WriteFile(script, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", compute + "lstmp.raw"}, goldenArgs["lstmp"][1:]...)
	want := ""
	for i, more := range [][]string{
		{"ark:" + compute + "feats.ark", "--workers=1"},
		{"ark:" + compute + "feats.ark", "--workers=3"},
		{"scp:" + script, "--workers=2"},
		{"ark:cat " + compute + "feats.ark |", "--allow-pipes"},
	} {
		out := filepath.Join(dir, fmt.Sprint(i, ".ark"))
		nnopt(t, append(append(args, more...), "ark,scp:"+out+","+out+".scp")...).ok(t)
		got := readFile(t, out)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%q: the output differs", more)
		}
		if keys := keysOf(t, "scp:"+out+".scp"); keys != "utt_a utt_b utt_c utt_d" {
			t.Errorf("the script has %s", keys)
		}
	}
	text := nnoptWith(t, readFile(t, compute+"feats.ark"), append(args, "ark:-", "ark,t:-")...).ok(t)
	contains(t, text.stdout, "utt_a  [\n", "utt_d  [\n")
	contains(t, text.stderr, "4 utterances scored, 446 frames")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// smallRun is a network with a left context of one frame, and as input three utterances.
const (
	smallRun      = "input-node name=input dim=2\noutput-node name=output input=Sum(input, Scale(-1, Offset(input, -1)))\n"
	smallFeatures = "a  [\n  1 2 \n  3 5 ]\nb  [\n  7 7 ]\nc  [\n  0 1 \n  1 0 \n  0 1 ]\n"
	smallOutput   = "a  [\n  0 0 \n  2 3 ]\nb  [\n  0 0 ]\nc  [\n  0 0 \n  1 -1 \n  -1 1 ]\n"
)

// TestLackingStats: batch normalization without statistics is scored and exported with a warning.
func TestLackingStats(t *testing.T) {
	t.Parallel()
	const warning = "small.raw: warning: batch normalization without statistics: mean 0 and variance 1 are used in bn"
	config := strings.Replace(smallRun, "output-node", "component name=bn type=BatchNormComponent dim=2\ncomponent-node name=bn component=bn input=input\noutput-node", 1)
	model, in := smallModel(t, strings.ReplaceAll(config, "Sum(input", "Sum(bn")), "ark:"+file(t, "feats", smallFeatures)
	for _, more := range [][]string{nil, {"--looped"}} {
		r := nnopt(t, append(append([]string{"run", "--json"}, more...), model, in, "ark:"+os.DevNull)...).ok(t)
		contains(t, r.stderr, warning)
		contains(t, r.stdout, `"lacking_stats":["bn"]`)
		contains(t, nnopt(t, append(append([]string{"export", "--output=" + filepath.Join(t.TempDir(), "x.onnx")}, more...), model)...).ok(t).stderr, warning)
	}
	// What the output does not need matters to nobody.
	other := smallModel(t, config+"output-node name=other input=bn\n")
	if r := nnopt(t, "run", other, in, "ark:"+os.DevNull).ok(t); strings.Contains(r.stderr, "warning") {
		t.Error(r.stderr)
	}
}

// smallModel makes a model of config lines.
func smallModel(t *testing.T, config string) string {
	t.Helper()
	model := filepath.Join(t.TempDir(), "small.raw")
	nnopt(t, "init", file(t, "config", config), model).ok(t)
	return model
}

// TestRunFaults: what can be scored is scored, the rest is reported, and the exit status tells.
func TestRunFaults(t *testing.T) {
	t.Parallel()
	model := smallModel(t, smallRun)
	withIvector := smallModel(t, "input-node name=input dim=2\ninput-node name=ivector dim=2\noutput-node name=output input=Sum(input, ReplaceIndex(ivector, t, 0))\n")
	features := file(t, "feats", smallFeatures)
	object := func(key string) int { return strings.Index(smallFeatures, key+"  [") + 2 }
	for _, c := range []struct {
		name   string
		args   []string
		keys   string // of the output
		wanted []string
	}{
		{"empty utterance", []string{model, "ark:" + file(t, "f", "x  [ ]\n"+smallFeatures)}, "a b c", []string{"utterance x", "no frames", "1 failed"}},
		{"wrong dimension", []string{model, "ark:" + file(t, "f", "x  [\n  1 2 3 ]\n"+smallFeatures)}, "a b c", []string{"utterance x", "3 columns", "wants 2"}},
		{"archive that is cut", []string{model, "ark:" + file(t, "f", smallFeatures[:len(smallFeatures)-5])}, "a b", []string{"key c", "ends too early", "2 utterances scored"}},
		{"archive that is broken", []string{model, "ark:" + file(t, "f", strings.Replace(smallFeatures, "7 7", "7 ?", 1))}, "a c", []string{"key b", "line 5", "4 bytes that follow were not looked at", "2 utterances scored"}},
		{"script with a hole", []string{model, "scp:" + file(t, "s", fmt.Sprintf("a %s:%d\nb none\nc %s:%d\n", features, object("a"), features, object("c")))}, "a c", []string{"key b", "none"}},
		{"script with a command", []string{model, "scp:" + file(t, "s", fmt.Sprintf("a cat %s |\nb %s:%d\n", features, features, object("b")))}, "b", []string{"key a", "not allowed"}},
		{"i-vector that is missing", []string{withIvector, "ark:" + features, "--ivectors=ark:" + file(t, "i", "a  [ 1 1 ]\nc  [ 1 1 ]\n")}, "a c", []string{"utterance b", "no i-vector"}},
		{"i-vector that is too long", []string{withIvector, "ark:" + features, "--ivectors=ark:" + file(t, "i", "a  [ 1 1 ]\nb  [ 1 1 1 ]\nc  [ 1 1 ]\n")}, "a c", []string{"utterance b", "3 elements"}},
		{"i-vectors that are cut", []string{withIvector, "ark:" + features, "--ivectors=ark:" + file(t, "i", "a  [ 1 1 ]\nb  [ 1")}, "a", []string{"utterance b", "utterance c", "ends too early"}},
		{"online i-vectors of others", []string{withIvector, "ark:" + features, "--online-ivector-period=2", "--online-ivectors=ark:" + file(t, "i", "a  [\n 1 1 ]\nc  [\n 1 ]\n")}, "a", []string{"utterance b", "utterance c", "2 failed"}},
		{"speaker that is missing", []string{withIvector, "ark:" + features, "--ivectors=ark:" + file(t, "i", "s  [ 1 1 ]\n"), "--utt2spk=ark:" + file(t, "u", "a s\nc s\n")}, "a c", []string{"utterance b"}},
		{"command that fails", []string{model, "ark:cat " + features + "; exit 3 |", "--allow-pipes"}, "a b c", []string{"exit status 3"}},
		{"nothing", []string{model, "ark:" + file(t, "f", "")}, "", []string{"no utterances"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.ark")
			nnopt(t, append([]string{"run", c.args[0], c.args[1], "ark:" + out}, c.args[2:]...)...).fails(t, statusFault, c.wanted...)
			if keys := keysOf(t, "ark:"+out); keys != c.keys {
				t.Errorf("the output has %q, want %q", keys, c.keys)
			}
		})
	}
}

// TestRunRefused: what can't begin leaves no output.
func TestRunRefused(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	model := smallModel(t, smallRun)
	features := file(t, "feats", smallFeatures)
	in, out := "ark:"+features, filepath.Join(t.TempDir(), "out.ark")
	golden := compute + "tdnnf.mdl"
	for _, c := range []struct {
		name   string
		args   []string
		status int
		wanted []string
	}{
		{"no arguments", nil, statusUsage, []string{"MODEL FEATS OUT"}},
		{"fewer than no workers", []string{"--workers=-1", model, in, "ark:" + out}, statusUsage, []string{"--workers=-1", "between 0 and 4096"}},
		{"more workers than anybody has", []string{"--workers=2000000000", model, in, "ark:" + out}, statusUsage, []string{"between 0 and"}},
		{"no rspecifier", []string{model, features, "ark:" + out}, statusUsage, []string{"ark:" + features}},
		{"no wspecifier", []string{model, in, out}, statusUsage, []string{"ark:" + out}},
		{"the input as output", []string{model, in, in}, statusUsage, []string{"overwritten"}},
		{"the model as output", []string{model, in, "ark:" + model}, statusUsage, []string{"overwritten"}},
		{"an infinite scale", []string{model, in, "ark:" + out, "--acoustic-scale=inf"}, statusUsage, []string{"acoustic-scale"}},
		{"a scale that is no number", []string{model, in, "ark:" + out, "--acoustic-scale=nan"}, statusUsage, []string{"acoustic-scale"}},
		{"no model", []string{out, in, "ark:" + out}, statusFault, []string{"no such file"}},
		{"config lines", []string{file(t, "c", smallRun), in, "ark:" + out}, statusFault, []string{"the verb init"}},
		{"half a model", []string{file(t, "m", readFile(t, golden)[:5000]), in, "ark:" + out}, statusFault, []string{"byte 5000"}},
		{"no features", []string{model, "ark:none", "ark:" + out}, statusFault, []string{"none"}},
		{"a folder that is not there", []string{model, in, "ark:" + out + "/x"}, statusFault, []string{"out.ark/x"}},
		{"a command", []string{model, "ark:cat " + features + " |", "ark:" + out}, statusFault, []string{"--allow-pipes"}},
		{"a command as model", []string{"cat " + model + " |", in, "ark:" + out}, statusFault, []string{"--allow-pipes"}},
		{"standard input twice", []string{"-", "ark:-", "ark:" + out}, statusUsage, []string{"2 of the inputs", "once"}},
		{"i-vectors that are matrices", []string{golden, in, "ark:-", "--ivectors=ark:" + compute + "feats.ark"}, statusFault, []string{"a matrix (CM) where a vector is wanted"}},
		{"no i-vectors", []string{golden, "ark:" + compute + "feats.ark", "ark:" + out}, statusUsage, []string{"6 elements", "--ivectors"}},
		{"no i-vectors in the file", []string{golden, in, "ark:" + out, "--ivectors=ark:none"}, statusFault, []string{"none"}},
		{"two kinds of i-vectors", []string{golden, in, "ark:" + out, "--ivectors=" + in, "--online-ivectors=" + in, "--online-ivector-period=1"}, statusUsage, []string{"not both"}},
		{"no period", []string{golden, in, "ark:" + out, "--online-ivectors=" + in}, statusUsage, []string{"--online-ivector-period"}},
		{"priors of a raw network", []string{model, in, "ark:" + out, "--use-priors"}, statusUsage, []string{"--use-priors", ".mdl"}},
		{"chunks of nothing", []string{model, in, "ark:" + out, "--frames-per-chunk=0"}, statusUsage, []string{"--frames-per-chunk"}},
		{"negative context", []string{model, in, "ark:" + out, "--extra-left-context=-1"}, statusUsage, []string{"extra-left-context"}},
		{"endless context", []string{model, in, "ark:" + out, "--extra-right-context=99999999999"}, statusUsage, []string{"extra-right-context"}},
		{"two things on standard output", []string{model, in, "ark:-", "--json"}, statusUsage, []string{"--json"}},
		{"a graphics processor", []string{model, in, "ark:" + out, "--use-gpu=yes"}, statusUsage, []string{"--use-gpu"}},
		{"a tag that there is not", []string{model, in, "ark:" + out, "--query=+fast_rum"}, statusUsage, []string{"fast_run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nnopt(t, append([]string{"run"}, c.args...)...).fails(t, c.status, c.wanted...)
			if _, err := os.Stat(out); err == nil {
				t.Error("there is output")
				os.Remove(out)
			}
		})
	}
	if got := readFile(t, features); got != smallFeatures {
		t.Errorf("the input has become %q", got)
	}
}

// TestRunOutput: text, priors, scale, what is not wanted, a full disk.
func TestRunOutput(t *testing.T) {
	t.Parallel()
	model := smallModel(t, smallRun)
	in := "ark:" + file(t, "feats", smallFeatures)
	if r := nnopt(t, "run", model, in, "ark,t:-").ok(t); r.stdout != smallOutput {
		t.Errorf("%q, want %q", r.stdout, smallOutput)
	}
	r := nnopt(t, "run", model, in, "ark,t:-", "--ivectors=ark:none", "--frames-per-chunk=1", "--acoustic-scale=1", "--use-gpu=no").ok(t)
	if r.stdout != smallOutput {
		t.Errorf("%q, want %q", r.stdout, smallOutput)
	}
	contains(t, r.stderr, "takes no i-vectors")
	contains(t, nnopt(t, "run", model, in, "ark,t:-", "--frame-subsampling-factor=3").ok(t).stderr, "51 frames instead of 50")
	withPriors := append([]string{"run", compute + "tdnnf.mdl", "ark:" + compute + "feats.ark", "ark:" + os.DevNull, "--use-priors"}, goldenArgs["tdnnf_online"][1:]...)
	contains(t, nnopt(t, withPriors...).ok(t).stderr, "4 utterances")
	if _, err := os.Stat("/dev/full"); err == nil {
		nnopt(t, "run", model, in, "ark:/dev/full").fails(t, statusFault, "no space")
	}
}

// TestRunJSON: the summary adds up.
func TestRunJSON(t *testing.T) {
	model := smallModel(t, smallRun)
	in := "ark:" + file(t, "feats", smallFeatures+"x [ ]\n")
	r := nnopt(t, "run", model, in, "ark:"+filepath.Join(t.TempDir(), "out"), "--json")
	if r.status != statusFault {
		t.Errorf("status %d", r.status)
	}
	var j runReport
	if err := json.Unmarshal([]byte(r.stdout), &j); err != nil {
		t.Fatal(err)
	}
	if j.Utterances != 3 || j.Failed != 1 || j.Frames != 6 || j.Rows != 6 || j.Query != tool.DefaultQuery || j.Programs == 0 || j.LoadSeconds <= 0 ||
		j.RunSeconds <= 0 || j.ComputeSeconds <= 0 || j.BuildSeconds <= 0 || j.FirstResultSeconds <= j.LoadSeconds || j.WorkspaceBytes <= 0 {
		t.Errorf("%s", r.stdout)
	}
}

// TestRunStreams: with option f an utterance is out before the next one is in.
func TestRunStreams(t *testing.T) {
	model := smallModel(t, smallRun)
	stdin, feed := io.Pipe()
	result, stdout := io.Pipe()
	status := make(chan int)
	var stderr bytes.Buffer
	go func() {
		status <- standard.Program{}.Run(context.Background(), []string{"run", model, "ark:-", "ark,t,f:-"}, stdin, stdout, &stderr)
	}()
	lines := bufio.NewReader(result)
	for _, u := range []string{"a", "b"} {
		// Of an archive in text the reader looks at what comes after an object before it hands it
		// on.
		fmt.Fprintf(feed, "%s  [\n  1 2 ]\n", u)
		for _, want := range []string{u + "  [\n", "  0 0 ]\n"} {
			if got, err := lines.ReadString('\n'); got != want || err != nil {
				t.Fatalf("%q, %v; want %q", got, err, want)
			}
		}
	}
	feed.Close()
	if s := <-status; s != statusOK {
		t.Errorf("status %d: %s", s, stderr.String())
	}
}

// TestRunInterrupted: an interrupt ends the run also while it waits for input, and leaves whole
// utterances.
func TestRunInterrupted(t *testing.T) {
	model := smallModel(t, smallRun)
	out := filepath.Join(t.TempDir(), "out.ark")
	stdin, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(context.Background())
	status := make(chan int)
	var stdout, stderr bytes.Buffer
	go func() {
		status <- standard.Program{}.Run(ctx, []string{"run", model, "ark:-", "ark,f:" + out}, stdin, &stdout, &stderr)
	}()
	if _, err := io.WriteString(feed, smallFeatures); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(out); err == nil && info.Size() > 0 || time.Now().After(deadline) {
			break
		}
	}
	cancel()
	if s := <-status; s != statusFault || !strings.Contains(stderr.String(), "canceled") {
		t.Errorf("status %d: %s", s, stderr.String())
	}
	if keys := keysOf(t, "ark:"+out); !strings.HasPrefix("a b c", keys) || keys == "" {
		t.Errorf("the output has %q", keys)
	}
}
