package session_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestDecoders: small language models as three exporters write them, with weights of 32 and of 4 bits, have the logits
// of ONNX Runtime 1.30 (without its optimizer) after a prompt of 8 tokens and in 32 steps, the caches being carried.
// Token i is (7i + 3) modulo the number of words.
func TestDecoders(t *testing.T) {
	models, err := filepath.Glob("testdata/decoders/*.onnx")
	if err != nil || len(models) == 0 {
		t.Fatal(models, err)
	}
	for _, file := range models[:longtest.Of(1, len(models))] {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".onnx"), func(t *testing.T) {
			m, err := onnx.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			data, err := os.ReadFile(strings.TrimSuffix(file, "onnx") + "logits")
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{"none", "fast_run"} {
				s := session.New(m, session.Options{Options: lower.Options{AnySizes: true}, Optimizer: build(t, query)})
				r, err := s.NewStateful()
				if err != nil {
					t.Fatal(err)
				}
				const prompt, steps = 8, 32
				words := len(data) / 4 / (1 + steps)
				ids := make([]int64, prompt)
				for step := range 1 + steps {
					for i := range ids {
						ids[i] = int64((7*(r.Positions()+i) + 3) % words)
					}
					out, err := r.Run(t.Context(), map[string]*array.Array{"input_ids": array.Of(ids, 1, len(ids))})
					if err != nil {
						t.Fatalf("%s: step %d: %v", query, step, err)
					}
					logits, off, norm := out["logits"], 0.0, 0.0
					for i := range words {
						want := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*(step*words+i):])))
						d := logits.Float(logits.Len()-words+i) - want
						off, norm = off+float64(d*d), norm+float64(want*want)
					}
					if rel := math.Sqrt(off / norm); !(rel < 1e-5) {
						t.Fatalf("%s: step %d: the logits differ by %.2g of their norm", query, step, rel)
					}
					ids = ids[:1]
				}
			}
		})
	}
}
