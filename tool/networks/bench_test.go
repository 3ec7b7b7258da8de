package networks_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/networks/internal/brief"
)

// result is what a call of a program leaves behind.
type result struct {
	status         int
	stdout, stderr string
}

// nnopt calls a program that has networks.
func nnopt(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cfg := tool.Config{Database: tool.Always(passes.Default), Dialects: []*tool.Dialect{networks.Dialect(networks.Options{})}}
	status := cfg.Run(t.Context(), args, nil, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// ok fails the test unless the program succeeded.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.status != 0 {
		t.Fatalf("status %d\nstderr: %s", r.status, r.stderr)
	}
	return r
}

// contains fails the test unless all of the texts are in s.
func contains(t *testing.T, s string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(s, w) {
			t.Errorf("%q is missing in:\n%.2000s", w, s)
		}
	}
}

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

// A benchReport is what bench nnet3 --json prints.
type benchReport struct {
	runFigures
	Unoptimized           runFigures
	CompileSeconds        float64  `json:"compile_seconds"`
	RunSecondsUnoptimized *float64 `json:"run_seconds_unoptimized"`
}

type runFigures struct {
	Commands         int
	MaxMemoryBytes   int64 `json:"max_memory_bytes"`
	Operations       int64
	RunSeconds       *float64 `json:"run_seconds"`
	RunSecondsMedian *float64 `json:"run_seconds_median"`
	GFlops           float64
	RenewSeconds     float64 `json:"renew_seconds"`
	Runs             int
	ByType           []struct {
		Share      float64
		Operations int64
	} `json:"by_type"`
}

func TestBench(t *testing.T) {
	brief.Always.Store(true)
	defer brief.Always.Store(false)
	config := filepath.Join(t.TempDir(), "net.config")
	if err := os.WriteFile(config, []byte(smallConfig), 0o666); err != nil {
		t.Fatal(err)
	}
	var r benchReport
	out := nnopt(t, "bench", "nnet3", "--json", "--count-only", "--model", config).ok(t).stdout
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Commands == 0 || r.Commands >= r.Unoptimized.Commands || r.MaxMemoryBytes == 0 || r.CompileSeconds <= 0 || r.RunSeconds != nil {
		t.Errorf("bench --count-only: %s", out)
	}
	out = nnopt(t, "bench", "nnet3", "--json", "--model", config, "--need-model-derivative").ok(t).stdout
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.RunSeconds == nil || r.RunSecondsUnoptimized == nil || *r.RunSeconds <= 0 || r.Runs != 2 {
		t.Errorf("bench: %s", out)
	}
	if *r.RunSecondsMedian < *r.RunSeconds || r.RenewSeconds <= 0 || r.Operations == 0 || r.Operations != r.Unoptimized.Operations || r.GFlops <= 0 {
		t.Errorf("bench: %s", out)
	}
	var share float64
	var operations int64
	for _, f := range r.ByType {
		share, operations = share+f.Share, operations+f.Operations
	}
	if share < 0.999 || share > 1.001 || operations != r.Operations {
		t.Errorf("bench: the types have %g of the time and %d of %d operations", share, operations, r.Operations)
	}
	contains(t, nnopt(t, "bench", "nnet3", "--model", config).ok(t).stdout, "as compiled", "+fast_run", "peak bytes", "GFLOP/s", "type, as optimized", "AcceptInput")
}
