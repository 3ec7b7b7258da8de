package ir

import (
	"encoding/binary"
	"math"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// blocked is the domain of ONNX Runtime's operators that have channels in blocks.
const blocked = microsoft + ".nchwc"

// channelBlock is the attribute that an imported Conv of blocks has for the size of blocks. No file has it.
const channelBlock = "channel_block"

// wide and narrow are the sizes of blocks: of vectors of AVX-512 and NEON, and of AVX2.
const wide, narrow = 16, 8

// blockOf returns the size of the blocks of channels in a model. Files do not say it: it is that of the vectors of the
// processor that wrote them, and ONNX Runtime reads them rightly only on such a processor. All nodes have the same, so
// one with sizes that are no multiples of the wide one tells it for all, and so does one that is taken to have less than
// a block of channels, from 9 on. What is left is told by the weights.
func blockOf(m *onnx.Model, dir string) int64 {
	weights := make(map[string]*onnx.Tensor)
	for _, t := range m.Graph.Initializers {
		weights[t.Name] = t
	}
	var ifNarrow, ifWide float64
	for _, n := range m.Graph.Nodes {
		if n.Domain != blocked || n.Op != "Conv" || len(n.Inputs) < 2 {
			continue
		}
		t := weights[n.Inputs[1]]
		if t == nil || len(t.Dims) != 4 || t.DataType != onnx.Float {
			continue
		}
		switch filters, channels := t.Dims[0], t.Dims[1]; {
		case filters%wide != 0 || channels > wide && channels%wide != 0:
			return narrow
		case channels > narrow && channels < wide:
			return wide
		default:
			a, b := contrasts(NewValue(t, dir))
			ifNarrow, ifWide = ifNarrow+a, ifWide+b
		}
	}
	// In eleven models that ONNX Runtime wrote, filters differ 2.0 to 8.4 times as much if blocks are taken to be narrow,
	// which they were, and 0.1 to 1.2 times with weights in wide ones (2026-11-30). One with random weights tells nothing.
	if ifNarrow > 2*ifWide {
		return narrow
	}
	return wide
}

// contrasts returns how different the first 16 filters are, if blocks are narrow and if they are wide. In both, a run
// of 8 weights in memory is of 8 filters. Narrow blocks have 8 filters in the first half of the runs and the others in the
// second. Wide ones have them in turns. Filters differ by how large their weights are, and parts of one hardly do.
func contrasts(x *Value) (ifNarrow, ifWide float64) {
	data, err := x.Bytes()
	d := x.Tensor.Dims
	runs := d[1] * d[2] * d[3] * wide / narrow
	if err != nil || d[0] < wide || runs < 4 || int64(len(data)) < runs*narrow*4 {
		return 0, 0
	}
	var sums [2][2][narrow]float64 // of squares, by half, turn and place in a run
	for run := range runs {
		half, turn := min(2*run/runs, 1), run%2
		for k := range int64(narrow) {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*(run*narrow+k):])))
			sums[half][turn][k] += float64(v * v)
		}
	}
	var halves, turns [narrow]float64
	for k := range halves {
		halves[k] = difference(sums[0][0][k]+sums[0][1][k], sums[1][0][k]+sums[1][1][k])
		turns[k] = difference(sums[0][0][k]+sums[1][0][k], sums[0][1][k]+sums[1][1][k])
	}
	return variance(halves), variance(turns)
}

// difference returns the difference of two sums as a share of both. Filters that fill up a block have no sum, which tells
// much more than any other.
func difference(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case a == 0:
		return -10
	case b == 0:
		return 10
	}
	return (a - b) / (a + b)
}

// variance returns the variance of numbers: what all have in common says nothing about filters.
func variance(list [narrow]float64) float64 {
	var sum, squares float64
	for _, v := range list {
		sum += v
		squares += float64(v * v)
	}
	return max(float64(squares/narrow)-float64(sum/narrow*(sum/narrow)), 0)
}

// contribBlocked are the operators of the domain com.microsoft.nchwc, which ONNX Runtime writes at its highest level:
// channels are in blocks, and those of a block are the last dimension in memory, though shapes do not say so. What reads
// blocks is of this domain as well or element-wise, so here the order is the plain one everywhere, but for weights,
// which are constants in blocks.
var contribBlocked = func() []Operator {
	list := []Operator{
		{Type: "Conv", MinInputs: 2, MaxInputs: 4, Body: blockedConv},
		{Type: "ReorderInput", MinInputs: 1, MaxInputs: 1, Body: func(b *Builder) []variable {
			if b.Op.Int("channels_last", 0) != 0 {
				return []variable{b.transpose(b.x(0), 0, 3, 1, 2)}
			}
			return []variable{b.Do("Identity", b.x(0))}
		}},
		{Type: "ReorderOutput", MinInputs: 1, MaxInputs: 1, Body: func(b *Builder) []variable {
			y := b.slice(b.x(0), 1, 0, b.Op.Int("channels", 0))
			if b.Op.Int("channels_last", 0) != 0 {
				y = b.transpose(y, 0, 2, 3, 1)
			}
			return []variable{y}
		}},
		{Type: "Upsample", MinInputs: 1, MaxInputs: 1, Body: func(b *Builder) []variable {
			scales := lists.Map(b.Ints("scales"), func(n int64) float32 { return float32(n) })
			attributes := b.keep("mode", "coordinate_transformation_mode")
			if b.Op.Text("mode", "nearest") == "nearest" {
				attributes = []*onnx.Attribute{String("mode", "nearest"), String("coordinate_transformation_mode", "asymmetric"), String("nearest_mode", "floor")}
			}
			return []variable{b.Do("Resize", b.x(0), nil, vectorOf(scales...), attributes)}
		}},
	}
	for _, pool := range []string{"MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"} {
		list = append(list, Operator{Type: pool, MinInputs: 1, MaxInputs: 1,
			Body: same(pool, "auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")})
	}
	for i := range list {
		list[i].Domain = blocked
	}
	return list
}()

func blockedConv(b *Builder) []variable {
	x, w := b.x(0), b.x(1)
	b.failIf(b.rankOf(w) != 4, "weights of %d dimensions", b.rankOf(w))
	m, channels, height, width := b.number(w, 0), b.number(w, 1), b.number(w, 2), b.number(w, 3)
	block := b.Op.Int(channelBlock, wide)
	b.failIf(block < 1 || m%block != 0, "%d filters in blocks of %d", m, block)
	if channels%block == 0 {
		w = b.reshape(w, m/block, channels/block, height, width, block, block)
		w = b.transpose(w, 0, 5, 1, 4, 2, 3)
	} else { // of plain inputs, or of each channel alone
		w = b.transpose(b.reshape(w, m/block, channels, height, width, block), 0, 4, 1, 2, 3)
	}
	w = b.reshape(w, m, channels, height, width)
	// Weights have zeros for channels that fill up the last block, which inputs lack here or have too many of.
	all := channels * b.Op.Int("group", 1)
	if have, ok := b.known(x, 1); !ok || have != all {
		none := Int64s(0, 0, 0, 0, 0)
		x = b.Do("Pad", x, b.concat(0, none, b.unsqueeze(b.sub(Int64(all), b.size(x, 1)), 0), Int64s(0, 0)))
	}
	y := b.Do("Conv", x, w, b.x(2), b.keep("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))
	return []variable{b.activated(b.plus(y, b.x(3)), b.keep("activation_params"))}
}
