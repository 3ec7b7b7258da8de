package nnet3pass_test

import (
	"context"
	"flag"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestOptimizeOptionsProperty: whatever is off, the numbers are the same.
func TestOptimizeOptionsProperty(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := drawNetwork(t)
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil {
			t.Fatal(err)
		}
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: rapid.IntRange(1, 8).Draw(t, "frames"), Derivative: true,
			Sequences: rapid.IntRange(1, 3).Draw(t, "sequences")})
		if err != nil {
			t.Skip(err)
		}
		req.Input("input").HasDeriv = rapid.Bool().Draw(t, "input derivative")
		c, err := compile.Compile(nn, req, compile.Options{})
		if err != nil {
			t.Skip(err)
		}
		var args []string
		for _, s := range [...]string{"consolidate-model-update", "propagate-in-place", "backprop-in-place", "optimize-row-ops", "split-row-ops",
			"extend-matrices", "convert-addition", "remove-assignments", "allow-left-merge", "allow-right-merge", "initialize-undefined",
			"move-sizing-commands", "allocate-from-other", "snip-row-ops", "memory-compression-level"} {
			if rapid.IntRange(0, 3).Draw(t, s) == 0 {
				args = append(args, "--"+s+"=0")
			}
		}
		mode := rapid.SampledFrom([]string{"fast_run", "fast_compile"}).Draw(t, "mode")
		options := passes.DefaultOptimizeOptions()
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		options.Register(flags, "")
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		opt, err := passes.Default().Build(options.Query(optdb.Include(mode)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := passes.Optimize(context.Background(), c, nn, opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := computation.Check(got, computation.NewNetworkInfo(nn, got.Derived), computation.CheckOptions{AllowUnused: true}); err != nil {
			t.Fatal(err)
		}
		compareResults(t, strings.Join(args, " "), results(t, nn, got, req), results(t, nn, c, req), 1e-4)
	})
}
