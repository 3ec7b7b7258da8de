package decodable_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/passes/passtest"
)

// recipeConfig is a TDNN-F of the size in recipes.
const recipeConfig = "../../tool/networks/demo/tdnnf.config"

// BenchmarkRun reads compressed features, scores them and writes the output. It reports frames per
// second, and the percentage of the workers' time outside of computations.
func BenchmarkRun(b *testing.B) {
	const utterances, frames = 16, 600
	nn, _, err := pipeline.Load(recipeConfig, 1)
	if err != nil {
		b.Fatal(err)
	}
	s, err := decodable.New(nn, decodable.Options{FramesPerChunk: 150, FrameSubsampling: 3, Optimizer: passtest.Optimizer(b, "+fast_run")})
	if err != nil {
		b.Fatal(err)
	}
	var features, ivectors bytes.Buffer
	o := &kaldiio.Opener{Stdout: &features}
	w, err := kaldiio.NewTableWriter(o, "ark:-", func(w *kaldiio.Writer, m kaldiio.Matrix) { w.CompressedMatrix(m, kaldiio.CompressAuto) })
	if err != nil {
		b.Fatal(err)
	}
	for i := range utterances {
		m := random(frames+i, nn.InputNodeDim("input"), uint64(i))
		if err := w.Write(fmt.Sprint("u", i), kaldiio.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&ivectors, "u%d  [ ", i)
		for range s.IvectorDim() {
			ivectors.WriteString("0.5 ")
		}
		ivectors.WriteString("]\n")
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("utterances=%d/workers=%d", utterances, workers), func(b *testing.B) {
			var total decodable.Summary
			for b.Loop() {
				sum := runArchive(b, s, features.Bytes(), ivectors.Bytes(), workers)
				total.Frames += sum.Frames
				total.Busy += sum.Busy
				total.Elapsed += sum.Elapsed
			}
			b.ReportMetric(float64(total.Frames)/total.Elapsed.Seconds(), "frames/s")
			b.ReportMetric(100*(1-total.Busy.Seconds()/float64(workers)/total.Elapsed.Seconds()), "%outside")
		})
	}
}

// runArchive scores an archive of features with an archive of i-vectors.
func runArchive(b *testing.B, s *decodable.Scorer, features, ivectors []byte, workers int) decodable.Summary {
	tables, err := decodable.OpenTables(&kaldiio.Opener{Stdin: bytes.NewReader(features)}, decodable.TableNames{Features: "ark:-"})
	if err != nil {
		b.Fatal(err)
	}
	lookup, err := kaldiio.NewTableLookup(&kaldiio.Opener{Stdin: bytes.NewReader(ivectors)}, "ark:-", kaldiio.VectorHolder())
	if err != nil {
		b.Fatal(err)
	}
	out, err := kaldiio.NewTableWriter(&kaldiio.Opener{Stdout: io.Discard}, "ark:-", (*kaldiio.Writer).Matrix)
	if err != nil {
		b.Fatal(err)
	}
	sum, err := s.Run(context.Background(), func(yield func(decodable.Utterance, error) bool) {
		for u, err := range tables.Utterances() {
			if err == nil {
				u.Ivector, _, err = lookup.Lookup(u.Key)
			}
			if !yield(u, err) {
				return
			}
		}
	}, func(u decodable.Utterance, m kernel.Matrix) error {
		return out.Write(u.Key, kaldiio.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data})
	}, decodable.RunOptions{Workers: workers, Failed: func(key string, err error) { b.Errorf("%s: %v", key, err) }})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}
