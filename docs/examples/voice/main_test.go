package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-audio/audio"
	"github.com/go-audio/wav"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/onnx"
)

// loud is a model of the form of Silero's whose probability is the largest of the new samples.
func loud(t *testing.T) *model.Model {
	value := func(name string, elem onnx.DataType, dims ...int64) *onnx.ValueInfo {
		s := new(onnx.Shape)
		for _, d := range dims {
			if s.Dims = append(s.Dims, &onnx.Dim{Value: &d}); d == 0 {
				s.Dims[len(s.Dims)-1] = new(onnx.Dim)
			}
		}
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: s}}}
	}
	node := func(op, output string, inputs ...string) *onnx.Node {
		return &onnx.Node{Op: op, Inputs: inputs, Outputs: []string{output}}
	}
	m, err := model.Options{}.New(&onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Inputs:  []*onnx.ValueInfo{value("input", onnx.Float, 0, 0), value("state", onnx.Float, 2, 0, 128), value("sr", onnx.Int64)},
		Outputs: []*onnx.ValueInfo{value("output", onnx.Float, 0, 1), value("stateN", onnx.Float, 0, 0, 0)},
		Initializers: []*onnx.Tensor{{Name: "from", DataType: onnx.Int64, Dims: []int64{1}, Int64s: []int64{before}},
			{Name: "to", DataType: onnx.Int64, Dims: []int64{1}, Int64s: []int64{before + window}}, {Name: "axis", DataType: onnx.Int64, Dims: []int64{1}, Int64s: []int64{1}},
			{Name: "one", DataType: onnx.Float, Floats: []float32{1}}},
		Nodes: []*onnx.Node{node("Slice", "new", "input", "from", "to", "axis"), node("ReduceMax", "output", "new"), node("Add", "stateN", "state", "one")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// steady returns a sound of so many windows of each level.
func steady(levels ...float64) []float32 {
	var samples []float32
	for _, v := range levels {
		samples = append(samples, slices.Repeat([]float32{float32(v)}, window)...)
	}
	return samples
}

// pcm returns samples as a stream of 16 bits.
func pcm(samples []float32) []byte {
	var b []byte
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(v*32767)))
	}
	return b
}

func found(t *testing.T, d *detector, read reader) []span {
	t.Helper()
	var spans []span
	for s, err := range d.spans(t.Context(), read) {
		if err != nil {
			t.Fatal(err)
		}
		spans = append(spans, s)
	}
	return spans
}

// TestSpans: pauses and noises that are short make no difference, speech ends at a lower probability than it begins
// with, and what has not ended ends with the stream.
func TestSpans(t *testing.T) {
	d := &detector{loud(t), 0.5, 100 * time.Millisecond, 90 * time.Millisecond}
	ms := func(from, to int) span {
		return span{time.Duration(from) * time.Millisecond, time.Duration(to) * time.Millisecond}
	}
	for _, test := range []struct {
		levels []float64
		want   []span
	}{
		{[]float64{0, 0, 0}, nil},
		{[]float64{0, .9, .9, .9, 0, 0, 0, 0, .9, .9, .9}, []span{ms(32, 128), ms(256, 352)}},
		{[]float64{.9, .9, 0, 0, .9, 0, 0, 0, 0}, []span{ms(0, 160)}},
		{[]float64{.9, .9, 0, 0, 0, 0, 0, .9, 0}, nil},
		{[]float64{.4, .6, .4, .4, .4, .3, .3, .3, .3, .4}, []span{ms(32, 160)}},
	} {
		if got := found(t, d, raw(bytes.NewReader(pcm(steady(test.levels...))))); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.levels, got, test.want)
		}
	}
	half := pcm(steady(.9, .9, .9, .9))
	if got := found(t, d, raw(bytes.NewReader(half[:len(half)-window-1]))); !slices.Equal(got, []span{ms(0, 128)}) {
		t.Errorf("half a window at the end: %v", got)
	}
}

// TestRecording: a WAV file has the samples that a stream has, whatever its channels and bits, and files of another kind
// are refused.
func TestRecording(t *testing.T) {
	write := func(rate, bits, channels int) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "x.wav"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		e := wav.NewEncoder(f, rate, bits, channels, 1)
		var data []int
		for i := range 1000 {
			for range channels {
				data = append(data, i<<max(bits-16, 0))
			}
		}
		if err := e.Write(&audio.IntBuffer{Format: &audio.Format{NumChannels: channels, SampleRate: rate}, Data: data, SourceBitDepth: bits}); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, bits := range []int{16, 24, 32} {
		for _, channels := range []int{1, 2} {
			read, err := recording(write(rate, bits, channels))
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, 600)
			for k, want := range []int{600, 400} {
				n, err := read(got)
				if n != want || (err == io.EOF) != (k == 1) || math.Abs(float64(got[n-1])-float64(600*k+n-1)/(1<<15)) > 1e-6 {
					t.Errorf("%d bits, %d channels: %d samples, %v, the last %v", bits, channels, n, err, got[n-1])
				}
			}
		}
	}
	for _, f := range []io.ReadSeeker{write(44100, 16, 1), write(rate, 8, 1), bytes.NewReader([]byte("text"))} {
		if _, err := recording(f); err == nil {
			t.Error("a recording that the model does not take")
		}
	}
}

// TestSilero: the real model finds vowels, and neither silence nor noise.
func TestSilero(t *testing.T) {
	m, err := model.Options{Threads: 1}.Open("../models/silero_vad_v5.onnx")
	if err != nil {
		t.Skip("left out: the model, which ../fetch.sh fetches: ", err)
	}
	d := &detector{m, 0.5, 100 * time.Millisecond, 250 * time.Millisecond}
	samples := append(append(make([]float32, rate), vowels(rate)...), make([]float32, rate)...)
	got := found(t, d, raw(bytes.NewReader(pcm(samples))))
	if len(got) == 0 || got[0].from < 900*time.Millisecond || got[len(got)-1].to > 2200*time.Millisecond {
		t.Errorf("speech from 1 s to 2 s: %v", got)
	}
	seed := uint32(1)
	for i := range samples {
		seed = seed*1664525 + 1013904223
		samples[i] = float32(int32(seed)) / (1 << 34)
	}
	if got := found(t, d, raw(bytes.NewReader(pcm(samples)))); len(got) > 0 {
		t.Errorf("speech in noise: %v", got)
	}
}

// vowels returns syllables: a buzz of 120 Hz through resonances at the formants of a and i.
func vowels(n int) []float32 {
	out := make([]float32, n)
	formants := [2][3]float64{{730, 1090, 2440}, {270, 2290, 3010}}
	var y [3][2]float64
	phase := 0.0
	for i := range out {
		t := float64(i) / rate
		phase += (120 + 20*math.Sin(3*t)) / rate
		buzz := 0.0
		if phase >= 1 {
			phase, buzz = phase-1, 1
		}
		for k, f := range formants[int(t*4)%2] {
			r := math.Exp(-math.Pi * 90 / rate)
			v := buzz + 2*r*math.Cos(2*math.Pi*f/rate)*y[k][0] - r*r*y[k][1]
			y[k] = [2]float64{v, y[k][0]}
			out[i] += float32(v * 0.15 * math.Pow(math.Sin(4*math.Pi*t), 2))
		}
	}
	return out
}
