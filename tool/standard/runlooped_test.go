package standard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/longtest"
)

// The arguments of the runs of Kaldi's looped decodable that are kept in the folder looped.
var loopedArgs = map[string][]string{
	"lstmp_20":        {"lstmp.raw", "--frames-per-chunk=20", "--ivectors=ark:" + compute + "ivec.txt"},
	"lstmp_7_left3":   {"lstmp.raw", "--frames-per-chunk=7", "--extra-left-context-initial=3", "--ivectors=ark:" + compute + "ivec.txt"},
	"tdnnf_online_30": {"tdnnf.mdl", "--frames-per-chunk=30", "--frame-subsampling-factor=3", "--online-ivectors=ark:" + compute + "online_ivec.txt", "--online-ivector-period=10"},
	"tdnnf_ivec_21":   {"tdnnf.mdl", "--frames-per-chunk=21", "--frame-subsampling-factor=3", "--extra-left-context-initial=5", "--ivectors=ark:" + compute + "ivec.txt"},
}

// runLooped makes one of those runs and returns the output.
func runLooped(t *testing.T, name string, more ...string) []utterance {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.ark")
	args := append([]string{"run", "--looped", compute + loopedArgs[name][0], "ark:" + compute + "feats.ark", "ark:" + out}, loopedArgs[name][1:]...)
	nnopt(t, append(args, more...)...).ok(t)
	return readTable(t, "ark:"+out)
}

// TestRunLoopedGolden: the verb gives the rows of Kaldi's looped decodable.
func TestRunLoopedGolden(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	for name := range loopedArgs {
		want := readTable(t, "ark:"+compute+"looped/"+name+".txt")
		for _, query := range []string{"fast_run", "none", "+fast_run -inplace"}[:longtest.Of(1, 3)] {
			t.Run(name+"/"+query, func(t *testing.T) {
				got := runLooped(t, name, "--query", query)
				if len(got) != len(want) {
					t.Fatalf("%d utterances, want %d", len(got), len(want))
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

// TestRunLoopedSame: workers don't change a bit, and the report counts.
func TestRunLoopedSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := ""
	for workers := range longtest.Of(2, 4) {
		out := filepath.Join(dir, fmt.Sprint(workers))
		args := append([]string{"run", "--looped", "--json", fmt.Sprint("--workers=", workers), compute + "lstmp.raw", "ark:" + compute + "feats.ark", "ark:" + out}, loopedArgs["lstmp_20"][1:]...)
		r := nnopt(t, args...).ok(t)
		var j runReport
		if err := json.Unmarshal([]byte(r.stdout), &j); err != nil {
			t.Fatal(err)
		}
		if j.Utterances != 4 || j.Frames != 446 || j.Rows != 446 || j.Programs == 0 || j.BuildSeconds <= 0 || j.ComputeSeconds <= 0 || j.WorkspaceBytes <= 0 {
			t.Errorf("%s", r.stdout)
		}
		got := readFile(t, out)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%d workers: the output differs", workers)
		}
	}
}

// TestRunLoopedNumbers: a network whose output is known, at all lengths, with scale, exponential
// and subsampling.
func TestRunLoopedNumbers(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	model := smallModel(t, smallRun)
	in := "ark:" + file(t, "feats", smallFeatures)
	for _, frames := range []string{"1", "2", "50"} {
		if r := nnopt(t, "run", "--looped", "--frames-per-chunk="+frames, model, in, "ark,t:-").ok(t); r.stdout != smallOutput {
			t.Errorf("%q, want %q", r.stdout, smallOutput)
		}
	}
	r := nnopt(t, "run", "--looped", "--acoustic-scale=2", model, in, "ark,t:-").ok(t)
	if want := "a  [\n  0 0 \n  4 6 ]\nb  [\n  0 0 ]\nc  [\n  0 0 \n  2 -2 \n  -2 2 ]\n"; r.stdout != want {
		t.Errorf("%q, want %q", r.stdout, want)
	}
	r = nnopt(t, "run", "--looped", "--frame-subsampling-factor=2", model, in, "ark,t:-").ok(t)
	if want := "a  [\n  0 0 ]\nb  [\n  0 0 ]\nc  [\n  0 0 \n  -1 1 ]\n"; r.stdout != want {
		t.Errorf("%q, want %q", r.stdout, want)
	}
	r = nnopt(t, "run", "--looped", "--apply-exp", model, "ark:"+file(t, "f", "b  [\n  7 7 ]\n"), "ark,t:-").ok(t)
	if want := "b  [\n  1 1 ]\n"; r.stdout != want {
		t.Errorf("%q, want %q", r.stdout, want)
	}
	contains(t, nnopt(t, "run", "--looped", "--frame-subsampling-factor=5", model, in, "ark,t:-").ok(t).stderr, "25 frames instead of 24")
	priors := append([]string{"run", "--looped", "--use-priors", compute + "tdnnf.mdl", "ark:" + compute + "feats.ark", "ark:" + os.DevNull}, loopedArgs["tdnnf_online_30"][1:]...)
	contains(t, nnopt(t, priors...).ok(t).stderr, "4 utterances")
}

// TestRunLoopedFuture: a bidirectional LSTM is refused, and not run with its future cut. A finite future is cut aloud.
func TestRunLoopedFuture(t *testing.T) {
	t.Parallel()
	r := nnopt(t, "run", "--looped", compute+"blstm.raw", "ark:"+compute+"feats.ark", "ark:"+os.DevNull)
	r.fails(t, statusFault, `rows of node "b1.`, "all of the future", "without --looped it can be scored")
	r = nnopt(t, "export", "--looped", "--output="+filepath.Join(t.TempDir(), "x.onnx"), compute+"blstm.raw")
	r.fails(t, statusFault, "all of the future")

	// What is finite is cut as Kaldi cuts it, with a warning. Three frames to the next output are in the chunk.
	model := smallModel(t, "input-node name=input dim=2\noutput-node name=output input=Sum(input, IfDefined(Offset(input, 3)))\n")
	const warning = "warning: outputs use up to 3 frames of the future where they are there; the last ones of a chunk have "
	for _, c := range []struct {
		args   []string
		warned string
	}{
		{[]string{"--looped"}, warning + "0,"},
		{[]string{"--looped", "--frame-subsampling-factor=3"}, warning + "2,"},
		{[]string{"--looped", "--frame-subsampling-factor=4"}, ""},
		{nil, ""},
	} {
		run := nnopt(t, append([]string{"run", model, "ark:" + file(t, "feats", smallFeatures), "ark:" + os.DevNull}, c.args...)...)
		export := nnopt(t, append([]string{"export", "--output=" + filepath.Join(t.TempDir(), "x.onnx"), model}, c.args...)...)
		if c.args == nil {
			export = run
		}
		for _, r := range []result{run, export} {
			if found := strings.Contains(r.stderr, warning); found != (c.warned != "") || !strings.Contains(r.stderr, c.warned) {
				t.Errorf("%v: %s", c.args, r.stderr)
			}
		}
	}
}

// TestRunLoopedFaults: what can be scored is scored, and the rest is reported.
func TestRunLoopedFaults(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	model := smallModel(t, smallRun)
	withIvector := smallModel(t, "input-node name=input dim=2\ninput-node name=ivector dim=2\noutput-node name=output input=Sum(input, ReplaceIndex(ivector, t, 0))\n")
	features := file(t, "feats", smallFeatures)
	for _, c := range []struct {
		name   string
		args   []string
		status int
		keys   string // of the output
		wanted []string
	}{
		{"empty utterance", []string{model, "ark:" + file(t, "f", "x  [ ]\n"+smallFeatures)}, statusFault, "a b c", []string{"utterance x", "no frames", "1 failed"}},
		{"wrong dimension", []string{model, "ark:" + file(t, "f", "x  [\n  1 2 3 ]\n"+smallFeatures)}, statusFault, "a b c", []string{"utterance x", "3 columns", "wants 2"}},
		{"features that are not finite", []string{model, "ark:" + file(t, "f", "x  [\n  1 nan ]\n"+smallFeatures)}, statusOK, "x a b c", []string{"utterance x: warning", "1 of features that are not finite"}},
		{"i-vector that is missing", []string{withIvector, "ark:" + features, "--ivectors=ark:" + file(t, "i", "a  [ 1 1 ]\nc  [ 1 1 ]\n")}, statusFault, "a c", []string{"utterance b", "no i-vector"}},
		{"i-vector that is too long", []string{withIvector, "ark:" + features, "--ivectors=ark:" + file(t, "i", "a  [ 1 1 ]\nb  [ 1 1 1 ]\nc  [ 1 1 ]\n")}, statusFault, "a c", []string{"utterance b", "3 elements"}},
		{"online i-vectors that end", []string{withIvector, "ark:" + file(t, "f", "a  [\n"+strings.Repeat(" 1 1\n", 100)+"]\n"+smallFeatures[strings.Index(smallFeatures, "b"):]), "--online-ivector-period=10",
			"--online-ivectors=ark:" + file(t, "i", "a  [\n 1 1 ]\nb  [\n 1 1 ]\nc [\n 1 1 ]\n")}, statusFault, "b c", []string{"utterance a", "frame 99"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.ark")
			r := nnopt(t, append([]string{"run", "--looped", c.args[0], c.args[1], "ark:" + out}, c.args[2:]...)...)
			if r.status != c.status {
				t.Errorf("status %d", r.status)
			}
			contains(t, r.stderr, c.wanted...)
			if keys := keysOf(t, "ark:"+out); keys != c.keys {
				t.Errorf("the output has %q, want %q", keys, c.keys)
			}
		})
	}
	farBack := smallModel(t, `input-node name=input dim=2
component name=a type=NoOpComponent dim=2
component-node name=a component=a input=Sum(input, IfDefined(Offset(input, -20000)))
output-node name=output input=a
`)
	out := "ark:" + filepath.Join(t.TempDir(), "out.ark")
	for _, c := range []struct {
		args   []string
		status int
		wanted []string
	}{
		{[]string{farBack, "ark:" + features}, statusFault, []string{farBack, "endless dependencies", "without --looped"}},
		{[]string{model, "ark:" + features, "--extra-left-context=1"}, statusUsage, []string{"--extra-left-context", "--looped"}},
		{[]string{model, "ark:" + features, "--extra-right-context=1"}, statusUsage, []string{"--extra-right-context", "--looped"}},
		{[]string{model, "ark:" + features, "--extra-right-context-final=1"}, statusUsage, []string{"--extra-right-context-final", "--looped"}},
		{[]string{model, "ark:" + features, "--minibatch-size=1"}, statusUsage, []string{"--minibatch-size", "--looped"}},
		{[]string{model, "ark:" + features, "--compiler.cache-capacity=1"}, statusUsage, []string{"--compiler.cache-capacity", "--looped"}},
		{[]string{model, "ark:" + features, "--frames-per-chunk=2000000"}, statusUsage, []string{"frames-per-chunk"}},
		{[]string{compute + "lstmp.raw", "ark:" + compute + "feats.ark"}, statusUsage, []string{"--ivectors"}},
	} {
		nnopt(t, append([]string{"run", "--looped", c.args[0], c.args[1], out}, c.args[2:]...)...).fails(t, c.status, c.wanted...)
		if _, err := os.Stat(strings.TrimPrefix(out, "ark:")); err == nil {
			t.Errorf("%v: there is output", c.args)
		}
	}
}
