package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// randomPatches returns patches of images in guarded memory, and their number.
func randomPatches(t *testing.T, r *rand.Rand, channels int, wild bool) (x *Patches, rows int) {
	x = &Patches{Channels: channels, Pixel: channels * (1 + r.IntN(4)/3)}
	x.Pixel += r.IntN(2) * r.IntN(3)
	images, pixels := 1+r.IntN(2), 1
	rows = images
	for d := range x.In {
		x.In[d], x.Size[d], x.Stride[d], x.Dilation[d], x.Before[d] = 1+r.IntN(9), 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(2), r.IntN(5)-2
		if r.IntN(2) == 0 {
			x.Dilation[d] = 1
		}
		if d == 0 && r.IntN(2) == 0 {
			x.In[d], x.Size[d], x.Before[d] = 1, 1, 0
		}
		if d == 2 && r.IntN(2) == 0 {
			x.In[d] += 20
		}
		x.Out[d] = 1 + max(0, x.In[d]+2*x.Before[d]-x.Size[d])/x.Stride[d]
		rows, pixels = rows*x.Out[d], pixels*x.In[d]
	}
	x.Data = guarded(t, r, 1, (images*pixels-1)*x.Pixel+channels, 0, wild).Data
	return x, rows
}

// TestMulPatches: products with patches have the bits of those with copies of them, for all windows,
// kernels, rows and numbers of threads.
func TestMulPatches(t *testing.T) {
	divided(t)
	r := newRand()
	for _, set := range supportedSets() {
		trials := longtest.Of(60, 400)
		if set <= goSet {
			trials /= 4
		}
		for trial := range trials {
			channels := 1 + r.IntN(20)
			if trial%6 == 0 && set > goSet {
				channels = 200 + r.IntN(800) // divided along k
			}
			x, rows := randomPatches(t, r, channels, trial%3 == 0)
			k, n := channels*x.Size[0]*x.Size[1]*x.Size[2], 1+r.IntN(140)
			if r.IntN(3) == 0 {
				n = []int{16, 32, 64, 128}[r.IntN(4)]
			}
			w := newWeights(set, random(r, n, k, 2), false)
			if r.IntN(2) == 0 {
				w = newWeights(set, random(r, k, n, 2), true)
			}
			first := r.IntN(rows)
			rows = min(1+r.IntN(rows-first), 40)
			copies := New(rows, k)
			for i := range rows {
				x.copyPatch(Row(copies, i), x.position(first+i))
			}
			y := random(r, rows, n, 1)
			ep := Epilogue{ReLU: trial%2 == 0, Accumulate: trial%5 == 0, Bias: random(r, 1, n, 0).Data}
			if trial%4 == 0 {
				ep.Alpha, ep.Residual = 0.66, random(r, rows, n, 1)
			}
			want, got := Clone(y), random(r, rows, n, 1)
			w.Mul(copies, ep, want)
			for _, threads := range []*Threads{nil, NewThreads(3)} {
				Copy(got, y)
				ep.Threads = threads
				w.MulPatches(x, first, &ep, got)
				gapsIntact(t, got)
				equalBits(t, fmt.Sprintf("%s, %d: %d rows from %d on, %d columns, %d channels %d apart of %v, window %v, strides %v, dilations %v, before %v",
					set, trial, rows, first, n, channels, x.Pixel, x.In, x.Size, x.Stride, x.Dilation, x.Before), got, want)
			}
		}
	}
}

// TestMulPatchesGroups: groups of channels side by side have the bits of one after the other, for any number of threads.
func TestMulPatchesGroups(t *testing.T) {
	divided(t)
	defer func(s kernelSet) { bestSet = s }(bestSet)
	r := newRand()
	for _, bestSet = range supportedSets() {
		for trial := range longtest.Of(30, 200) {
			groups, channels, n := 2+r.IntN(5), 1+r.IntN(9), 1+r.IntN(20)
			x, rows := randomPatches(t, r, groups*channels, trial%3 == 0)
			x.Channels = channels
			x.Data = slices.Grow(x.Data, x.Pixel)[:(len(x.Data)+x.Pixel-1)/x.Pixel*x.Pixel]
			k := channels * x.Size[0] * x.Size[1] * x.Size[2]
			var weights []*Weights
			for range groups {
				weights = append(weights, newWeights(bestSet, random(r, n, k, 2), false))
			}
			first := r.IntN(rows)
			rows = min(1+r.IntN(rows-first), 40)
			want, got := random(r, rows, n*groups, 1), random(r, rows, n*groups, 1)
			ep := Epilogue{ReLU: trial%2 == 0, Bias: random(r, 1, n*groups, 0).Data}
			if trial%4 == 0 {
				ep.Alpha, ep.Residual = 0.66, random(r, rows, n*groups, 1)
			}
			for g, w := range weights {
				one, alone := *x, ep
				one.Data, alone.Bias = x.Data[g*channels:], ep.Bias[g*n:][:n]
				if ep.Alpha != 0 {
					alone.Residual = Cols(ep.Residual, g*n, n)
				}
				w.MulPatches(&one, first, &alone, Cols(want, g*n, n))
			}
			for _, ep.Threads = range []*Threads{nil, NewThreads(3)} {
				done := x.MulPatchesGroups(first, weights, &ep, got)
				if few := bestSet != blasSet && n <= bestSet.panelCols() && !isNarrow(n, k); done != few {
					t.Errorf("%s: %d of %d columns and %d steps: %t", bestSet, groups, n, k, done)
				}
				if gapsIntact(t, got); done {
					equalBits(t, fmt.Sprintf("%s, %d: %d groups of %d columns, %d channels", bestSet, trial, groups, n, channels), got, want)
				}
			}
		}
	}
}

// TestPatchPositions: next and inner agree with position and begin.
func TestPatchPositions(t *testing.T) {
	r := newRand()
	for range 200 {
		x, rows := randomPatches(t, r, 1+r.IntN(3), false)
		lo, hi := x.inner(2)
		for i := range rows {
			at := x.position(i)
			if i > 0 && x.next(x.position(i-1)) != at {
				t.Fatalf("%+v: behind %+v is %+v, not %+v", x, x.position(i-1), x.next(x.position(i-1)), at)
			}
			inside := true
			for e := range x.Size[2] {
				pixel := at.at*x.Stride[2] - x.Before[2] + e*x.Dilation[2]
				inside = inside && pixel >= 0 && pixel < x.In[2]
			}
			if inside != (at.at >= lo && at.at < hi) {
				t.Fatalf("%+v: position %d, inner ones are [%d, %d)", x, at.at, lo, hi)
			}
		}
	}
}

// TestPatchesRefused: patches that are not in their image, and numbers that overflow, are refused.
func TestPatchesRefused(t *testing.T) {
	one := [3]int{1, 1, 1}
	y, w := New(4, 3), NewWeights(New(3, 2))
	plain := Patches{Data: make([]float32, 8), Pixel: 2, Channels: 2, In: [3]int{1, 2, 2}, Out: [3]int{1, 2, 2}, Size: one, Stride: one, Dilation: one}
	w.MulPatches(&plain, 0, &Epilogue{}, y)
	for what, change := range map[string]func(x *Patches, first *int){
		"too few elements":            func(x *Patches, first *int) { x.Data = x.Data[:7] },
		"no elements":                 func(x *Patches, first *int) { x.Data = nil },
		"rows behind the last image":  func(x *Patches, first *int) { *first = 1 },
		"rows before the first":       func(x *Patches, first *int) { *first = -1 },
		"rows that overflow":          func(x *Patches, first *int) { *first = 1<<63 - 2 },
		"no channels":                 func(x *Patches, first *int) { x.Channels = 0 },
		"other channels":              func(x *Patches, first *int) { x.Channels = 1 },
		"pixels too close":            func(x *Patches, first *int) { x.Pixel = 1 },
		"pixels too far apart":        func(x *Patches, first *int) { x.Pixel = 1 << 62 },
		"a larger image":              func(x *Patches, first *int) { x.In[0] = 2 },
		"an image that overflows":     func(x *Patches, first *int) { x.In = [3]int{1 << 31, 1 << 31, 1 << 31} },
		"a negative size":             func(x *Patches, first *int) { x.In[1] = -1 },
		"no positions":                func(x *Patches, first *int) { x.Out[2] = 0 },
		"positions that overflow":     func(x *Patches, first *int) { x.Out = [3]int{1 << 31, 1 << 31, 1 << 31} },
		"a window of nothing":         func(x *Patches, first *int) { x.Size[0] = 0 },
		"a larger window":             func(x *Patches, first *int) { x.Size[1] = 2 },
		"a window that overflows":     func(x *Patches, first *int) { x.Size = [3]int{1 << 31, 1 << 31, 1 << 31} },
		"a negative stride":           func(x *Patches, first *int) { x.Stride[2] = -1 },
		"a stride that overflows":     func(x *Patches, first *int) { x.Stride[2] = 1 << 62 },
		"a negative dilation":         func(x *Patches, first *int) { x.Dilation[0] = -1 },
		"padding that overflows":      func(x *Patches, first *int) { x.Before[2] = -1 << 63 },
		"padding that overflows down": func(x *Patches, first *int) { x.Before[1] = 1<<63 - 1 },
	} {
		x, first := plain, 0
		change(&x, &first)
		if p, ok := panicOf(func() { w.MulPatches(&x, first, &Epilogue{}, y) }).(string); !ok || p != errShape {
			t.Errorf("%s: %v", what, panicOf(func() { w.MulPatches(&x, first, &Epilogue{}, y) }))
		}
	}
}
