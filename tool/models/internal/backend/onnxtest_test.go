package backend_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tool/models/internal/backend/internal/onnxtest"
)

var probes = flag.String("probes", "", "write cases of single operators to this folder")

// walk calls a function with all nodes, and with how many graphs are around them.
func walk(nodes []*onnx.Node, depth int, do func(n *onnx.Node, depth int)) {
	for _, n := range nodes {
		do(n, depth)
		for _, a := range n.Attributes {
			if a.Graph != nil {
				walk(a.Graph.Nodes, depth+1, do)
			}
		}
	}
}

// TestDrawFunctions: models with functions are models, have all that they are for, and can be inlined.
func TestDrawFunctions(t *testing.T) {
	found := make(map[string]int)
	for seed := range uint64(longtest.Of(100, 2000)) {
		c := onnxtest.DrawFunctions(seed)
		if err := onnx.Check(c.Model); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, f := range c.Model.Functions {
			found["default"] += len(f.Defaults)
			found["without a default"] += len(f.Attributes)
			walk(f.Nodes, 0, func(n *onnx.Node, depth int) { count(found, n, depth) })
		}
		flat := onnxtest.Inline(c.Model)
		if err := onnx.Check(flat); err != nil {
			t.Fatalf("%s inlined: %v", c.Name, err)
		}
		names := make(map[string]bool)
		walk(flat.Graph.Nodes, 0, func(n *onnx.Node, _ int) {
			if n.Domain != "" {
				t.Errorf("%s inlined: a call of %s", c.Name, n.Op)
			}
			for _, o := range n.Outputs {
				if o != "" && names[o] {
					t.Errorf("%s inlined: two results %s", c.Name, o)
				}
				names[o] = true
			}
			for _, a := range n.Attributes {
				if a.Ref != "" {
					t.Errorf("%s inlined: a reference to %s", c.Name, a.Ref)
				}
			}
		})
	}
	for _, what := range []string{"call", "call in a graph", "reference", "reference in a graph", "overload", "left out", "default", "without a default", "unread"} {
		if found[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	t.Log(found)
}

// count counts what a node of a function has.
func count(found map[string]int, n *onnx.Node, depth int) {
	in := ""
	if depth > 0 {
		in = " in a graph"
	}
	for _, a := range n.Attributes {
		if a.Ref != "" {
			found["reference"+in]++
		}
	}
	if n.Domain == "" {
		return
	}
	found["call"+in]++
	if n.Overload != "" {
		found["overload"]++
	}
	for _, name := range n.Inputs {
		if name == "" {
			found["left out"]++
		}
	}
	for _, name := range n.Outputs {
		if name == "" {
			found["unread"]++
		}
	}
}

// TestWriteProbes writes cases of each operator, type of elements and version. Those that testdata/answer.js
// of onnxtest leaves are what its testdata/kernels.txt lists.
func TestWriteProbes(t *testing.T) {
	if *probes == "" {
		t.Skip("without -probes")
	}
	for c := range onnxtest.Probes {
		if err := c.Write(t.Context(), filepath.Join(*probes, c.Name)); err != nil {
			t.Fatal(err)
		}
	}
}
