package backend_test

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
	"github.com/nnopt/nnopt/tool/models/internal/backend/internal/onnxtest"
)

var (
	folder    = flag.String("folder", "", "write random cases to this folder, for tool/models/internal/backend/internal/onnxtest/testdata/answer.js")
	from      = flag.Uint64("from", 0, "the first seed of random cases")
	number    = flag.Uint64("number", 1000, "how many random cases are written")
	functions = flag.Bool("functions", false, "write models with functions and with names that are used again")
)

// TestWriteRandom writes random cases to a folder.
func TestWriteRandom(t *testing.T) {
	if *folder == "" {
		t.Skip("without -folder")
	}
	for seed := *from; seed < *from+*number; seed++ {
		c := onnxtest.Draw(seed)
		if *functions {
			c = onnxtest.DrawFunctions(seed)
		}
		if err := c.Write(t.Context(), filepath.Join(*folder, c.Name)); err != nil {
			t.Fatal(err)
		}
	}
}

func optimizer(t *testing.T, query string) *optdb.Optimizer {
	t.Helper()
	return passtest.ForModels(t, query)
}

// TestRandom: random models compute the same numbers optimized, also written again, as they do as they are.
func TestRandom(t *testing.T) {
	queries := []string{"fast_run", "debug"}
	optimizers := []*optdb.Optimizer{optimizer(t, queries[0]), optimizer(t, queries[1])}
	for seed := range uint64(longtest.Of(200, 2000)) {
		drawn := onnxtest.Draw(1<<32 + seed)
		c := answered(t, drawn, drawn.Model)
		for i, query := range queries {
			if r := c.Run(t.Context(), query, session.Options{Optimizer: optimizers[i]}); !r.OK {
				t.Errorf("%s under %s: %v", c.Name, query, r.Err)
			}
		}
	}
}

// answered returns a case whose outputs are what a model computes of the inputs as it is.
func answered(t *testing.T, drawn *onnxtest.Case, m *onnx.Model) *backend.Case {
	t.Helper()
	c := &backend.Case{Name: drawn.Name, Model: drawn.Model}
	plain := session.New(m, session.Options{})
	for k, list := range drawn.Sets {
		s := backend.Set{Name: string(rune('0' + k)), Inputs: make(map[string]*array.Array)}
		for _, x := range list {
			a, err := lower.ArrayOf(x, "")
			if err != nil {
				t.Fatal(err)
			}
			s.Inputs[x.Name] = a
		}
		f, out, err := plain.Run(t.Context(), s.Inputs)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			break
		}
		for _, o := range f.Outputs() {
			s.Outputs = append(s.Outputs, backend.Output{Name: o.Name, Elem: o.Elem, Value: out[o.Name].Clone()})
		}
		c.Sets = append(c.Sets, s)
	}
	return c
}

// TestHostileRandom: random models, also with functions, of which bytes are damaged make no panic, and end soon.
func TestHostileRandom(t *testing.T) {
	n := uint64(longtest.Of(300, 5000))
	damaged(t, n, onnxtest.Draw)
	damaged(t, n/3, onnxtest.DrawFunctions)
}

func damaged(t *testing.T, n uint64, draw func(seed uint64) *onnxtest.Case) {
	t.Helper()
	opt := optimizer(t, "fast_run")
	rng := rand.New(rand.NewPCG(11, 12))
	read := 0
	for seed := range n {
		c := draw(1<<33 + seed)
		var b bytes.Buffer
		if err := c.Model.Write(&b); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		for range 1 + rng.IntN(4) {
			switch at := rng.IntN(len(data)); rng.IntN(3) {
			case 0:
				data[at] = byte(rng.Uint32())
			case 1:
				data[at] ^= 1 << rng.IntN(8)
			default:
				data[at] += byte(rng.IntN(5)) - 2
			}
		}
		start := time.Now()
		// Loops of functions hold each other: damaged, one may have any number of rounds. Then it ends with the context.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if hostile(ctx, t, c, data, opt) {
			read++
		}
		cancel()
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s takes %v", c.Name, took)
		}
	}
	t.Logf("%d are models", read)
}

// hostile reads, optimizes, writes and runs a model, as long as the context allows, and reports whether it is one.
func hostile(ctx context.Context, t *testing.T, c *onnxtest.Case, data []byte, opt *optdb.Optimizer) bool {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v\n%s", c.Name, p, debug.Stack())
		}
	}()
	m, err := onnx.Parse(data)
	if err != nil {
		return false
	}
	if g, err := ir.Import(m, ir.Options{Evaluator: lower.Evaluator{}}); err == nil {
		if err := opt.Rewrite(ctx, g, nil); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if _, err := ir.Export(g); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	run := session.New(m, session.Options{Options: lower.Options{LeaveOut: true}, Optimizer: opt, MaxBytes: 1 << 28})
	for _, list := range c.Sets {
		in := make(map[string]*array.Array)
		for _, x := range list {
			if in[x.Name], err = lower.ArrayOf(x, ""); err != nil {
				t.Fatal(err)
			}
		}
		_, _, _ = run.Run(ctx, in) // what can't be computed is refused
	}
	return true
}
