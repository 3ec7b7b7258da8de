package networks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool/networks/internal/brief"
)

// compileTimes are a line of bench compile.
type compileTimes struct {
	Case            string
	UnitSeconds     float64 `json:"unit_seconds"`
	NoShortcut      float64 `json:"no_shortcut"`
	Shortcut        float64
	Optimized       float64 `json:"shortcut_optimized"`
	KaldiNoShortcut float64 `json:"kaldi_no_shortcut"`
	KaldiShortcut   float64 `json:"kaldi_shortcut"`
	KaldiOptimized  float64 `json:"kaldi_shortcut_optimized"`
}

func TestBenchCompile(t *testing.T) {
	brief.Always.Store(true)
	t.Cleanup(func() { brief.Always.Store(false) })
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("small.config", "input-node name=input dim=4\noutput-node name=output input=Append(Offset(input, -1), input)\n", 0o666)
	const request = `{"config": "small.config", "request": {"n": 2, "output_t": [0, 9, 1], "input_t": [-1, 9], "need_model_derivative": false, "outputs": ["output"]}`
	file := write("requests.json", `{"b": `+request+`}, "a": `+request+`,
		"kaldi_seconds_one_core": {"compile_s": 4, "optimize_s": 1, "shortcut_compile_optimize_s": 3}, "same_run_openblas_sgemm_1024_seconds": 2}}`, 0o666)
	unit := write("unit", "#!/bin/sh\necho 0.5\n", 0o777)

	lines := strings.Split(strings.TrimSpace(nnopt(t, "bench", "compile", "--request", file, "--unit", unit, "--json").ok(t).stdout), "\n")
	var a, b compileTimes
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &a) != nil || json.Unmarshal([]byte(lines[1]), &b) != nil {
		t.Fatalf("%q", lines)
	}
	if a.Case != "a" || a.UnitSeconds != 0.5 || a.Shortcut <= 0 || a.NoShortcut <= 0 || a.Optimized <= a.Shortcut ||
		a.KaldiNoShortcut != 2 || a.KaldiShortcut != 1 || a.KaldiOptimized != 1.5 || b.Case != "b" || b.KaldiShortcut != 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
	contains(t, nnopt(t, "bench", "compile", "--request", file).ok(t).stdout, "| `a` |", "| 4000.000 |", "| `b` |", "| - | - |")
	for _, bad := range [][]string{
		{"bench", "compile"},
		{"bench", "compile", "--request", filepath.Join(dir, "none")},
		{"bench", "compile", "--request", write("bad.json", `{"a": {"config": "small.config"}}`, 0o666)},
		{"bench", "compile", "--request", file, "--unit", write("broken", "#!/bin/sh\necho x\n", 0o777)},
	} {
		if r := nnopt(t, bad...); r.status == 0 || r.stderr == "" {
			t.Errorf("%v: status %d, %q", bad, r.status, r.stderr)
		}
	}
}
