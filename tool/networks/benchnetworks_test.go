package networks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool/networks/internal/brief"
)

// networkTimes are a line of bench nnet3 --request.
type networkTimes struct {
	Case                  string
	RunSecondsUnoptimized float64 `json:"run_seconds_unoptimized"`
	RunSeconds            float64 `json:"run_seconds"`
	RenewSeconds          float64 `json:"renew_seconds"`
	Operations            int64
	GFlops                float64
	Units                 float64
	KaldiUnits            float64 `json:"kaldi_units"`
}

func TestBenchNetworks(t *testing.T) {
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
	write("small.config", `input-node name=input dim=4
component name=a type=NaturalGradientAffineComponent input-dim=8 output-dim=5
component-node name=a component=a input=Append(Offset(input, -1), input)
output-node name=output input=a
`, 0o666)
	member := func(train, more string) string {
		return `{"config": "small.config", "request": {"n": 2, "output_t": [0, 9, 1], "input_t": [-1, 9], "need_model_derivative": ` +
			train + `, "outputs": ["output"]}` + more + `}`
	}
	file := write("requests.json", `{"run": `+member("false", "")+`, "train": `+
		member("true", `, "kaldi_seconds_one_core": {"run_opt_s": 3}, "same_run_openblas_sgemm_1024_seconds": 2`)+`}`, 0o666)
	unit := write("unit", "#!/bin/sh\necho 0.5\n", 0o777)

	lines := strings.Split(strings.TrimSpace(nnopt(t, "bench", "nnet3", "--request", file, "--unit", unit, "--json").ok(t).stdout), "\n")
	var run, train networkTimes
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &run) != nil || json.Unmarshal([]byte(lines[1]), &train) != nil {
		t.Fatalf("%q", lines)
	}
	// 18 rows of 8 columns times 8×5, forward; training needs as much for the parameters, and the
	// derivative of the input is not wanted.
	if run.Case != "run" || run.Operations != 2*18*8*5 || run.RunSeconds <= 0 || run.RunSecondsUnoptimized <= 0 || run.GFlops <= 0 ||
		run.Units != run.RunSeconds/0.5 || run.KaldiUnits != 0 || run.RenewSeconds != 0 {
		t.Errorf("%+v", run)
	}
	if train.Case != "train" || train.Operations != 2*run.Operations || train.RenewSeconds <= 0 || train.RenewSeconds >= train.RunSeconds || train.KaldiUnits != 1.5 {
		t.Errorf("%+v", train)
	}
	table := nnopt(t, "bench", "nnet3", "--request", file).ok(t).stdout
	contains(t, table, "| request |", "| `run` |", "| `train` |", "| - | 1.500 | - |")
	if r := nnopt(t, "bench", "nnet3", "--request", filepath.Join(dir, "none")); r.status != 1 || !strings.Contains(r.stderr, "none") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	if r := nnopt(t, "bench", "nnet3", "--request", file, "--unit", write("broken", "#!/bin/sh\necho x\n", 0o777)); r.status != 1 || !strings.Contains(r.stderr, "broken") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
}
