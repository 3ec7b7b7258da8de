package onnx_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/internal/limit"
)

// external returns a tensor of bytes that are in another file. Pairs are further entries.
func external(name, location string, offset, length int64, pairs ...string) *onnx.Tensor {
	x := &onnx.Tensor{Name: name, DataType: onnx.Uint8, Dims: []int64{length}, Location: onnx.LocationExternal}
	pairs = append(pairs, "location", location, "offset", fmt.Sprint(offset), "length", fmt.Sprint(length))
	for i := 0; i < len(pairs); i += 2 {
		x.External = append(x.External, &onnx.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return x
}

func mustWrite(t testing.TB, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// open reads a model until the test ends.
func open(t testing.TB, name string) *onnx.Model {
	t.Helper()
	m, err := onnx.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// elements returns the elements of the initializers of a model, as text.
func elements(t testing.TB, m *onnx.Model) []string {
	t.Helper()
	var all []string
	for _, x := range m.Graph.Initializers {
		data, err := x.Data("")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return all
}

// withData writes a model with external data to the file m.onnx of a new folder, and reads it.
func withData(t testing.TB) (dir string, m *onnx.Model) {
	dir = t.TempDir()
	mustWrite(t, filepath.Join(dir, "sub", "w.bin"), "0123456789")
	mustWrite(t, filepath.Join(dir, "m.onnx.data"), "abcdef")
	m = plain()
	big := strings.Repeat("x", 5000)
	m.Graph.Initializers = append(m.Graph.Initializers,
		external("a", "sub/w.bin", 3, 4, "checksum", "0000", "note", "kept"), external("again", "./sub/../sub/w.bin", 3, 4), external("b", "m.onnx.data", 0, 6),
		&onnx.Tensor{Name: "inline", DataType: onnx.Uint8, Dims: []int64{5000}, Raw: []byte(big)})
	name := filepath.Join(dir, "m.onnx")
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return dir, open(t, name)
}

var dataOfWithData = []string{"\x00\x00\x80\x3f", "3456", "3456", "abcdef", strings.Repeat("x", 5000)}

// TestWriteBeside: a model in the folder that it was read from refers to the same data, and may replace
// itself. Its mapped bytes are those of the old file.
func TestWriteBeside(t *testing.T) {
	dir, m := withData(t)
	old := mustRead(t, filepath.Join(dir, "m.onnx"))
	for _, name := range []string{"m.onnx", "other.onnx"} {
		if err := m.WriteFile(t.Context(), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if mustRead(t, filepath.Join(dir, name)) != old {
			t.Errorf("%s: other bytes", name)
		}
	}
	m.Doc = "changed"
	if err := m.WriteFile(t.Context(), filepath.Join(dir, "m.onnx")); err != nil {
		t.Fatal(err)
	}
	again := open(t, filepath.Join(dir, "m.onnx"))
	if !cmp.Equal(m, again, fields) || !cmp.Equal(elements(t, again), dataOfWithData) || !cmp.Equal(elements(t, m), dataOfWithData) {
		t.Error("another model")
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 4 {
		t.Error(files)
	}
}

// TestWriteElsewhere: a model in another folder brings its data, each part once.
func TestWriteElsewhere(t *testing.T) {
	_, m := withData(t)
	name := filepath.Join(t.TempDir(), "out.onnx")
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	again := open(t, name)
	if got := elements(t, again); !cmp.Equal(got, dataOfWithData) {
		t.Errorf("%q", got)
	}
	if got, want := mustRead(t, name+".data"), "3456"+strings.Repeat("\x00", 60)+"abcdef"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var entries []string
	for _, e := range again.Graph.Initializers[1].External {
		entries = append(entries, e.Key+"="+e.Value)
	}
	if want := []string{"note=kept", "location=out.onnx.data", "offset=0", "length=4"}; !cmp.Equal(entries, want) {
		t.Error(entries)
	}
	if m.Graph.Initializers[1].External[0].Key != "checksum" {
		t.Error("writing a model has changed it")
	}
	// A tensor brings its data to another model, too.
	other := plain()
	other.Graph.Initializers = append(other.Graph.Initializers, m.Graph.Initializers[3])
	name = filepath.Join(t.TempDir(), "other.onnx")
	if err := other.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if got := elements(t, open(t, name)); !cmp.Equal(got, []string{"\x00\x00\x80\x3f", "abcdef"}) {
		t.Errorf("%q", got)
	}
}

// TestWriteLarge: initializers of a changed model that would be too large are written to another file,
// which is none that the model refers to.
func TestWriteLarge(t *testing.T) {
	limit.Lower.Store(2000)
	defer limit.Lower.Store(0)
	dir, m := withData(t)
	name := filepath.Join(dir, "m.onnx")
	old := mustRead(t, name)
	if err := m.WriteFile(t.Context(), name); err != nil || mustRead(t, name) != old {
		t.Errorf("what has not changed is written in another way: %v", err)
	}
	m.Doc = "changed"
	floats := make([]float32, 300)
	floats[299] = 1
	body := &onnx.Graph{Name: "b", Initializers: []*onnx.Tensor{{Name: "f", DataType: onnx.Float, Dims: []int64{300}, Floats: floats}}, Nodes: []*onnx.Node{node("Neg", "f", "o")}, Outputs: []*onnx.ValueInfo{{Name: "o"}}}
	m.Graph.Nodes = append(m.Graph.Nodes, node("If", "x", "i", branch("then_branch", body), branch("else_branch", body)))
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	again := open(t, name)
	if got := elements(t, again); !cmp.Equal(got, dataOfWithData) {
		t.Errorf("%q", got)
	}
	if x := again.Graph.Initializers[4]; x.Raw != nil || x.External[0].Value != "m.onnx.1.data" || mustRead(t, filepath.Join(dir, "m.onnx.data")) != "abcdef" {
		t.Errorf("%+v", x)
	}
	inner := again.Graph.Nodes[2].Attributes[0].Graph.Initializers[0]
	if data, err := inner.Data(""); err != nil || len(data) != 1200 || data[1198] != 0x80 || inner.Floats != nil {
		t.Error(len(data), err)
	}
	if again.Graph.Initializers[0].Location != onnx.LocationDefault {
		t.Error("a small tensor is moved")
	}
	limit.Lower.Store(200)
	if err := m.WriteFile(t.Context(), name); !errors.Is(err, onnx.ErrTooLarge) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
}

// TestWriteRefused: what can't be written leaves everything as it was.
func TestWriteRefused(t *testing.T) {
	out := t.TempDir()
	for name, c := range map[string]struct {
		change func(dir string, m *onnx.Model)
		want   string
	}{
		"a part that is not there": {func(_ string, m *onnx.Model) { m.Graph.Initializers[1].External[3].Value = "9" }, "tensor a: onnx: bad tensor: sub/w.bin has no 4 bytes from byte 9 on"},
		"a file that is not there": {func(_ string, m *onnx.Model) {
			m.Graph.Initializers[1] = m.Graph.Initializers[3]
			m.Graph.Initializers[3].External[0].Value = "gone"
		}, "tensor b: onnx: bad tensor: external data"},
		"a file that was cut": {func(dir string, m *onnx.Model) {
			elements(t, m)
			if err := os.Truncate(filepath.Join(dir, "sub", "w.bin"), 4); err != nil {
				t.Fatal(err)
			}
		}, "tensor a: unexpected EOF"},
	} {
		dir, m := withData(t)
		c.change(dir, m)
		if err := m.WriteFile(t.Context(), filepath.Join(out, "m.onnx")); err == nil || !strings.Contains(filepath.ToSlash(err.Error()), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if files, _ := os.ReadDir(out); len(files) != 0 {
			t.Errorf("%s: %v", name, files)
		}
	}
	_, m := withData(t)
	if err := m.WriteFile(t.Context(), os.DevNull); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Error(err)
	}
}

// TestClose: after Close nothing reads memory that is gone.
func TestClose(t *testing.T) {
	dir, m := withData(t)
	x := m.Graph.Initializers
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, x := range x {
		if _, err := x.Data(""); !errors.Is(err, fs.ErrClosed) {
			t.Error(x.Name, err)
		}
	}
	other := plain()
	other.Graph.Initializers = append(other.Graph.Initializers, x[4])
	for _, m := range []*onnx.Model{m, other} {
		if err := m.Write(new(bytes.Buffer)); !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
		if err := m.WriteFile(t.Context(), filepath.Join(dir, "new.onnx")); !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	}
	if err := plain().Close(); err != nil {
		t.Error(err)
	}
}

// TestReplacedData: data are those of the file that was opened first, whatever gets its name.
func TestReplacedData(t *testing.T) {
	dir, m := withData(t)
	elements(t, m)
	mustWrite(t, filepath.Join(dir, "new"), "")
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "sub", "w.bin")); err != nil {
		t.Skip(err) // on a system where open files are not replaced
	}
	if got := elements(t, m); !cmp.Equal(got, dataOfWithData) {
		t.Errorf("%q", got)
	}
	out := filepath.Join(t.TempDir(), "m.onnx")
	if err := m.WriteFile(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if got := elements(t, open(t, out)); !cmp.Equal(got, dataOfWithData) {
		t.Errorf("%q", got)
	}
}

// TestParsedHasNoFolder: a model that was not read from a file refers to data as before.
func TestParsedHasNoFolder(t *testing.T) {
	dir, m := withData(t)
	parsed, err := onnx.Parse(written(t, m))
	if err != nil {
		t.Fatal(err)
	}
	x := parsed.Graph.Initializers[1]
	if _, err := x.Data(""); !errors.Is(err, onnx.ErrTensor) {
		t.Error(err)
	}
	if data, err := x.Data(dir); err != nil || string(data) != "3456" {
		t.Error(data, err)
	}
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := parsed.WriteFile(t.Context(), name); err != nil || mustRead(t, name) != mustRead(t, filepath.Join(dir, "m.onnx")) {
		t.Error(err)
	}
}

// TestNewTensor: elements fit or are refused, and replace others in whatever form those were.
func TestNewTensor(t *testing.T) {
	x, err := onnx.NewTensor("w", onnx.Int16, []int64{2}, []byte("abcd"))
	if err != nil || string(x.Raw) != "abcd" || x.Name != "w" {
		t.Error(x, err)
	}
	for _, data := range []string{"abc", "abcdef", ""} {
		if _, err := onnx.NewTensor("w", onnx.Int16, []int64{2}, []byte(data)); !errors.Is(err, onnx.ErrTensor) || !strings.Contains(err.Error(), "tensor w") {
			t.Error(err)
		}
	}
	if _, err := onnx.NewTensor("w", onnx.String, nil, nil); !errors.Is(err, onnx.ErrTensor) {
		t.Error(err)
	}
	if x, err := onnx.NewTensor("w", onnx.Float, []int64{0}, nil); err != nil || x.Raw == nil {
		t.Error(x, err)
	}
	y := external("e", "w.bin", 0, 2)
	if err := y.SetData([]byte("a")); err == nil || y.Location != onnx.LocationExternal {
		t.Error("a tensor has changed in spite of an error", err)
	}
	if err := y.SetData([]byte("ab")); err != nil || y.Location != onnx.LocationDefault || y.External != nil || onnx.Check(&onnx.Model{Graph: &onnx.Graph{Initializers: []*onnx.Tensor{y}}}) == nil {
		t.Errorf("%+v, %v", y, err)
	}
	if n, size, err := y.Size(); n != 2 || size != 2 || err != nil {
		t.Error(n, size, err)
	}
}

// TestLargeFiles: a model with weights of 3 GB, in another file or its own, is read without them.
func TestLargeFiles(t *testing.T) {
	const size = 3 << 30
	dir := t.TempDir()
	sparse := func(name, head string) string {
		name = filepath.Join(dir, name)
		mustWrite(t, name, head)
		if err := os.Truncate(name, int64(len(head))+size); err != nil {
			t.Skip(err)
		}
		return name
	}
	sparse("w.bin", "")
	m := plain()
	m.Graph.Initializers = append(m.Graph.Initializers, external("a", "w.bin", size-10, 10), external("all", "w.bin", 0, size))
	outside := filepath.Join(dir, "outside.onnx")
	if err := m.WriteFile(t.Context(), outside); err != nil {
		t.Fatal(err)
	}
	// The weights come last, so that zeros at the end of the file are they.
	m.Graph.Initializers = m.Graph.Initializers[:1]
	m.Graph.Nodes, m.Graph.Inputs, m.Graph.Outputs = nil, nil, nil
	tensor := join(field(1, size), field(2, 2), []byte{9<<3 | 2, 0x80, 0x80, 0x80, 0x80, 0x0c})
	graph := join(field(2, "g"), []byte{5<<3 | 2}, lengthOf(len(tensor)+size), []byte(tensor))
	inside := sparse("inside.onnx", join(field(1, 10), field(8, join(field(2, 21))), []byte{7<<3 | 2}, lengthOf(len(graph)+size), []byte(graph)))
	for _, name := range []string{outside, inside} {
		start := time.Now()
		var m *onnx.Model
		var err error
		used := alloctest.Bytes(func() {
			if m, err = onnx.ReadFile(name); err == nil {
				m.Info()
				_, err = m.Graph.Initializers[len(m.Graph.Initializers)-1].Data("")
				onnx.Check(m)
			}
		})
		if d := time.Since(start); err != nil || used > 1<<20 || d > 10*time.Second {
			t.Fatal(name, used, d, err)
		}
		defer m.Close()
	}
	if longtest.Enabled() {
		m := open(t, inside)
		m.Doc = "changed"
		name := filepath.Join(dir, "new", "m.onnx")
		mustWrite(t, name, "")
		if err := m.WriteFile(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if x := open(t, name).Graph.Initializers[0]; x.Location != onnx.LocationExternal {
			t.Error("a model of 3 GB is written in one file")
		}
	}
}

func lengthOf(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// TestReadFS: a model of a file system has its external data, and needs no file any more.
func TestReadFS(t *testing.T) {
	dir, _ := withData(t)
	m, err := onnx.ReadFS(os.DirFS(filepath.Dir(dir)), filepath.Base(dir)+"/m.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := elements(t, m); !cmp.Equal(got, dataOfWithData) {
		t.Errorf("%q", got)
	}
	if name := filepath.Join(t.TempDir(), "m.onnx"); m.WriteFile(t.Context(), name) != nil || !cmp.Equal(elements(t, open(t, name)), dataOfWithData) {
		t.Error("it can't be written")
	}
}

// TestReadFSFaults: data that are missing, too short, elsewhere or not fetched are errors.
func TestReadFSFaults(t *testing.T) {
	for location, want := range map[string]string{
		"none.bin":    "none.bin",
		"short.bin":   "has no 4 bytes from byte 3 on",
		"../up.bin":   "not below the folder",
		"pointer.bin": "Git LFS",
	} {
		m := plain()
		m.Graph.Initializers = append(m.Graph.Initializers, external("w", location, 3, 4))
		var data bytes.Buffer
		if err := m.Write(&data); err != nil {
			t.Fatal(err)
		}
		_, err := onnx.ReadFS(fstest.MapFS{"sub/m.onnx": {Data: data.Bytes()}, "sub/short.bin": {Data: []byte("012345")}, "up.bin": {Data: []byte("0123456789")},
			"sub/pointer.bin": {Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 10\n")}}, "sub/m.onnx")
		if !errors.Is(err, onnx.ErrTensor) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tensor w") {
			t.Errorf("%s: %v", location, err)
		}
	}
	if _, err := onnx.ReadFS(fstest.MapFS{}, "m.onnx"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
