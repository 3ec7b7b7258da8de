package session_test

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

var voice = flag.String("voice", "", "a folder with test.wav, models of Silero's voice detector, and what testdata/voice.js makes of them")

// TestVoice: a voice detector that carries its state through a minute of sound has the probabilities of
// ONNX Runtime.
func TestVoice(t *testing.T) {
	if *voice == "" {
		t.Skip("without -voice")
	}
	data, err := os.ReadFile(filepath.Join(*voice, "test.wav"))
	if err != nil {
		t.Fatal(err)
	}
	const header = 44
	sound := make([]float32, (len(data)-header)/2)
	for i := range sound {
		sound[i] = float32(int16(binary.LittleEndian.Uint16(data[header+2*i:]))) / 32768
	}
	models, err := filepath.Glob(filepath.Join(*voice, "*.onnx"))
	if err != nil || len(models) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, file := range models {
		for _, query := range []string{"none", "fast_run"} {
			t.Run(filepath.Base(file)+"/"+query, func(t *testing.T) { listen(t, file, query, sound) })
		}
	}
}

// listen runs a model on all parts of a recording.
func listen(t *testing.T, file, query string, sound []float32) {
	t.Helper()
	var want []float64
	data, err := os.ReadFile(strings.TrimSuffix(file, "onnx") + "json")
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(m.Graph.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == name })
	}
	const samples = 512
	context, states := 64, map[string]string{"state": "stateN"}
	in := map[string]*array.Array{"state": array.New(array.Float32, 2, 1, 128)}
	if !has("state") { // the fourth version
		context, states = 0, map[string]string{"h": "hn", "c": "cn"}
		in = map[string]*array.Array{"h": array.New(array.Float32, 2, 1, 64), "c": array.New(array.Float32, 2, 1, 64)}
	}
	if has("sr") {
		in["sr"] = array.Scalar(int64(16000))
	}
	in["input"] = array.New(array.Float32, 1, context+samples)
	f, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, query)}, in)
	if err != nil {
		t.Fatal(err)
	}
	part, worst := array.Slice[float32](in["input"]), 0.0
	for k := 0; k*samples < len(sound); k++ {
		copy(part, part[samples:])
		clear(part[context:])
		copy(part[context:], sound[k*samples:])
		out, err := f.Call(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if k >= len(want) {
			t.Fatalf("%d parts, and should be %d", k, len(want))
		}
		worst = max(worst, math.Abs(out["output"].Float(0)-want[k]))
		for name, next := range states {
			in[name] = out[next].Clone()
		}
	}
	t.Logf("the largest difference is %.1e", worst)
	if !(worst <= 1e-4) {
		t.Errorf("a probability differs by %g", worst)
	}
}
