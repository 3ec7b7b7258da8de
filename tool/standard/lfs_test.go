package standard_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// TestLFS: a file that Git LFS did not fetch is called that, in one line, whatever it stands for.
func TestLFS(t *testing.T) {
	t.Chdir(t.TempDir())
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	for _, name := range []string{"final.mdl", "model.onnx", "x.graph", "own.rules", "x.pb", "x.npy", "weights.bin", "feats.ark", "feats.scp"} {
		if err := os.WriteFile(name, []byte(pointer), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	floats := &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}
	add := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name: "add", Nodes: []*onnx.Node{{Op: "Add", Inputs: []string{"x", "w"}, Outputs: []string{"y"}}},
		Initializers: []*onnx.Tensor{{Name: "w", DataType: onnx.Float, Dims: []int64{2}, Location: onnx.LocationExternal, External: []*onnx.Entry{{Key: "location", Value: "weights.bin"}}}},
		Inputs:       []*onnx.ValueInfo{{Name: "x", Type: floats}}, Outputs: []*onnx.ValueInfo{{Name: "y", Type: floats}},
	}}
	if err := writeModel("outside.onnx", add); err != nil {
		t.Fatal(err)
	}
	add.Graph.Nodes[0].Inputs[1], add.Graph.Initializers = "x", nil
	if err := writeModel("right.onnx", add); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"net.config": smallRun, "inside.scp": "a feats.ark:20\n", "beyond.scp": "a feats.ark:5000\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	nnopt(t, "init", "net.config", "small.raw").ok(t)
	for _, args := range []string{
		"run small.raw ark:feats.ark ark:out.ark", "run small.raw scp:feats.scp ark:out.ark", "run small.raw scp:inside.scp ark:out.ark", "run small.raw scp:beyond.scp ark:out.ark",
		"info final.mdl", "graph final.mdl", "compile final.mdl", "info model.onnx", "graph model.onnx", "opt model.onnx", "eval model.onnx", "opt x.graph", "reproduce x.graph",
		"rule check --file=own.rules", "expr --rules=own.rules x", "expr --query=@own.rules x", "eval --input=x=x.pb right.onnx", "eval --input=x=x.npy right.onnx", "eval --shape=x=2 outside.onnx",
	} {
		r := nnopt(t, strings.Fields(args)...)
		said, _, _ := strings.Cut(r.stderr, "\n\"nnopt help") // after wrong usage
		said, _, _ = strings.Cut(said, "\n0 utterances scored")
		if r.status == 0 || !strings.Contains(said, "which Git LFS left; \"git lfs pull\" fetches it") || strings.Count(strings.TrimRight(said, "\n"), "\n") > 0 {
			t.Errorf("%s: %d, %s", args, r.status, r.stderr)
		}
	}
}

// writeModel writes a model as it is, without looking at its external data.
func writeModel(name string, m *onnx.Model) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(m.Write(f), f.Close())
}

// TestOneDefault: help says of no flag twice what its default is.
func TestOneDefault(t *testing.T) {
	for line := range strings.Lines(nnopt(t, "help").ok(t).stdout) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "  ") || len(fields) == 0 {
			continue
		}
		for line := range strings.Lines(nnopt(t, "help", fields[0]).ok(t).stdout) {
			if strings.HasPrefix(line, "  --") && strings.Count(line, "(default") > 1 {
				t.Errorf("%s: %s", fields[0], line)
			}
		}
	}
}
