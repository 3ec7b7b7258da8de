package onnx_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
)

// hostile returns models that ask for much: subgraphs, sequences of types and functions nested as deep
// as they are read, large dimensions, and messages that are merged of many.
func hostile(t testing.TB) [][]byte {
	var list [][]byte
	add := func(m *onnx.Model) { list = append(list, written(t, m)) }
	add(sample())

	m := plain()
	g := m.Graph
	for range 30 {
		inner := &onnx.Graph{Name: "b", Nodes: []*onnx.Node{node("Relu", "x", "z")}, Outputs: []*onnx.ValueInfo{value("z")}}
		g.Nodes = append(g.Nodes, node("If", "x", "z2", branch("then_branch", inner)))
		g = inner
	}
	add(m)

	m = plain()
	typ := m.Graph.Inputs[0].Type
	for range 40 {
		typ = &onnx.Type{Sequence: &onnx.ElementType{Elem: typ}}
	}
	m.Graph.Inputs[0].Type = typ
	add(m)

	m = plain()
	m.Functions = []*onnx.Function{function("F", call("G", "a", "b")), function("G", call("H", "a", "b"), call("F", "a", "c")), function("H", call("H", "a", "b"))}
	add(m)

	m = plain()
	m.Graph.Initializers = append(m.Graph.Initializers, &onnx.Tensor{Name: "h", DataType: onnx.Float, Dims: []int64{1 << 62, 1 << 62, 0}}, external("e", "w.bin", 1<<40, 1<<50), external("f", "../w.bin", -1, 1))
	add(m)

	part := field(7, join(field(2, "g"), field(1, join(field(4, "Neg"), field(1, "x"), field(2, "y")))))
	return append(list, bytes.Repeat(part, 100), bytes.Repeat([]byte("\xfb\x07"), 5000)) // which begins groups
}

// mutate changes a few bytes.
func mutate(r *rand.Rand, data []byte) []byte {
	mutant := bytes.Clone(data)
	for range 1 + r.IntN(3) {
		if len(mutant) == 0 {
			break
		}
		switch i := r.IntN(len(mutant)); r.IntN(20) {
		case 0:
			mutant = mutant[:i]
		case 1:
			mutant = append(mutant[:i:i], mutant[min(i+r.IntN(20), len(mutant)):]...)
		case 2:
			j := min(i+r.IntN(40), len(mutant))
			mutant = append(mutant[:j:j], mutant[i:]...)
		case 3, 4, 5, 6: // a number or length that is nearly right
			mutant[i] += byte(1 - 2*r.IntN(2))
		default:
			mutant[i] = byte(r.Uint32())
		}
	}
	return mutant
}

// TestMutated: no change of a file makes reading, checking or writing fail in a way of its own, or take
// long. With the models of ONNX's tests, where they are.
func TestMutated(t *testing.T) {
	seeds := hostile(t)
	if root, err := filepath.EvalSymlinks(onnxData); err == nil {
		filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".onnx" {
				if data, err := os.ReadFile(path); err == nil && len(data) < 100<<10 {
					seeds = append(seeds, data)
				}
			}
			return nil
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	var slowest time.Duration
	read := 0
	for k := range longtest.Of(2_000, 200_000) {
		mutant := mutate(r, seeds[k%len(seeds)])
		start := time.Now()
		if checkAny(t, mutant) {
			read++
		}
		slowest = max(slowest, time.Since(start))
	}
	t.Logf("%d are models; the slowest takes %v", read, slowest)
	if slowest > 10*time.Second {
		t.Errorf("a file takes %v", slowest)
	}
}

// checkAny reads any bytes. A model that they are is written as the same bytes, and as the same model
// when all of it is encoded anew.
func checkAny(t *testing.T, data []byte) bool {
	m, err := onnx.Parse(data)
	if err != nil {
		if !errors.Is(err, onnx.ErrFormat) || len(err.Error()) > 20_000 {
			t.Fatalf("%q: %v", data, err)
		}
		return false
	}
	if out := written(t, m); !bytes.Equal(out, data) {
		t.Fatalf("%q is written as %q", data, out)
	}
	if err := onnx.Check(m); err != nil && len(err.Error()) > 100_000 {
		t.Fatalf("%q: an error of %d bytes", data, len(err.Error()))
	}
	m.Info()
	for _, x := range m.Graph.Initializers {
		if _, err := x.Data(""); err != nil && !errors.Is(err, onnx.ErrTensor) {
			t.Fatalf("%q: %v", data, err)
		}
	}
	m.Doc += "!"
	again, err := onnx.Parse(written(t, m))
	if err != nil || text(again) != text(m) {
		t.Fatalf("%q is another model when it is encoded anew: %v", data, err)
	}
	return true
}

func FuzzParse(f *testing.F) {
	for _, data := range hostile(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkAny(t, data) })
}

// FuzzExternal: wherever external data are said to be, they are part of a file in the folder of the
// model, or an error, without waiting. What can be read can be written to another folder.
func FuzzExternal(f *testing.F) {
	dir := f.TempDir()
	mustWrite(f, filepath.Join(dir, "secret"), "SECRET")
	folder := filepath.Join(dir, "folder")
	mustWrite(f, filepath.Join(folder, "w.bin"), "0123456789")
	mustWrite(f, filepath.Join(folder, "sub", "v.bin"), "abc")
	os.Symlink("w.bin", filepath.Join(folder, "link"))
	os.Symlink("../secret", filepath.Join(folder, "out"))
	os.Symlink("..", filepath.Join(folder, "up"))
	os.Symlink("loop", filepath.Join(folder, "loop"))
	mkfifo(filepath.Join(folder, "fifo"))
	for _, location := range []string{"w.bin", "sub/v.bin", "link", "out", "up/secret", "loop", "fifo", "sub", ".", "", "/etc/passwd", "sub/../w.bin", "a\x00b", "m.onnx", strings.Repeat("x/", 3000)} {
		f.Add(location, "1", "2", int64(2), int64(1))
	}
	for _, offset := range []string{"-1", "9223372036854775807", "9223372036854775808", "0x1", ""} {
		f.Add("w.bin", offset, "2", int64(2), int64(1))
		f.Add("w.bin", "1", offset, int64(1), int64(1))
	}
	f.Add("w.bin", "0", "0", int64(1)<<62, int64(1)<<62)
	f.Fuzz(func(t *testing.T, location, offset, length string, d0, d1 int64) {
		x := external("e", location, 0, 0)
		x.Dims, x.External[1].Value, x.External[2].Value = []int64{d0, d1}, offset, length
		name := filepath.Join(folder, "m"+strconv.Itoa(os.Getpid())+".onnx")
		m := plain()
		m.Graph.Initializers = append(m.Graph.Initializers, x)
		if err := m.WriteFile(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		m = open(t, name)
		onnx.Check(m)
		data, err := m.Graph.Initializers[1].Data("")
		if err != nil && !errors.Is(err, onnx.ErrTensor) || bytes.Contains(data, []byte("SECRET")) {
			t.Fatalf("%q, %v", data, err)
		}
		out := filepath.Join(t.TempDir(), "m.onnx")
		if writeErr := m.WriteFile(t.Context(), out); (writeErr == nil) != (err == nil) {
			t.Fatalf("read: %v, written: %v", err, writeErr)
		} else if err == nil {
			if again, err := open(t, out).Graph.Initializers[1].Data(""); err != nil || !bytes.Equal(again, data) {
				t.Fatalf("%q, %v, want %q", again, err, data)
			}
		}
	})
}
