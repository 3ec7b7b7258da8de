package standard_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
	"github.com/nnopt/nnopt/tool"
)

func TestPasses(t *testing.T) {
	all := nnopt(t, "passes").ok(t).stdout
	for _, e := range passes.Default().Entries() {
		contains(t, all, e.Name, e.Doc)
	}
	selected := nnopt(t, "passes", "--query", "+fast_run -inplace").ok(t).stdout
	contains(t, selected, "canonicalize", "plan_storage")
	if strings.Contains(selected, "propagate_in_place") {
		t.Errorf("-inplace leaves propagate_in_place in:\n%s", selected)
	}
	var list []struct{ Name, Path, Why string }
	if err := json.Unmarshal([]byte(nnopt(t, "passes", "--json", "--query", "+fast_run").ok(t).stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 || list[0].Name != "merge1" || list[0].Why == "" {
		t.Errorf("passes --json: %+v", list)
	}
	if out := nnopt(t, "passes", "--json", "--query", "none").ok(t).stdout; strings.TrimSpace(out) != "[]" {
		t.Errorf("the query none selects %s", out)
	}
	contains(t, nnopt(t, "passes", "--explain", "propagate_in_place", "--query", "+fast_run -inplace").ok(t).stdout, "not selected", "inplace")
	contains(t, nnopt(t, "passes", "--explain", "propagate_in_place").ok(t).stdout, "fast_run")
}

// TestCompile: both computations are printed, and what is counted agrees with what is printed.
func TestCompile(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	both := nnopt(t, "compile", "--both", "--debug-info", config).ok(t)
	before := nnopt(t, "compile", "--before", config).ok(t)
	after := nnopt(t, "compile", config).ok(t)
	contains(t, both.stdout, "f.linear.Propagate(", "value of a_input[(0,")
	contains(t, both.stderr, "as compiled:", "optimized:")
	if lines := strings.Count(after.stdout, "\nc"); lines == 0 || lines >= strings.Count(before.stdout, "\nc") {
		t.Errorf("%d commands are left of %d", lines, strings.Count(before.stdout, "\nc"))
	}
	var report compileReport
	if err := json.Unmarshal([]byte(nnopt(t, "compile", "--json", config).ok(t).stdout), &report); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(after.stdout, "\nc"); report.Optimized.Commands != got {
		t.Errorf("%d commands are counted, %d printed", report.Optimized.Commands, got)
	}
	if report.Query != tool.DefaultQuery || report.Compiled.MaxMemoryBytes <= report.Optimized.MaxMemoryBytes {
		t.Errorf("compile --json: %+v", report)
	}
	contains(t, after.stderr, fmt.Sprintf("peak %d,%03d bytes", report.Optimized.MaxMemoryBytes/1000, report.Optimized.MaxMemoryBytes%1000))
}

// TestSwitches: Kaldi's switches leave passes out, as the query does.
func TestSwitches(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	counts := func(args ...string) computation.Counts {
		var report compileReport
		if err := json.Unmarshal([]byte(nnopt(t, append([]string{"compile", "--json", config}, args...)...).ok(t).stdout), &report); err != nil {
			t.Fatal(err)
		}
		return report.Optimized
	}
	bySwitch, byQuery, all := counts("--optimization.propagate-in-place=false"), counts("--query=+fast_run -propagate_in_place"), counts("--optimization.propagate-in-place")
	if fmt.Sprint(bySwitch) != fmt.Sprint(byQuery) {
		t.Errorf("the switch gives %+v, the query %+v", bySwitch, byQuery)
	}
	if bySwitch.MaxMemoryBytes+int64(bySwitch.Commands) <= all.MaxMemoryBytes+int64(all.Commands) {
		t.Errorf("without propagate_in_place %+v, with it %+v", bySwitch, all)
	}
	if none, off := counts("--query=none"), counts("--optimization.optimize=false"); fmt.Sprint(none) != fmt.Sprint(off) {
		t.Errorf("--query=none gives %+v, --optimization.optimize=false %+v", none, off)
	}
	// Limits to the times of derivatives are no part of what optimize=false turns off.
	const train, late = "--need-model-derivative", "--optimization.min-deriv-time=1000"
	if free, limited := counts(train), counts(train, late); limited.Commands >= free.Commands || limited.ByType["kBackprop"] >= free.ByType["kBackprop"] {
		t.Errorf("%s gives %+v, without it there are %+v", late, limited, free)
	}
	if free, limited := counts(train, "--query=none"), counts(train, late, "--optimization.optimize=false"); limited.ByType["kBackprop"] >= free.ByType["kBackprop"] {
		t.Errorf("%s without optimizer gives %+v, without it there are %+v", late, limited, free)
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	config := file(t, "net.config", smallConfig)
	contains(t, nnopt(t, "profile", "--run=2", config).ok(t).stdout,
		"Function profiling", "Optimizer Profile", "'canonicalize', 'EquilibriumOptimizer'", "Execution", "AcceptInput")
	contains(t, nnopt(t, "profile", "--run=2", "--threads=2", config).ok(t).stdout, "Execution", "AcceptInput")
	contains(t, nnopt(t, "profile", "--run=2", "--threads=2", "--vars=x: vector", "tanh(x)").ok(t).stdout, "Execution", "tanh(x)")
	nnopt(t, "profile", "--threads=2", config).fails(t, statusUsage, "--threads", "--run")
	f, err := profile.ReadJSON(strings.NewReader(nnopt(t, "profile", "--format=json", config).ok(t).stdout))
	if err != nil {
		t.Fatal(err)
	}
	if err := profiletest.Check(f.Optimizer); err != nil {
		t.Error(err)
	}
	if f.Optimizer.NodesAfter >= f.Optimizer.NodesBefore || f.LinkTime <= 0 || f.CompileTime < f.Optimizer.Time {
		t.Errorf("profile: %d nodes of %d, %v to link, %v to compile, of which %v to optimize", f.Optimizer.NodesAfter, f.Optimizer.NodesBefore, f.LinkTime, f.CompileTime, f.Optimizer.Time)
	}
	if r := pageOf(t, nnopt(t, "profile", "--format=html", config).ok(t).stdout); !slices.Contains(names(r), "canonicalize") {
		t.Errorf("the page has the passes %q", names(r))
	}
	var trace any
	if err := json.Unmarshal([]byte(nnopt(t, "profile", "--format=trace", config).ok(t).stdout), &trace); err != nil {
		t.Error(err)
	}
	out := filepath.Join(t.TempDir(), "profile.pb.gz")
	if r := nnopt(t, "profile", "--format=pprof", "--output", out, config).ok(t); r.stdout != "" {
		t.Errorf("data on standard output: %.100q", r.stdout)
	}
	if data, err := os.ReadFile(out); err != nil || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		t.Errorf("no compressed profile was written (%v)", err)
	}
	nnopt(t, "profile", "--format=pprof", "--query=none", "--output", out, config).fails(t, statusFault, "nothing was optimized")
	if data, err := os.ReadFile(out); err != nil || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		t.Errorf("a file that could not be written has taken the place of the old one (%v)", err)
	}
	saved := filepath.Join(t.TempDir(), "profile.json")
	nnopt(t, "profile", "--format=json", "--query=+fast_run -fusion", "--output", saved, config).ok(t)
	contains(t, nnopt(t, "profile", "--diff", saved, config).ok(t).stdout, "changed a changed b", "local_overwrite (only b)")
	once, err := profile.ReadJSON(strings.NewReader(nnopt(t, "profile", "--format=json", "--add", saved+","+saved, config).ok(t).stdout))
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := once.Optimizer.Counter("commands"); !ok || n <= 0 || once.Optimizer.Changed <= f.Optimizer.Changed {
		t.Errorf("three profiles added up: %g commands, %d changes, %d in one", n, once.Optimizer.Changed, f.Optimizer.Changed)
	}
	nnopt(t, "profile", "--diff", config, config).fails(t, statusFault, config+": profile: reading JSON")
	nnopt(t, "profile", "--diff", saved, "--query=none", config).fails(t, statusFault, "nothing was optimized")
	nnopt(t, "profile", "--output", filepath.Join(out, "x", "y"), config).fails(t, statusFault, "profile.pb.gz")
}

// fourCases are the reference cases of the families that the project began with.
var fourCases = []string{"tdnn_relu_batchnorm_infer", "tdnn_relu_renorm_infer", "tdnnf_infer", "tdnnf_noiv_infer"}

func caseDirs() []string {
	var dirs []string
	for _, name := range fourCases {
		dirs = append(dirs, filepath.Join(recipes, name))
	}
	return dirs
}

// TestVerify: Kaldi's numbers come out, with fewer commands and bytes than Kaldi's optimizer
// leaves.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"none", "+fast_run", "+fast_compile", "+fast_run -inplace", "+fast_run -propagate_in_place"} {
		t.Run(query, func(t *testing.T) {
			r := nnopt(t, append([]string{"verify", "--json", "--query", query}, caseDirs()...)...).ok(t)
			contains(t, r.stderr, "4 of 4 cases agree")
			var names []string
			for line := range strings.Lines(r.stdout) {
				var j struct {
					Case                string
					OK                  bool
					MaxRelDiff          float64  `json:"max_rel_diff"`
					Commands            int      `json:"commands"`
					KaldiCommands       int      `json:"kaldi_commands"`
					MaxMemoryBytes      int64    `json:"max_memory_bytes"`
					KaldiMaxMemoryBytes int64    `json:"kaldi_max_memory_bytes"`
					Matrices            int      `json:"matrices"`
					KaldiMatrices       int      `json:"kaldi_matrices"`
					CompileSeconds      float64  `json:"compile_seconds"`
					OptimizeSeconds     float64  `json:"optimize_seconds"`
					MaxRelDiffBackward  *float64 `json:"max_rel_diff_backward"`
				}
				if err := json.Unmarshal([]byte(line), &j); err != nil {
					t.Fatal(err)
				}
				names = append(names, j.Case)
				if !j.OK || j.MaxRelDiff <= 0 || j.MaxRelDiff > 1e-4 || j.CompileSeconds <= 0 || j.Matrices == 0 || j.KaldiMatrices == 0 || j.MaxRelDiffBackward != nil {
					t.Errorf("%s", line)
				}
				if query == "+fast_run" && (j.Commands > j.KaldiCommands || j.MaxMemoryBytes > j.KaldiMaxMemoryBytes || j.OptimizeSeconds <= 0) {
					t.Errorf("more than Kaldi needs: %s", line)
				}
			}
			if !slices.Equal(names, fourCases) {
				t.Errorf("cases %q", names)
			}
		})
	}
	contains(t, nnopt(t, "verify", caseDirs()[2]).ok(t).stdout, "ok    tdnnf_infer", "/118 ")
}

// TestVerifyFaults: a case that is wrong is reported, the others run, and the exit status tells.
func TestVerifyFaults(t *testing.T) {
	dir := t.TempDir()
	copyCase := func(name string) string {
		to := filepath.Join(dir, name)
		if err := os.CopyFS(to, os.DirFS(filepath.Join(recipes, "tdnnf_infer"))); err != nil {
			t.Fatal(err)
		}
		return to
	}
	change := func(path string, how func([]byte) []byte) {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, how(data), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyCase("a_good")
	change(filepath.Join(copyCase("b_numbers"), "output_output.mat"), func(b []byte) []byte { b[len(b)-2] ^= 0x40; return b })
	change(filepath.Join(copyCase("c_model"), "model.raw"), func(b []byte) []byte { return b[:len(b)/2] })
	change(filepath.Join(copyCase("d_request"), "case.json"), func(b []byte) []byte { return bytes.Replace(b, []byte("[0,-7,0],"), nil, 1) })
	if err := os.Remove(filepath.Join(copyCase("e_input"), "input_input.mat")); err != nil {
		t.Fatal(err)
	}
	nan := math.Float32bits(float32(math.NaN()))
	change(filepath.Join(copyCase("f_nan"), "input_input.mat"), func(b []byte) []byte {
		copy(b[len(b)-4*16*13:], []byte{byte(nan), byte(nan >> 8), byte(nan >> 16), byte(nan >> 24)})
		return b
	})
	r := nnopt(t, "verify", "--query=none", dir)
	if r.status != statusFault {
		t.Errorf("status %d", r.status)
	}
	contains(t, r.stderr, "1 of 6 cases agree")
	for _, w := range []struct{ name, text string }{
		{"a_good", ""}, {"b_numbers", "differs from Kaldi"}, {"c_model", "model.raw"}, {"d_request", "26×16"}, {"e_input", "input_input.mat"}, {"f_nan", "differs from Kaldi"},
	} {
		_, after, ok := strings.Cut(r.stdout, w.name)
		if !ok {
			t.Errorf("no line for %s:\n%s", w.name, r.stdout)
			continue
		}
		if head, _, _ := strings.Cut(after, "\nFAIL"); !strings.Contains(head, w.text) {
			t.Errorf("%s: %q is missing in %s", w.name, w.text, head)
		}
	}
	for line := range strings.Lines(nnopt(t, "verify", "--json", "--query=none", dir).stdout) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	nnopt(t, "verify", t.TempDir()).fails(t, statusFault, "no case.json")
	nnopt(t, "verify", "nowhere").fails(t, statusFault, "nowhere")
}

// TestVerifySpread: where Kaldi is farther from itself than the tolerance, twice that is the bound,
// and a line says so.
func TestVerifySpread(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "cases", "x")
	if err := os.CopyFS(to, os.DirFS(filepath.Join(recipes, "tdnnf_infer"))); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(to, "output_output.mat")
	data, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	// A bit of the last element is another one.
	data[len(data)-2] ^= 0x40
	if err := os.WriteFile(changed, data, 0o666); err != nil {
		t.Fatal(err)
	}
	const line = "outputs may differ by 6.0e-01, twice the spread of Kaldi's own results"
	for _, c := range []struct {
		folder, text string
		agree        bool
	}{
		{"", `{"y": {"forward": 0.3}}`, false},
		{"", `{"x": {"forward": 0.3}}`, true},
		{"cases", `{"x": {"forward": 1e-6}, "y": {"forward": 0.3}}`, false}, // the nearer file counts
		{"cases", `{"x": {"forward": 0, "backward": 0.3}}`, false},
		{"cases", `{"x": {"forward": -0.3}}`, false},
		{"cases", `{"x": 0.3}`, false},
	} {
		if err := os.WriteFile(filepath.Join(dir, c.folder, "kaldi_spread.json"), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		r := nnopt(t, "verify", "--query=none", to)
		if (r.status == statusOK) != c.agree || strings.Contains(r.stdout, line) != c.agree {
			t.Errorf("%s: status %d\n%s", c.text, r.status, r.stdout)
		}
	}
}

// TestDemo: the demonstration shows what it promises, and what it writes can be read.
func TestDemo(t *testing.T) {
	longtest.Only(t)
	dir := t.TempDir()
	html, svg := filepath.Join(dir, "profile.html"), filepath.Join(dir, "memory.svg")
	out := nnopt(t, "demo", "--profile", "--html", html, "--svg", svg).ok(t).stdout
	contains(t, out, "13 factored layers of 1024 units", "as compiled", "optimized", "commands", "matrices", "peak bytes", "run time",
		"Optimizer Profile", "difference", "Against Kaldi", "tdnnf_infer")
	page, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	if r := pageOf(t, string(page)); !slices.Contains(names(r), "plan_storage") || len(r.Steps) == 0 {
		t.Errorf("the page has %d steps, and the passes %q", len(r.Steps), names(r))
	}
	picture, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	if string(picture) != readFile(t, "../../docs/memory.svg") {
		t.Error("docs/memory.svg is another picture: nnopt demo --svg docs/memory.svg")
	}
}

// TestDemoPage: docs/demo.md shows what the demonstration prints, but for times and roundings.
func TestDemoPage(t *testing.T) {
	longtest.Only(t)
	measured := regexp.MustCompile(`(?m)^  (run time|difference|numbers) .*|[0-9.]+ (µs|ms|s)\b`)
	plain := func(text string) string {
		return regexp.MustCompile(` +`).ReplaceAllString(measured.ReplaceAllString(text, "…"), " ")
	}
	want := plain(nnopt(t, "demo").ok(t).stdout)
	if !strings.Contains(plain(readFile(t, "../../docs/demo.md")), "```\n"+want+"```\n") {
		t.Errorf("docs/demo.md does not show what nnopt demo prints:\n%s", want)
	}
}

// TestLiveBytes: the curve that is drawn has the peak that is counted.
func TestLiveBytes(t *testing.T) {
	c := computation.New()
	a, b := c.NewMatrix(2, 3, false), c.NewMatrix(4, 5, false)
	c.Commands = append(c.Commands,
		computation.NewCommand(computation.AcceptInput, a, 0), computation.NewCommand(computation.AllocMatrix, b),
		computation.NewCommand(computation.DeallocMatrix, a), computation.NewCommand(computation.DeallocMatrix, b),
	)
	if got, want := slices.Collect(c.LiveBytes()), []int64{24, 104, 80, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if most := slices.Max(slices.Collect(c.LiveBytes())); most != c.MaxMemory() {
		t.Errorf("peak %d, counted %d", most, c.MaxMemory())
	}
}
