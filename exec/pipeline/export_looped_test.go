package pipeline_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
)

const compute = "../../nnet3/testdata/compute/"

// A loopedRun is what one of Kaldi's looped runs was made with.
type loopedRun struct {
	name, model, ivectors    string
	period                   int // frames per row of online i-vectors, 0 for a vector an utterance
	chunk, subsampling, left int
}

// A stream is an utterance with Kaldi's scores.
type stream struct{ frames, ivectors, want kernel.Matrix }

// TestExportedLoop exports loops, runs all utterances side by side, chunk by chunk, and compares with
// Kaldi's numbers.
func TestExportedLoop(t *testing.T) {
	for i, r := range []loopedRun{
		{"lstmp_20", "lstmp.raw", "ivec.txt", 0, 20, 1, 0},
		{"lstmp_7_left3", "lstmp.raw", "ivec.txt", 0, 7, 1, 3},
		{"tdnnf_online_30", "tdnnf.mdl", "online_ivec.txt", 10, 30, 3, 0},
		{"tdnnf_ivec_21", "tdnnf.mdl", "ivec.txt", 0, 21, 3, 5},
	} {
		for _, query := range []string{"none", "+fast_run", "none"}[i%2:][:longtest.Of(1, 2)] {
			t.Run(r.name+"/"+query, func(t *testing.T) { r.run(t, query) })
		}
	}
}

func (r loopedRun) run(t *testing.T, query string) {
	nn, _, err := pipeline.Load(compute+r.model, 0)
	if err != nil {
		t.Fatal(err)
	}
	nn.SetTestMode(true)
	models, start, frames, left := r.export(t, nn, query)
	streams := r.streams(t)
	got := make([]kernel.Matrix, len(streams))
	state := make(map[string]*array.Array)
	right := frames - r.chunk - left
	for k, phase := 0, 0; k*r.chunk < streams[longest(streams)].frames.Rows; k++ {
		begin, end := k*r.chunk+right, (k+1)*r.chunk+right
		if k == 0 {
			begin = -left
		}
		inputs := r.inputs(models[phase], streams, begin, end)
		for name, a := range state {
			inputs["state."+name[len("next."):]] = a
		}
		f, err := session.Model(t.Context(), models[phase], session.Options{}, inputs)
		if err != nil {
			t.Fatalf("chunk %d: %v", k, err)
		}
		outputs, err := f.Call(t.Context(), inputs)
		if err != nil {
			t.Fatalf("chunk %d: %v", k, err)
		}
		y := outputs["output"]
		delete(outputs, "output")
		state = outputs
		for s := range streams {
			m := streams[s].want
			all := array.Slice[float32](y.Clone())
			all = all[s*y.Dim(1)*m.Cols:][:y.Dim(1)*m.Cols]
			got[s].Data = append(got[s].Data, all...)
		}
		if *write != "" && query != "none" {
			r.write(t, k, models, inputs, streams)
		}
		if phase++; phase == len(models) {
			phase = start
		}
	}
	for s, u := range streams {
		ours := kernel.Matrix{Rows: u.want.Rows, Cols: u.want.Cols, Stride: u.want.Cols, Data: got[s].Data[:u.want.Rows*u.want.Cols]}
		d, err := pipeline.Compare(ours, u.want)
		if err != nil || !d.Agrees(1e-4) {
			t.Errorf("utterance %d differs by %g, %v", s, d.Relative(), err)
		}
	}
}

// export returns the models, the one that follows the last, and the frames of the first chunk with those
// before its output.
func (r loopedRun) export(t *testing.T, nn *nnet3.Nnet, query string) (models []*onnx.Model, start, frames, left int) {
	left, right, err := compile.Context(nn)
	if err != nil {
		t.Fatal(err)
	}
	left += r.left
	if nn, err = compile.WithIvectorPeriod(nn, r.chunk); err != nil {
		t.Fatal(err)
	}
	requests, err := compile.LoopedRequests(nn, compile.LoopedConfig{FramesPerChunk: r.chunk, FrameSubsampling: r.subsampling, LeftContext: left, RightContext: right})
	if err != nil {
		t.Fatal(err)
	}
	models, start, err = pipeline.ExportLoop(t.Context(), nn, requests, passtest.Optimizer(t, query))
	if err != nil {
		t.Fatal(err)
	}
	for k, m := range models {
		if err := onnx.Check(m); err != nil {
			t.Fatalf("chunk %d: %v", k+1, err)
		}
	}
	return models, start, left + r.chunk + right, left
}

// inputs returns frames [begin, end) of all streams, and their i-vectors. Beyond the ends of a stream
// its first or last frame is repeated, as Kaldi does it.
func (r loopedRun) inputs(m *onnx.Model, streams []stream, begin, end int) map[string]*array.Array {
	inputs := make(map[string]*array.Array)
	for _, in := range m.Graph.Inputs {
		rows, cols := int(*in.Type.Tensor.Shape.Dims[1].Value), int(*in.Type.Tensor.Shape.Dims[2].Value)
		var data []float32
		for _, s := range streams {
			for i := range rows {
				switch in.Name {
				case "input":
					data = append(data, kernel.Row(s.frames, min(max(begin+i, 0), s.frames.Rows-1))...)
				case "ivector":
					row := 0
					if r.period > 0 {
						row = min(end/r.period, (s.frames.Rows-1)/r.period, s.ivectors.Rows-1)
					}
					data = append(data, kernel.Row(s.ivectors, row)...)
				}
			}
		}
		if data != nil {
			inputs[in.Name] = array.Of(data, len(streams), rows, cols)
		}
	}
	return inputs
}

func longest(streams []stream) (most int) {
	for s, u := range streams {
		if u.frames.Rows > streams[most].frames.Rows {
			most = s
		}
	}
	return most
}

// streams reads the utterances.
func (r loopedRun) streams(t *testing.T) []stream {
	frames, want := readMatrices(t, "feats.ark"), readMatrices(t, "looped/"+r.name+".txt")
	var ivectors []kernel.Matrix
	if r.period > 0 {
		ivectors = readMatrices(t, r.ivectors)
	} else {
		ivectors = readTable(t, "ark:"+compute+r.ivectors, kaldiio.VectorHolder(), func(v []float32) kernel.Matrix {
			return kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
		})
	}
	streams := make([]stream, len(frames))
	for i := range streams {
		streams[i] = stream{frames[i], ivectors[i], want[i]}
	}
	return streams
}

// readTable reads matrices, or vectors as matrices of a row.
func readTable[T any](t *testing.T, rspecifier string, h kaldiio.Holder[T], matrix func(T) kernel.Matrix) (list []kernel.Matrix) {
	t.Helper()
	r, err := kaldiio.NewTableReader(new(kaldiio.Opener), rspecifier, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.All() {
		list = append(list, matrix(v))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return list
}

func readMatrices(t *testing.T, file string) []kernel.Matrix {
	return readTable(t, "ark:"+compute+file, kaldiio.MatrixHolder(), func(m kaldiio.Matrix) kernel.Matrix {
		return kernel.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}
	})
}

// write writes the models, and the frames of a chunk with Kaldi's rows of it, NaN where a stream has
// ended.
func (r loopedRun) write(t *testing.T, k int, models []*onnx.Model, inputs map[string]*array.Array, streams []stream) {
	dir := filepath.Join(*write, "looped_"+r.name)
	set := filepath.Join(dir, fmt.Sprintf("test_data_set_%d", k))
	if err := os.MkdirAll(set, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, m := range models {
		name := fmt.Sprintf("model.%d.onnx", i+1)
		if i+1 == len(models) {
			name = "model.onnx"
		}
		if err := m.WriteFile(t.Context(), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	rows := r.chunk / r.subsampling
	var want []float32
	for _, s := range streams {
		for row := k * rows; row < (k+1)*rows; row++ {
			if row < s.want.Rows {
				want = append(want, kernel.Row(s.want, row)...)
			} else {
				want = append(want, slices.Repeat([]float32{float32(math.NaN())}, s.want.Cols)...)
			}
		}
	}
	files := map[string]*array.Array{"output_0.pb output": array.Of(want, len(streams), rows, streams[0].want.Cols)}
	for i, name := range []string{"input", "ivector"} {
		if a := inputs[name]; a != nil {
			files[fmt.Sprintf("input_%d.pb %s", i, name)] = a
		}
	}
	for file, a := range files {
		file, name, _ := strings.Cut(file, " ")
		if err := writeArray(filepath.Join(set, file), name, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "tolerance"), []byte("1e-4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}
