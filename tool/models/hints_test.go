package models

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestHints: sizes follow from weights, and are handed on where values are broadcast.
func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		"x: float[n,c,h,w]; k: float[4,3,1,1]; y = Conv{group=2}(x, k); y":                                                                                                             "map[c:6]",
		"x: float[n,d]; k: float[7,5]; y = Gemm{transB=1}(x, k); y":                                                                                                                    "map[d:5]",
		"x: float[n,t,d]; k: float[24,5]; z: float[a,b,c]; s = Add(z, x); y = MatMul(x, k); s, y":                                                                                      "map[c:24 d:24]",
		"x: float[n,m]; z: float[n,1]; y = Mul(x, z); y":                                                                                                                               "map[]",
		"x: float[s,b,i]; k: float[1,8,3]; r: float[1,8,2]; y = LSTM{hidden_size=2}(x, k, r); y":                                                                                       "map[i:3]",
		"x: float[n,p]; z: float[n,q]; k: float[9]; a = Add(x, k); y = Concat{axis=0}(a, z); y":                                                                                        "map[p:9 q:9]",
		"x: float[n,p]; z: float[n,q]; k: float[9]; a = Add(x, k); y = Concat{axis=1}(a, z); y":                                                                                        "map[p:9]",
		"x: float[n,c,l]; s: float[6]; b: float[6]; y = InstanceNormalization(x, s, b); z = Relu(y); z":                                                                                "map[c:6]",
		"x: float[n,c,l]; k: float[5,2,3]; y = ConvTranspose(x, k); z: float[n,e,l]; w = Add(x, z); y, w":                                                                              "map[c:5 e:5]",
		"x: float[n,1,t]; k: float[2,1,127]; r: float[3,2,7]; y = Conv{strides=[64]}(x, k); z = Relu(y); w = Conv{strides=[3]}(z, r); v = MaxPool{kernel_shape=[3],strides=[2]}(w); v": "map[t:1790]",
		"x: float[n,1,t]; k: float[2,1,127]; s = int64[6] [0,0,3,0,0,4]; p = Pad(x, s); y = Conv{dilations=[2],pads=[1,1]}(p, k); y":                                                   "map[t:488]",
		"x: float[n,t,1]; s = int64[] 50; f = int64[] 400; y = STFT(x, s, _, f); y":                                                                                                    "map[t:800]",
		"x: float[n,3,t,u]; k: float[8,3,7,7]; y = Conv{strides=[2,2],pads=[3,3,3,3]}(x, k); y":                                                                                        "map[]",
		"x: float[n]; y: float[m]; z: float[k]; w: float[8]; a = Add(x, y); b = Add(z, w); d = Add(y, z); a, b, d":                                                                     "map[k:8 m:8 n:8]",
	} {
		g, err := onnxpass.ParseGraph(text, ir.Standard())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := hints(g)
		for name := range got { // those of values between are not asked for
			if len(name) > 1 {
				delete(got, name)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// TestUndeclared: values of sizes that a model does not declare are told from those that it does.
func TestUndeclared(t *testing.T) {
	g, err := onnxpass.ParseGraph("x: float[n,3]; y: float[n]; x, y", ir.Standard())
	if err != nil {
		t.Fatal(err)
	}
	for i, shapes := range map[int][2][]int{-1: {{2, 3}, {5}}, 0: {{2, 1}, {5}}, 1: {{2, 3}, {5, 1}}} {
		if got := undeclared(g, []any{array.New(array.Float32, shapes[0]...), array.New(array.Float32, shapes[1]...)}); got != i {
			t.Errorf("%v: output %d, want %d", shapes, got, i)
		}
	}
}
