package onnxtest

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

var probes = flag.String("probes", "", "write cases of single operators to this folder")

// TestWriteProbes writes cases of each operator, type of elements and version. Those that testdata/answer.js
// leaves are what testdata/kernels.txt lists.
func TestWriteProbes(t *testing.T) {
	if *probes == "" {
		t.Skip("without -probes")
	}
	for _, op := range Operators() {
		for _, elem := range append(anything, onnx.BFloat16) {
			for opset := int64(oldest); opset <= newest; opset++ {
				if c := Probe(op, elem, opset); c != nil {
					if err := c.Write(t.Context(), filepath.Join(*probes, c.Name)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
