package session_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// resident returns how many kB of a mapped file are in memory.
func resident(t *testing.T, file string) (kB int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	found := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if n := 0; found && strings.HasPrefix(line, "Rss:") {
			if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err != nil {
				t.Fatal(err)
			}
			kB += n
		}
		if fields := strings.Fields(line); len(fields) > 0 && strings.Contains(fields[0], "-") {
			found = strings.HasSuffix(line, file)
		}
	}
	return kB
}

// TestForgetConvolution: weights of convolutions are packed where they are in the file, which is then not in memory.
func TestForgetConvolution(t *testing.T) {
	w := array.New(array.Float32, 256, 64, 3, 3)
	for i, s := 0, array.Slice[float32](w); i < len(s); i++ {
		s[i] = float32(i%7) - 3
	}
	weights, err := lower.TensorOf("w", w, onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	m := model([]string{"x"}, []string{"y"}, node("Conv", "x w", "y"))
	m.Graph.Initializers = append(m.Graph.Initializers, weights)
	in := map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, 64, 5, 5)}
	var want []*array.Array
	for _, query := range []string{"none", "fast_run"} {
		f, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, query)}, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.Call(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, out["y"])
	}
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.WriteFile(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if m, err = onnx.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, out, err := session.New(m, session.Options{Optimizer: build(t, "fast_run")}).Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range want {
		if !array.Equal(out["y"], y) {
			t.Error("another result")
		}
	}
	if kB := resident(t, file); kB > w.Bytes()/1024/4 {
		t.Errorf("%d kB of the file are in memory", kB)
	}
}

// TestForget: weights that products have prepared are not in memory a second time, at whatever place of the file they
// are, and are read again if another function needs them.
func TestForget(t *testing.T) {
	for pad := range 4 {
		const rows, cols = 512, 1024
		w := array.New(array.Float32, rows, cols)
		for i, s := 0, array.Slice[float32](w); i < len(s); i++ {
			s[i] = float32(i%7) - 3
		}
		m := model([]string{"x"}, []string{"y"}, node("MatMul", "x w", "y"))
		weights, err := lower.TensorOf("w", w, onnx.Float)
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.Initializers = append(m.Graph.Initializers, weights)
		m.ProducerName = strings.Repeat("p", 1+pad)
		file := filepath.Join(t.TempDir(), "model.onnx")
		if err := m.WriteFile(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		if m, err = onnx.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			in := map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, rows)}
			f, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, "fast_run")}, in)
			if err != nil {
				t.Fatal(err)
			}
			r := f.NewRunner()
			for range 2 {
				out, err := r.Run(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for j := range cols {
					want := 0.0
					for i := range rows {
						want += w.Float(i*cols + j)
					}
					if got := out["y"].Float(j); got != want {
						t.Fatalf("column %d is %v, not %v", j, got, want)
					}
				}
				if kB := resident(t, file); kB > rows*cols*4/1024/4 {
					t.Errorf("%d kB of the file are in memory", kB)
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if err := m.Forget(nil); err == nil {
			t.Error("no error after Close")
		}
	}
}
