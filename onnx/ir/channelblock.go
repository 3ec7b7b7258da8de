package ir

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// blocked is the domain of ONNX Runtime's operators that have channels in blocks.
const blocked = microsoft + ".nchwc"

// channelBlock is the attribute that an imported Conv of blocks has for the size of blocks. No file has it.
const channelBlock = "channel_block"

// wide and narrow are the sizes of blocks: of vectors of AVX-512 and NEON, and of AVX2.
const wide, narrow = 16, 8

// Doubts says what the file of a model does not tell though results depend on it, and how that is taken.
func Doubts(m *onnx.Model, dir string) []string {
	if m.Graph == nil || !slices.ContainsFunc(m.Graph.Nodes, func(n *onnx.Node) bool { return n.Domain == blocked }) {
		return nil
	}
	block, told := blockOf(m, dir)
	if told {
		return nil
	}
	return []string{fmt.Sprintf("convolutions of %s are taken to have weights in blocks of %d channels, as processors with AVX-512 or NEON write them: "+
		"nothing in the file tells it, and if one with AVX2 wrote it, results are wrong; ONNX Runtime's level extended writes none", blocked, block)}
}

// blockOf returns the size of the blocks of channels in a model, and whether the file tells it. No field does: it is
// that of the vectors of the processor that wrote it, and ONNX Runtime reads it rightly only on such a processor. All
// nodes have the same, so what one tells counts for all.
func blockOf(m *onnx.Model, dir string) (block int64, told bool) {
	weights, block := blockBySizes(m)
	if block != 0 || len(weights) == 0 {
		return cmp.Or(block, wide), true
	}
	var fills, filters [2]int // what says narrow, and what says wide
	for _, t := range weights {
		data, err := NewValue(t, dir).Bytes()
		if err != nil || len(data) == 0 {
			continue
		}
		// First filters: where they fill up half a wide block, every second channel would be zeros in narrow ones.
		for _, channels := range []bool{false, true} {
			ifNarrow := endsInZeros(data, t.Dims, narrow, channels)
			if ifNarrow == endsInZeros(data, t.Dims, wide, channels) {
				continue
			}
			if ifNarrow {
				fills[0]++
			} else {
				fills[1]++
			}
			break
		}
		a, b := contrasts(data, t.Dims)
		filters[0], filters[1] = filters[0]+a, filters[1]+b
	}
	if (fills[0] > 0) != (fills[1] > 0) {
		filters = fills
	} else if d := filters[0] - filters[1]; d*d <= 25*(filters[0]+filters[1]) {
		// In eight trained models, with blocks of either size, the difference is right and 8 to 30 times that of chance. In
		// two with random weights it is at most 1.4 times, and the largest wrong one 4.3, of 88 pairs (2026-11-30).
		return wide, false
	}
	if filters[0] > filters[1] {
		return narrow, true
	}
	return wide, true
}

// blockBySizes returns the weights of convolutions, and the size of blocks if the sizes of weights and of what is read
// tell it, else 0.
func blockBySizes(m *onnx.Model) (weights []*onnx.Tensor, block int64) {
	tensors := make(map[string]*onnx.Tensor)
	for _, t := range m.Graph.Initializers {
		tensors[t.Name] = t
	}
	// The channels of values in blocks, with those that fill up the last block; 0 where nothing says how many.
	have := make(map[string]int64)
	for _, n := range m.Graph.Nodes {
		if len(n.Inputs) == 0 || len(n.Outputs) == 0 {
			continue
		}
		channels, inBlocks := have[n.Inputs[0]]
		switch {
		case n.Domain != blocked && !inBlocks:
			continue
		case n.Op == "ReorderOutput":
			// Narrow blocks would have fewer channels that fill up.
			op := Op{Attributes: n.Attributes}
			if real := op.Int("channels", 0); channels > 0 && channels-real >= narrow {
				return weights, wide
			}
			continue
		case n.Op == "ReorderInput" || n.Op == "Concat":
			channels = 0
		case n.Op == "Conv" && len(n.Inputs) > 1:
			t := tensors[n.Inputs[1]]
			if t == nil || len(t.Dims) != 4 || t.DataType != onnx.Float {
				channels = 0
				break
			}
			// Fewer channels than a block has are read as they are, without blocks.
			switch each := t.Dims[1]; {
			case t.Dims[0]%wide != 0 || each > wide && each%wide != 0 || each == narrow && inBlocks:
				return weights, narrow
			case each >= narrow && each < wide:
				return weights, wide
			}
			weights, channels = append(weights, t), t.Dims[0]
		}
		have[n.Outputs[0]] = channels
	}
	return weights, 0
}

// endsInZeros reports whether the last filter is zeros, or what filters have for the last channel, if blocks are of this
// size: so is what fills up a block. If they are of the other size, these are parts of several filters or channels.
func endsInZeros(data []byte, dims []int64, block int64, ofChannels bool) bool {
	filters, channels, area := dims[0], dims[1], dims[2]*dims[3]
	inner := int64(1)
	if channels%block == 0 {
		inner = block
	}
	fromFilter, fromChannel := filters-1, int64(0)
	if ofChannels {
		fromFilter, fromChannel = 0, channels-1
	}
	for f := fromFilter; f < filters; f++ {
		for c := fromChannel; c < channels; c++ {
			for p := range area {
				at := (((f/block*(channels/inner)+c/inner)*area+p)*inner+c%inner)*block + f%block
				if weightAt(data, at) != 0 {
					return false
				}
			}
		}
	}
	return true
}

func weightAt(data []byte, i int64) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
}

// contrasts counts pairs of filters in blocks of 16 that differ more if blocks are narrow, and those that do if they are
// wide. In both, a run of 8 weights in memory is of 8 filters. Narrow blocks have 8 filters in the first half of the runs
// and the others in the second. Wide ones have them in turns. Filters differ by how large their weights are, and parts of
// one hardly do.
func contrasts(data []byte, dims []int64) (ifNarrow, ifWide int) {
	runs := dims[1] * dims[2] * dims[3] * wide / narrow
	for b := range min(dims[0]/wide, 8) { // which is enough of a large model
		var sums [2][2][narrow]float64 // of squares, by half, turn and place in a run
		for run := range runs {
			for k := range int64(narrow) {
				v := weightAt(data, (b*runs+run)*narrow+k)
				sums[2*run/runs][run%2][k] += float64(v * v)
			}
		}
		for k := range narrow {
			halves := math.Abs(sums[0][0][k] + sums[0][1][k] - (sums[1][0][k] + sums[1][1][k]))
			turns := math.Abs(sums[0][0][k] + sums[1][0][k] - (sums[0][1][k] + sums[1][1][k]))
			if halves > turns {
				ifNarrow++
			} else if turns > halves {
				ifWide++
			}
		}
	}
	return ifNarrow, ifWide
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
			return []variable{b.Do("Resize", b.x(0), vectorOf(), vectorOf(scales...), attributes)}
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
