package models

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/array"
)

var mutants = flag.Int("mutants", 0, "how many damaged models are read, optimized and written")

// TestHostileModels: whatever a file says, reading, optimizing and writing it ends soon, takes little
// memory, and does not panic; nor does lowering it for small inputs.
func TestHostileModels(t *testing.T) {
	files, _ := filepath.Glob("/usr/include/onnx/backend/test/data/*/*/model.onnx")
	if len(files) == 0 {
		t.Skip("there are no tests of ONNX")
	}
	n := 500
	if longtest.Enabled() {
		n = 5000
	}
	if *mutants > 0 {
		n = *mutants
	}
	q, err := optdb.ParseQuery("+fast_run")
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	read := 0
	for i := range n {
		file := files[rng.IntN(len(files))]
		data, err := os.ReadFile(file)
		if err != nil || len(data) > 1<<16 {
			continue
		}
		mutate(rng, data)
		start := time.Now()
		if err := pipeline(t.Context(), data, opt); err == nil {
			read++
		} else if errors.Is(err, errBroken) {
			t.Errorf("mutant %d of %s: %v", i, file, err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("mutant %d of %s takes %v", i, file, d)
		}
	}
	t.Logf("%d of %d are models", read, n)
}

// mutate changes some bytes, or small numbers, which lengths and sizes are.
func mutate(rng *rand.Rand, data []byte) {
	for range 1 + rng.IntN(4) {
		at := rng.IntN(len(data))
		switch rng.IntN(4) {
		case 0:
			data[at] = byte(rng.Uint32())
		case 1:
			data[at] ^= 1 << rng.IntN(8)
		case 2:
			data[at] += byte(rng.IntN(5)) - 2
		default:
			copy(data[at:], []byte{0xff, 0xff, 0xff, 0xff, 0x7f}[:1+rng.IntN(5)])
		}
	}
}

var errBroken = errors.New("broken")

// pipeline reads, optimizes, writes and lowers a model.
func pipeline(ctx context.Context, data []byte, opt *optdb.Optimizer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(errBroken, errors.New(string(debug.Stack())))
		}
	}()
	m, err := onnx.Parse(data)
	if err != nil {
		return err
	}
	if err := onnx.Check(m); err != nil {
		return err
	}
	g, err := ir.Import(m, ir.Options{Dir: ".", Evaluator: lower.Evaluator{}})
	if err != nil {
		return err
	}
	if err := opt.Rewrite(ctx, g, nil); err != nil {
		return errors.Join(errBroken, err)
	}
	out, err := ir.Export(g)
	if err != nil {
		return errors.Join(errBroken, err)
	}
	var b bytes.Buffer
	if err := out.Write(io.MultiWriter(&b)); err != nil {
		return errors.Join(errBroken, err)
	}
	again, err := onnx.Parse(b.Bytes())
	if err != nil {
		return errors.Join(errBroken, err)
	}
	if g, err = ir.Import(again, ir.Options{Dir: "."}); err != nil {
		return errors.Join(errBroken, err)
	}
	values, _, err := draw(g, 1, [2]int{1, 4}, nil)
	if err != nil {
		return nil
	}
	args, total := make(map[string]*array.Array), 0
	for i, v := range values {
		if err := give(args, again.Graph.Inputs[i].Name, ir.TypeOf(g.Inputs()[i]), v); err != nil {
			return errors.Join(errBroken, err)
		}
	}
	for _, a := range args {
		total += a.Len()
	}
	if total < 1<<20 {
		_, _ = session.Model(ctx, again, session.Options{Dir: "."}, args) // what can't be computed is refused
	}
	return nil
}

// FuzzModel reads, optimizes, writes and lowers what the fuzzer makes of models.
func FuzzModel(f *testing.F) {
	files, _ := filepath.Glob("/usr/include/onnx/backend/test/data/simple/*/model.onnx")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) < 1<<12 {
			f.Add(data)
		}
	}
	q, err := optdb.ParseQuery("+fast_run")
	if err != nil {
		f.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := pipeline(t.Context(), data, opt); errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
}
