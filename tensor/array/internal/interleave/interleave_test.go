package interleave_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/tensor/array/internal/interleave"
)

// TestRun: each element comes to its place, in whatever pieces, and what is no image of few channels is left alone.
func TestRun(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 200 {
		images, channels, pixels := 1+r.IntN(3), 1+r.IntN(32), 1+r.IntN(5000)
		channel := pixels + r.IntN(2)*r.IntN(9) // perhaps a part of each channel
		image := channels*channel + r.IntN(2)*r.IntN(9)
		shape, steps := []int{images, pixels, channels}, []int{image, 1, channel}
		if images == 1 {
			shape, steps = shape[1:], steps[1:]
		}
		m, ok := interleave.Of(shape, steps)
		if ok != (channels <= 16) {
			t.Fatalf("%d: %t for %v with steps %v", trial, ok, shape, steps)
		}
		if !ok {
			continue
		}
		from := make([]float32, images*image)
		for i := range from {
			from[i] = float32(i)
		}
		var want []float32
		for i := range images {
			for p := range pixels {
				for c := range channels {
					want = append(want, from[i*image+c*channel+p])
				}
			}
		}
		got := make([]float32, len(want))
		between := r.IntN(m.Blocks + 1)
		m.Run(got, from, between, m.Blocks)
		m.Run(got, from, 0, between)
		if !slices.Equal(got, want) {
			t.Fatalf("%d: %v with steps %v", trial, shape, steps)
		}
	}
	for _, steps := range [][]int{{60, 2, 20}, {30, 1, 10}, {3, 6, 1}} {
		if _, ok := interleave.Of([]int{2, 10, 3}, steps); ok != (steps[1] == 1) {
			t.Errorf("steps %v: %t", steps, ok)
		}
	}
	for _, shape := range [][]int{{}, {12}, {2, 2, 5, 3}} {
		if _, ok := interleave.Of(shape, []int{1, 1, 1, 1}[:len(shape)]); ok {
			t.Errorf("%v are images", shape)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	const channels, pixels = 3, 224 * 224
	from, to := make([]float32, channels*pixels), make([]float32, channels*pixels)
	m, _ := interleave.Of([]int{pixels, channels}, []int{1, pixels})
	b.SetBytes(4 * channels * pixels)
	for b.Loop() {
		m.Run(to, from, 0, m.Blocks)
	}
}
