package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/internal/export"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/rewrite"
)

// Export returns the computation that answers a request as an ONNX model, for any number of sequences
// (see export.UnitOf). opt may be nil. The error is of type export.Faults if ONNX can't say all of it,
// and a FailedError if the optimizer failed.
func Export(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, opt *optdb.Optimizer) (*onnx.Model, error) {
	unit, err := export.UnitOf(req)
	if err != nil {
		return nil, err
	}
	p := &Plan{Net: nn, Request: unit.Request}
	if p.Compiled, err = compile.CompileContext(ctx, nn, unit.Request, compile.Options{DebugInfo: opt != nil && passes.NeedsDebugInfo(opt)}); err != nil {
		return nil, err
	}
	values, err := lower.Lower(p.Compiled, nn)
	if err != nil {
		return nil, err
	}
	if opt != nil {
		if err := opt.Rewrite(ctx, values.Graph, nil); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, p.failed(opt, rewrite.Culprit{}, err)
		}
	}
	return export.Model(values, nn, exportOptions(nn, unit.Request))
}

// ExportLoop returns the computations of a loop (see BuildLoop) for one sequence each, as models for any
// number of them, and which one follows the last. Inputs state.0, state.1 and so on are what a chunk
// takes over, and outputs next.0, next.1 are what becomes of them for the chunk that follows.
func ExportLoop(ctx context.Context, nn *nnet3.Nnet, requests [3]*computation.Request, opt *optdb.Optimizer) (models []*onnx.Model, start int, err error) {
	l, err := divideLoop(nn, requests)
	if err != nil {
		return nil, 0, err
	}
	// A fault is one of the network, and would be that of each chunk.
	for k := range l.Chunks {
		chunk := &l.Chunks[k]
		if opt != nil {
			if err := opt.Rewrite(ctx, chunk.program.Graph, nil); err != nil {
				return nil, 0, fmt.Errorf("chunk %d: optimizing: %w", k+1, err)
			}
		}
		o := exportOptions(nn, chunk.Request)
		o.Port = func(p lower.Port, output bool) string { return chunk.portName(l.Net.Nodes[p.Node].Name, output) }
		next := k + 1
		if next == len(l.Chunks) {
			next = l.Start
		}
		o.Metadata = append(o.Metadata, entry("chunk", strconv.Itoa(k+1)), entry("next_chunk", strconv.Itoa(next+1)))
		for i, t := range chunk.Taken {
			rows := lists.Map(t.Rows, func(r index.Cindex) index.Index { return r.Index })
			name := stateName(i)
			o.Metadata = append(o.Metadata, entry("node."+name, nn.Nodes[t.Rows[0].Node].Name), entry("rows."+name, rowsText(rows)))
		}
		m, err := export.Model(chunk.program, nn, o)
		if err != nil {
			return nil, 0, err
		}
		// States come last and in the order of their numbers, in which a program that runs the chunks hands
		// them on.
		order := func(v *onnx.ValueInfo) int { return stateNumber(v.Name) }
		slices.SortStableFunc(m.Graph.Inputs, func(a, b *onnx.ValueInfo) int { return order(a) - order(b) })
		slices.SortStableFunc(m.Graph.Outputs, func(a, b *onnx.ValueInfo) int { return order(a) - order(b) })
		models = append(models, m)
	}
	return models, l.Start, nil
}

// stateNumber returns the number of a state by the name of its input or output, -1 for anything else.
// The inputs and outputs of a network that can be looped have other names.
func stateNumber(name string) int {
	for _, prefix := range []string{"state.", "next."} {
		if digits, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				return n
			}
		}
	}
	return -1
}

// stateName is the name of the input for what a chunk takes.
func stateName(i int) string { return "state." + strconv.Itoa(i) }

// portName returns the name of an input or output of the chunk, for that of its node.
func (c *LoopChunk) portName(node string, output bool) string {
	if output {
		if i := slices.Index(c.Given, node); i >= 0 {
			return "next." + strconv.Itoa(i)
		}
	} else if i := slices.IndexFunc(c.Taken, func(t LoopCarry) bool { return t.Node == node }); i >= 0 {
		return stateName(i)
	}
	return node
}

// exportOptions describes a request in the metadata of a model.
func exportOptions(nn *nnet3.Nnet, req *computation.Request) export.Options {
	o := export.Options{Name: "nnet3", Producer: "nnopt"}
	names := lists.Map(req.Outputs, func(out computation.IoSpecification) string { return out.Name })
	// Not every network has a context: some need all of the future.
	if left, right, err := compile.Context(nn, names...); err == nil {
		o.Metadata = append(o.Metadata, entry("left_context", strconv.Itoa(left)), entry("right_context", strconv.Itoa(right)))
	}
	if frames, step := chunkOf(req.Outputs[0].Indexes); step > 0 {
		o.Metadata = append(o.Metadata, entry("frames_per_chunk", strconv.Itoa(frames)), entry("frame_subsampling_factor", strconv.Itoa(step)))
	}
	for _, spec := range slices.Concat(req.Inputs, req.Outputs) {
		o.Metadata = append(o.Metadata, entry("rows."+spec.Name, rowsText(spec.Indexes)))
	}
	return o
}

func entry(key, value string) *onnx.Entry { return &onnx.Entry{Key: "nnet3." + key, Value: value} }

// chunkOf returns the frames that rows are for, and how many each is for. It returns a step of 0 if
// they are not those of a chunk.
func chunkOf(rows []index.Index) (frames, step int) {
	step = 1
	if len(rows) > 1 {
		step = int(rows[1].T - rows[0].T)
	}
	for i, x := range rows {
		if x.N != 0 || x.X != 0 || i > 0 && int(x.T-rows[i-1].T) != step {
			return 0, 0
		}
	}
	return len(rows) * step, max(step, 0)
}

// rowsText returns rows in the form of index.AppendRuns: their times, or n, t and x if they are not all
// of one sequence with x = 0.
func rowsText(rows []index.Index) string {
	times := !slices.ContainsFunc(rows, func(x index.Index) bool { return x.N != 0 || x.X != 0 })
	if times {
		return string(index.AppendRuns(nil, 1, len(rows), func(i, _ int) int32 { return rows[i].T }))
	}
	return string(index.AppendRuns(nil, 3, len(rows), func(i, j int) int32 {
		return [3]int32{rows[i].N, rows[i].T, rows[i].X}[j]
	}))
}
