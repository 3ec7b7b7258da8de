package exec_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestCallsKeepResults: what a call returns stays as it is while other calls use the same memory, one after the
// other or at a time.
func TestCallsKeepResults(t *testing.T) {
	opts := []exec.Optimizer{nil, passtest.Optimizer(t, "+fast_run")}
	for seed := range uint64(longtest.Of(40, 3000)) {
		gen := tensortest.NewGeneratorOf(seed, wide)
		gen.Motifs = motifs
		gen.Grow(30)
		inputs, args := gen.Inputs()
		outputs := gen.Outputs(4)
		if seed%3 > 0 {
			inputs, outputs = ofSizes(t, inputs, outputs, args)
		}
		f, err := exec.NewFunction(t.Context(), inputs, outputs, exec.FunctionOptions{Optimizer: opts[seed%2]})
		if err != nil {
			t.Fatal(err)
		}
		others := make([]*array.Array, len(args))
		for i, a := range args {
			others[i] = a.Clone()
			if a.DType().IsFloat() && !a.IsCSR() {
				for k := range a.Len() {
					others[i].SetFloat(k, a.Float(k)/2)
				}
			}
		}
		sets := [][]*array.Array{args, others}
		var want [][]*array.Array
		for _, set := range sets {
			list, err := f.NewRunner().Run(t.Context(), set...)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, list)
		}
		var kept [][]*array.Array
		for k := range 4 {
			got, err := f.Call(t.Context(), sets[k%2]...)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, got)
			if _, err := f.Call(t.Context()); len(inputs) > 0 && !errors.Is(err, exec.ErrArgument) {
				t.Fatalf("a call without arguments: %v", err)
			}
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				got, err := f.Call(t.Context(), sets[k%2]...)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for len(kept)%2 != k%2 {
					kept = append(kept, nil)
				}
				kept = append(kept, got)
			})
		}
		wg.Wait()
		for k, list := range kept {
			for i, a := range list {
				if !array.Equal(a, want[k%2][i]) {
					t.Fatalf("seed %d, call %d: %v is\n%v, want\n%v", seed, k, outputs[i], a, want[k%2][i])
				}
				for _, other := range kept[:k] {
					for _, b := range other {
						if a.Overlaps(b) {
							t.Fatalf("seed %d, call %d: %v is in memory of an earlier result", seed, k, outputs[i])
						}
					}
				}
			}
		}
	}
}
