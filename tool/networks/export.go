package networks

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func (o *Options) exportVerb() tool.Verb {
	return tool.Verb{
		Name:     "export",
		Before:   "version",
		Args:     "MODEL",
		Synopsis: "write the optimized computation of a network as an ONNX model",
		Detail: `
MODEL is a Kaldi nnet3 model (raw or .mdl, binary or text) or a file of config lines, "-" standard input. The request says which rows
are given and wanted, as for compile, but for one sequence: the model takes any number of them. Its inputs and outputs have the names of
the nodes and the sizes sequences×rows×columns. Batch normalization and dropout are in test mode. Metadata say which rows there are.

With --looped there is a model for each of the first chunks and one for all others, which take what the one before left: the inputs
state.0, state.1 and so on are its outputs next.0, next.1. --output=OUT.onnx writes the model for the first chunk to OUT.1.onnx.

What can't be said in ONNX is listed, with nodes and components, before anything is written.`,
		Examples: `
$0 export --output=chunk.onnx --frames-per-chunk=150 --frame-subsampling-factor=3 final.mdl
$0 export --output=stream.onnx --looped --frames-per-chunk=21 --frame-subsampling-factor=3 final.mdl`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			f := &exportFlags{networkFlags: &networkFlags{Options: o, passes: tool.DeclareSelection(cfg, fs), watch: tool.DeclareWatch(fs)}}
			f.declareChunk(fs)
			fs.StringVar(&f.output, "output", "", "File to write, which is needed")
			fs.BoolVar(&f.looped, "looped", false, "Write models for a stream, each chunk going on where the one before ended, with chunks of 24 frames unless --frames-per-chunk says otherwise")
			fs.IntVar(&f.initial, "extra-left-context-initial", 0, "With --looped, frames before the first one beyond those that the network needs")
			return tool.Taking(1, 1, "MODEL", func(ctx context.Context, c *tool.Console, args []string) error { return f.run(ctx, c, args[0]) })
		},
	}
}

type exportFlags struct {
	*networkFlags
	output  string
	looped  bool
	initial int
}

// maxLooped bounds the frames of a chunk of a stream.
const maxLooped = 1 << 20

func (f *exportFlags) run(ctx context.Context, c *tool.Console, model string) error {
	switch {
	case f.output == "":
		return tool.Usagef("--output=FILE.onnx is needed")
	case f.output == "-":
		return tool.Usagef("--output: a model is written to a file, not to standard output")
	case tool.SameFile(model, f.output):
		return tool.Usagef("%s is an input and would be overwritten", model)
	}
	if f.looped {
		// One after the other, so that of several the error names the same one each time.
		for _, frames := range []struct {
			flag string
			n    int
		}{{"frames-per-chunk", f.chunk.Frames}, {"frame-subsampling-factor", f.chunk.Subsampling}, {"extra-left-context-initial", f.initial}} {
			if frames.n < 0 || frames.n > maxLooped {
				return tool.Usagef("--%s=%d: want a number between 0 and %d", frames.flag, frames.n, maxLooped)
			}
		}
	}
	if err := cmp.Or(
		c.InVainIf(f.looped, "with --looped, which knows --frames-per-chunk, --frame-subsampling-factor and --extra-left-context-initial",
			"request", "extra-left-context", "extra-right-context", "outputs"),
		c.InVainIf(!f.looped, "without --looped", "extra-left-context-initial"),
	); err != nil {
		return err
	}
	_, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return err
	}
	watched, told := f.watch.Start(ctx, c, opt)
	names, models, err := f.models(watched, c, model, opt)
	if err != nil {
		return f.failed(ctx, c, err, model, f.watch.Budget(), f.passes.Added())
	}
	if err := told(); err != nil {
		return err
	}
	for i, m := range models {
		if err := m.WriteFile(ctx, names[i]); err != nil {
			return err
		}
		c.Say("wrote %s: %s", names[i], describe(m, f.looped))
	}
	return nil
}

// models returns the models, and the files that they go to.
func (f *exportFlags) models(ctx context.Context, c *tool.Console, model string, opt *optdb.Optimizer) ([]string, []*onnx.Model, error) {
	if !f.looped {
		nn, req, err := f.load(c, model)
		if err != nil {
			return nil, nil, err
		}
		nn.SetTestMode(true)
		if !f.fromConfig {
			warnOfStats(c, model, nn)
		}
		if req.NeedDerivatives() {
			c.Say("the derivatives that the request asks for are left out")
		}
		m, err := pipeline.Export(ctx, nn, req, opt)
		return []string{f.output}, []*onnx.Model{m}, err
	}
	nn, fromConfig, err := f.network(c, model, f.seed)
	if err != nil {
		return nil, nil, err
	}
	if err := c.InVainIf(!fromConfig, ownParameters, "srand"); err != nil {
		return nil, nil, err
	}
	nn.SetTestMode(true)
	if !fromConfig {
		warnOfStats(c, model, nn)
	}
	models, err := f.loop(ctx, c, nn, opt)
	if err != nil {
		return nil, nil, err
	}
	warnOfFuture(c, model, nn, f.chunk.Subsampling)
	names := make([]string, len(models))
	ext := filepath.Ext(f.output)
	for i := range models {
		names[i] = fmt.Sprintf("%s.%d%s", strings.TrimSuffix(f.output, ext), i+1, ext)
		if i+1 == len(models) {
			names[i] = f.output
		}
		if tool.SameFile(model, names[i]) {
			return nil, nil, tool.Usagef("%s is an input and would be overwritten", model)
		}
	}
	return names, models, nil
}

// loop returns the models for a stream.
func (f *exportFlags) loop(ctx context.Context, c *tool.Console, nn *nnet3.Nnet, opt *optdb.Optimizer) ([]*onnx.Model, error) {
	if c.InVain("", "frames-per-chunk") == nil {
		f.chunk.Frames = loopedChunk
	}
	left, right, err := compile.Context(nn)
	if err != nil {
		return nil, err
	}
	chunk := compile.ChunkSize(nn, f.chunk.Subsampling, f.chunk.Frames)
	if nn, err = compile.WithIvectorPeriod(nn, chunk); err != nil {
		return nil, err
	}
	requests, err := compile.LoopedRequests(nn, compile.LoopedConfig{
		FramesPerChunk: chunk, FrameSubsampling: f.chunk.Subsampling, LeftContext: left + f.initial, RightContext: right})
	if err != nil {
		return nil, err
	}
	models, start, err := pipeline.ExportLoop(ctx, nn, requests, opt)
	if err == nil && start != len(models)-1 {
		c.Say("chunk %d is followed by chunk %d, and so on", len(models), start+1)
	}
	return models, err
}

// describe returns the inputs and outputs of a model with their sizes. States are only counted.
func describe(m *onnx.Model, looped bool) string {
	list := func(infos []*onnx.ValueInfo, state string) string {
		var parts []string
		states := 0
		for _, v := range infos {
			if looped && strings.HasPrefix(v.Name, state) {
				states++
				continue
			}
			parts = append(parts, v.Name+" "+v.Type.String())
		}
		if states > 0 {
			parts = append(parts, fmt.Sprintf("%d states", states))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s -> %s, %s nodes", list(m.Graph.Inputs, "state."), list(m.Graph.Outputs, "next."), display.Thousands(len(m.Graph.Nodes)))
}
