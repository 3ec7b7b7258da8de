package kaldiio

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShapes: sizes come from headers, from text and with ranges, and a file must be long enough.
func TestShapes(t *testing.T) {
	m := Matrix{Rows: 9, Cols: 4, Stride: 4, Data: make([]float32, 36)}
	double := DoubleMatrix{Rows: 3, Cols: 2, Stride: 2, Data: make([]float64, 6)}
	dir := t.TempDir()
	s := NewShapes(new(Opener))
	for name, write := range map[string]func(*Writer){
		"single":     func(w *Writer) { w.Matrix(m) },
		"double":     func(w *Writer) { w.DoubleMatrix(double) },
		"speech":     func(w *Writer) { w.CompressedMatrix(m, compressSpeech) },
		"two bytes":  func(w *Writer) { w.CompressedMatrix(m, compressTwoByte) },
		"one byte":   func(w *Writer) { w.CompressedMatrix(m, compressOneByte) },
		"text":       func(w *Writer) { w.binary = false; w.Matrix(m) },
		"no rows":    func(w *Writer) { w.Matrix(Matrix{}) },
		"no rows CM": func(w *Writer) { w.CompressedMatrix(Matrix{}, compressSpeech) },
	} {
		var b bytes.Buffer
		w := NewWriter(&b, name != "text")
		w.Raw("key ")
		w.Header()
		write(w)
		w.Flush()
		rows, cols := m.Rows, m.Cols
		switch name {
		case "double":
			rows, cols = 3, 2
		case "no rows", "no rows CM":
			rows, cols = 0, 0
		}
		file := filepath.Join(dir, name)
		of := func(size int) (int, int, error) {
			if err := os.WriteFile(file, b.Bytes()[:size], 0o666); err != nil {
				t.Fatal(err)
			}
			s.Close()
			return s.Of(ScriptLine{Key: "key", Name: file + ":4"})
		}
		if gotRows, gotCols, err := of(b.Len()); gotRows != rows || gotCols != cols || err != nil {
			t.Errorf("%s: %d by %d, %v", name, gotRows, gotCols, err)
		}
		if _, _, err := of(b.Len() - 2); !errors.Is(err, ErrTruncated) { // the last byte of a text is a newline
			t.Errorf("%s, cut: %v", name, err)
		}
		of(b.Len())
	}
	for _, c := range []struct {
		name string
		text string
		want string
	}{
		{"rows", "single:4[2:5]", "4 4"},
		{"columns", "single:4[:,1:1]", "9 1"},
		{"too many rows", "single:4[5:10]", "4 4"},
		{"far too many rows", "single:4[5:20]", "range out of bounds"},
		{"no file", "none", "no such file"},
		{"no matrix", "single:5", "expected ["},
	} {
		line, err := ParseScriptLine("key " + filepath.Join(dir, c.text))
		if err != nil {
			t.Fatal(err)
		}
		rows, cols, err := s.Of(line)
		got := fmt.Sprint(rows, cols)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
