package backend_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/onnx/onnxtest"
)

var (
	folder = flag.String("folder", "", "write random cases to this folder, for onnx/onnxtest/testdata/answer.js")
	from   = flag.Uint64("from", 0, "the first seed of random cases")
	number = flag.Uint64("number", 1000, "how many random cases are written")
)

// TestWriteRandom writes random cases to a folder.
func TestWriteRandom(t *testing.T) {
	if *folder == "" {
		t.Skip("without -folder")
	}
	for seed := *from; seed < *from+*number; seed++ {
		c := onnxtest.Draw(seed)
		if err := c.Write(t.Context(), filepath.Join(*folder, c.Name)); err != nil {
			t.Fatal(err)
		}
	}
}
