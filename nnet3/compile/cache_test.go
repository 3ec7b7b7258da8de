package compile

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation"
)

func TestCompiler(t *testing.T) {
	var optimized atomic.Int32
	c, err := NewCompiler(parse(t, spliced...), CompilerOptions{Capacity: 2,
		Optimize: func(c *computation.Computation, _ *computation.Request) (*computation.Computation, error) {
			optimized.Add(1)
			return c, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	request := func(n int32) *computation.Request {
		return ask(rowsOf{"input": at(1, -1, n)}, rowsOf{"output": at(1, 0, n)})
	}
	compile := func(n int32) *computation.Computation {
		t.Helper()
		comp, err := c.Compile(request(n))
		if err != nil {
			t.Fatal(err)
		}
		return comp
	}
	first := compile(1)
	if compile(1) != first {
		t.Error("the same request gave another computation")
	}
	compile(2)
	compile(1) // so that 2 is the older one
	compile(3)
	if compile(1) != first {
		t.Error("the request that was asked for last was dropped")
	}
	if got, want := c.Stats(), (CacheStats{Hits: 3, Misses: 3, Evicted: 1, Kept: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if optimized.Load() != 3 {
		t.Errorf("optimized %d times", optimized.Load())
	}
	if _, err := c.Compile(ask(nil, rowsOf{"output": at(1, 0, 1)})); !errors.Is(err, ErrNotComputable) {
		t.Error(err)
	}
	if c.Stats().Kept > 2 {
		t.Errorf("kept a failure: %+v", c.Stats())
	}
}

// TestCompilerKeepsItsOwnRequest checks that a caller may change a request afterwards.
func TestCompilerKeepsItsOwnRequest(t *testing.T) {
	c, err := NewCompiler(parse(t, spliced...), CompilerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	req := ask(rowsOf{"input": at(1, -1, 2)}, rowsOf{"output": at(1, 0, 2)})
	first, err := c.Compile(req)
	if err != nil {
		t.Fatal(err)
	}
	for i := range req.Inputs[0].Indexes {
		req.Inputs[0].Indexes[i].T += 5
	}
	for i := range req.Outputs[0].Indexes {
		req.Outputs[0].Indexes[i].T += 5
	}
	if second, err := c.Compile(req); err != nil || second == first {
		t.Errorf("%v, same %v", err, second == first)
	}
}

func TestCompilerConcurrent(t *testing.T) {
	c, err := NewCompiler(parse(t, recurrent...), CompilerOptions{Capacity: 3})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				n := int32((g+i)%5 + 1)
				comp, err := c.Compile(ask(rowsOf{"input": at(1, 0, n)}, rowsOf{"output": at(1, 0, n)}))
				if err != nil || comp.Matrices[1].Rows != n {
					t.Errorf("%d rows: %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Hits+s.Misses != 400 || s.Kept > 3 {
		t.Errorf("%+v", s)
	}
}

func TestCompilerOptimizeFails(t *testing.T) {
	broken := errors.New("broken")
	c, err := NewCompiler(parse(t, spliced...), CompilerOptions{
		Optimize: func(*computation.Computation, *computation.Request) (*computation.Computation, error) {
			return nil, broken
		}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Compile(ask(rowsOf{"input": at(1, -1, 2)}, rowsOf{"output": at(1, 0, 2)})); !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	if s := c.Stats(); s.Kept != 0 || s.Misses != 2 {
		t.Errorf("%+v", s)
	}
}
