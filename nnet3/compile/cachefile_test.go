package compile

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

func newCompiler(t testing.TB, nn *nnet3.Nnet, opts CompilerOptions) *Compiler {
	t.Helper()
	c, err := NewCompiler(nn, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func savedCache(t testing.TB, c *Compiler, binary bool) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := kaldiio.NewWriter(&buf, binary)
	w.Header()
	if err := c.WriteCache(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func readCache(c *Compiler, data []byte) (int, error) {
	r, err := kaldiio.NewReader(bytes.NewReader(data), "cache")
	if err != nil {
		return 0, err
	}
	return c.ReadCache(r)
}

// chunk asks for n frames of a network with an input and an output.
func chunk(n int32) *computation.Request {
	return ask(rowsOf{"input": at(1, -1, n)}, rowsOf{"output": at(1, 0, n)})
}

// TestCacheRoundTrip saves the computations of the reference cases and reads them into another
// Compiler. That compiles nothing and has the same computations and precomputed indexes.
func TestCacheRoundTrip(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g := readGolden(t, dir)
			c := newCompiler(t, g.nn, CompilerOptions{})
			want, err := c.Compile(g.req)
			if err != nil {
				t.Fatal(err)
			}
			for _, binary := range []bool{true, false} {
				data := savedCache(t, c, binary)
				fresh := newCompiler(t, g.nn, CompilerOptions{})
				if n, err := readCache(fresh, data); err != nil || n != 1 {
					t.Fatalf("%d requests, %v", n, err)
				}
				got, err := fresh.Compile(g.req)
				if err != nil {
					t.Fatal(err)
				}
				if s := fresh.Stats(); s.Misses != 0 || s.Hits != 1 {
					t.Errorf("compiled again: %+v", s)
				}
				if !reflect.DeepEqual(want, got) { // which is much quicker, and tells empty from absent
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
						t.Errorf("binary %v:\n%s", binary, diff)
					}
				}
				if !bytes.Equal(savedCache(t, fresh, binary), data) {
					t.Errorf("binary %v: saved again it differs", binary)
				}
			}
		})
	}
}

// TestCacheKeepsTheRecent checks that a small cache reads the end of a large file, in the order of
// use, and keeps what it has.
func TestCacheKeepsTheRecent(t *testing.T) {
	nn := parse(t, spliced...)
	large := newCompiler(t, nn, CompilerOptions{})
	for _, n := range []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 2} {
		if _, err := large.Compile(chunk(n)); err != nil {
			t.Fatal(err)
		}
	}
	small := newCompiler(t, nn, CompilerOptions{Capacity: 2})
	own, err := small.Compile(chunk(2))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := readCache(small, savedCache(t, large, true)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if again, err := small.Compile(chunk(2)); again != own || err != nil {
		t.Errorf("what was there is replaced: %v", err)
	}
	if _, err := small.Compile(chunk(9)); err != nil {
		t.Fatal(err)
	}
	if s := small.Stats(); s.Misses != 1 || s.Kept != 2 {
		t.Errorf("%+v", s)
	}
}

// TestCacheWithDerivedComponents checks that computations that can't be written are compiled when
// the file is read.
func TestCacheWithDerivedComponents(t *testing.T) {
	nn := parse(t, spliced...)
	optimized := 0
	opts := CompilerOptions{OptimizeName: "fuse", Optimize: func(c *computation.Computation, _ *computation.Request) (*computation.Computation, error) {
		optimized++
		c.Derived = append(c.Derived, component.Copy(nn.Components[0]))
		return c, nil
	}}
	c := newCompiler(t, nn, opts)
	if _, err := c.Compile(chunk(3)); err != nil {
		t.Fatal(err)
	}
	fresh := newCompiler(t, nn, opts)
	if n, err := readCache(fresh, savedCache(t, c, true)); n != 1 || err != nil || optimized != 2 {
		t.Fatal(n, err, optimized)
	}
	if comp, err := fresh.Compile(chunk(3)); err != nil || len(comp.Derived) != 1 || fresh.Stats().Hits != 1 {
		t.Error(err, fresh.Stats())
	}
}

// TestStaleCache checks that a file is refused for another network or other options, but not for
// other parameters.
func TestStaleCache(t *testing.T) {
	const net = `input-node name=input dim=2
component name=a type=AffineComponent input-dim=4 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input)
component name=t type=TdnnComponent input-dim=3 output-dim=7 time-offsets=-1,0
component-node name=t component=t input=a
component name=r type=RestrictedAttentionComponent key-dim=1 value-dim=1 num-left-inputs=2 num-right-inputs=1 num-left-inputs-required=1 time-stride=1
component-node name=r component=r input=t
output-node name=output input=r`
	with := func(old, new string) *nnet3.Nnet {
		text := strings.Replace(net, old, new, 1)
		if text == net && old != "" {
			t.Fatalf("%q is not in the network", old)
		}
		return parse(t, text)
	}
	req := ask(rowsOf{"input": at(1, -5, 9)}, rowsOf{"output": at(1, 0, 3)})
	c := newCompiler(t, with("", ""), CompilerOptions{})
	if _, err := c.Compile(req); err != nil {
		t.Fatal(err)
	}
	data := savedCache(t, c, true)
	optimize := func(c *computation.Computation, _ *computation.Request) (*computation.Computation, error) {
		return c, nil
	}
	other := with("", "")
	other.Components[0] = component.NewGradient(other.Components[0])
	for _, k := range []struct {
		name string
		nn   *nnet3.Nnet
		opts CompilerOptions
		want string // of the error
	}{
		{"the same", with("", ""), CompilerOptions{}, ""},
		{"other limits", with("", ""), CompilerOptions{Options: Options{MaxCindexes: 99}, Capacity: 3}, ""},
		{"other parameters", other, CompilerOptions{}, ""},
		{"another descriptor", with("Offset(input, -1)", "Offset(input, -2)"), CompilerOptions{}, "another network"},
		{"other time offsets", with("time-offsets=-1,0", "time-offsets=-2,0"), CompilerOptions{}, "another network"},
		{"other requirements", with("-required=1", "-required=2"), CompilerOptions{}, "another network"},
		{"another type", with("AffineComponent", "NaturalGradientAffineComponent"), CompilerOptions{}, "another network"},
		{"nothing to learn", with("output-dim=3", "output-dim=3 learning-rate=0"), CompilerOptions{}, "another network"},
		{"debug information", with("", ""), CompilerOptions{Options: Options{DebugInfo: true}}, "other options"},
		{"an optimizer", with("", ""), CompilerOptions{Optimize: optimize}, "other options"},
	} {
		n, err := readCache(newCompiler(t, k.nn, k.opts), data)
		if k.want == "" {
			if n != 1 || err != nil {
				t.Errorf("%s: %d, %v", k.name, n, err)
			}
			continue
		}
		if n != 0 || !errors.Is(err, ErrStaleCache) || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %d, %v", k.name, n, err)
		}
	}
}

// TestBrokenCache truncates a file at every byte and flips its bits. The result is an error that
// says where, or computations that pass the checker. An error leaves the Compiler unchanged.
func TestBrokenCache(t *testing.T) {
	nn := parse(t, spliced...)
	c := newCompiler(t, nn, CompilerOptions{})
	for n := range int32(2) {
		if _, err := c.Compile(chunk(n + 1)); err != nil {
			t.Fatal(err)
		}
	}
	data := savedCache(t, c, true)
	try := func(what string, i int, data []byte, cut bool) {
		fresh := newCompiler(t, nn, CompilerOptions{})
		n, err := readCache(fresh, data)
		if e := (*kaldiio.Error)(nil); err != nil && !errors.As(err, &e) && !errors.Is(err, ErrStaleCache) && !errors.Is(err, computation.ErrStructure) {
			t.Fatalf("%s at byte %d: %v doesn't say where", what, i, err)
		}
		if err == nil && cut || err != nil && (n != 0 || fresh.Stats().Kept != 0) {
			t.Fatalf("%s at byte %d: %d requests, %v", what, i, n, err)
		}
	}
	for i := range len(data) - 1 {
		try("cut", i, data[:i], true)
		data[i] ^= 1 << (i % 8)
		try("flipped", i, data, false)
		data[i] ^= 1 << (i % 8)
	}
}

// FuzzReadCache reads any bytes as a saved cache. The result is computations that pass the checker,
// or an error that says where, with memory in proportion to the input. Requests without a
// computation are small here.
func FuzzReadCache(f *testing.F) {
	nn := parse(f, spliced...)
	opts := CompilerOptions{Options: Options{MaxCindexes: 1 << 13}}
	c := newCompiler(f, nn, opts)
	for n := range int32(2) {
		if _, err := c.Compile(chunk(n + 1)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(savedCache(f, c, true))
	f.Add(savedCache(f, c, false))
	f.Add(bytes.Replace(savedCache(f, c, false), []byte("<HasComputation> T"), []byte("<HasComputation> F"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		fresh := newCompiler(t, nn, opts)
		allocated := alloctest.Start()
		n, err := readCache(fresh, data)
		if used := allocated(); used > alloctest.Bound(len(data)) {
			t.Errorf("%d bytes were allocated for %d", used, len(data))
		}
		var e *kaldiio.Error
		if err != nil && !errors.As(err, &e) && !errors.Is(err, ErrStaleCache) && !errors.Is(err, computation.ErrStructure) &&
			!errors.Is(err, ErrNotComputable) && !errors.Is(err, ErrUnbounded) {
			t.Fatalf("%v doesn't say where", err)
		}
		if n > 0 && fresh.Stats().Kept == 0 {
			t.Errorf("%d requests came in, and none is kept", n)
		}
	})
}

// TestCacheConcurrent saves and reads a cache while other goroutines compile.
func TestCacheConcurrent(t *testing.T) {
	nn := parse(t, recurrent...)
	c := newCompiler(t, nn, CompilerOptions{Capacity: 4})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				n := int32((g+i)%6 + 1)
				if _, err := c.Compile(ask(rowsOf{"input": at(1, 0, n)}, rowsOf{"output": at(1, 0, n)})); err != nil {
					t.Error(err)
				}
				if _, err := readCache(c, savedCache(t, c, true)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Kept > 4 {
		t.Errorf("%+v", s)
	}
}
