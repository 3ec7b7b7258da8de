package lower

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of ONNX Runtime that are no formulas of tensors. Most are made of operators of ONNX, see package ir.
var contributed = map[string]func(c *call) []*value{
	"com.microsoft.GroupQueryAttention": (*call).groupQuery,
	"com.microsoft.DynamicQuantizeLSTM": (*call).quantizedLSTM,
	"com.microsoft.LinearAttention":     (*call).linearAttention,

	"com.microsoft.Inverse": func(c *call) []*value {
		return c.like(routine(c, "Inverse", inverted, c.elem(0) == onnx.Float16, []variable{c.floats(0)}, tensor.NewType(array.Float64, c.shape(c.x(0))...))[0])
	},
	"com.microsoft.MurmurHash3": func(c *call) []*value {
		elem := onnx.Uint32
		if c.int("positive", 1) == 0 {
			elem = onnx.Int32
		}
		seed := uint32(c.int("seed", 0))
		return c.out(routine(c, "MurmurHash3", hashed, seed, []variable{c.x(0)}, tensor.NewType(array.Uint32, c.shape(c.x(0))...))[0], elem)
	},
	"com.microsoft.NGramRepeatBlock": func(c *call) []*value {
		ids, scores := c.shape(c.x(0)), c.shape(c.x(1))
		if len(ids) != 2 || len(scores) != 2 || ids[0] != scores[0] {
			c.fail("words of shape %v for scores of %v", ids, scores)
		}
		y := routine(c, "NGramRepeatBlock", blocked, c.int("ngram_size", 0), []variable{c.integers(0), c.floats(1)}, tensor.NewType(array.Float64, scores...))[0]
		return c.out(y, c.elem(1))
	},
	"com.microsoft.BifurcationDetector": func(c *call) []*value {
		in := []variable{c.integers(0), c.integers(1), c.integers(2)}
		if c.has(3) {
			in = append(in, c.integers(3))
		}
		p := [2]int{c.int("min_ngram_size", 1), c.int("max_ngram_size", 3)}
		y := routine(c, "BifurcationDetector", bifurcated, p, in, tensor.NewType(array.Int64, tensor.Unknown), tensor.NewType(array.Int64))
		return []*value{c.typed(y[0], onnx.Int64), c.typed(y[1], onnx.Int64)}
	},
	"com.microsoft.MaxpoolWithMask": func(c *call) []*value {
		x, kernel := c.shape(c.x(0)), c.list("kernel_shape")
		p := maskedPool{kernel, c.list("strides"), c.list("pads")}
		if p.Strides == nil {
			p.Strides = []int{1, 1}
		}
		if p.Pads == nil {
			p.Pads = make([]int, 4)
		}
		if len(x) != 4 || len(kernel) != 2 || len(p.Strides) != 2 || len(p.Pads) != 4 || min(p.Strides[0], p.Strides[1]) < 1 {
			c.fail("a window of %v, strides %v and pads %v of %v", kernel, p.Strides, p.Pads, x)
		}
		to := slices.Clone(x)
		for i := range 2 {
			to[2+i] = max((x[2+i]+p.Pads[i]+p.Pads[2+i]-kernel[i])/p.Strides[i]+1, 0)
		}
		return c.like(routine(c, "MaxpoolWithMask", maskedMaxima, p, []variable{c.floats(0), c.integers(1)}, tensor.NewType(array.Float64, to...))[0])
	},
	"com.microsoft.DynamicTimeWarping": func(c *call) []*value {
		shape := c.shape(c.x(0))
		c.failIf(len(shape) < 2 || product(shape) != product(shape[len(shape)-2:]), "costs of shape %v", shape)
		x := c.reshape(c.floats(0), shape[len(shape)-2:])
		return c.out(routine(c, "DynamicTimeWarping", warped, nil, []variable{x}, tensor.NewType(array.Int32, 2, tensor.Unknown))[0], onnx.Int32)
	},
	"com.microsoft.CropAndResize": func(c *call) []*value {
		c.regionsOf(1, 4)
		to := c.madeShape(3)
		c.failIf(!slices.Equal(c.shape(c.x(2)), to[:1]), "%v images for %d regions", c.shape(c.x(2)), to[0])
		p := crops{to, c.text("mode", "bilinear") == "nearest", c.float("extrapolation_value", 0)}
		return c.like(routine(c, "CropAndResize", cropped, p, []variable{c.floats(0), c.floats(1), c.integers(2)}, tensor.NewType(array.Float64, to...))[0])
	},
}

// inverted inverts matrices by elimination and substitution. For half floats each step is rounded to one, and what goes
// into a row is added up in blocks of four rows, as in ONNX Runtime: another order gives other numbers.
func inverted(halves bool, in []*array.Array) ([]*array.Array, error) {
	y := array.New(array.Float64, in[0].Shape()...)
	x, out, shape := slices.Clone(array.Slice[float64](in[0])), array.Slice[float64](y), in[0].Shape()
	if len(shape) < 2 || shape[len(shape)-1] != shape[len(shape)-2] {
		return nil, fmt.Errorf("%v is no shape of square matrices", shape)
	}
	n := shape[len(shape)-1]
	round, subtract := func(v float64) float64 { return v }, func(to, row []float64, by float64) { added(to, row, -by) }
	if halves {
		round = func(v float64) float64 { return float64(array.F16Of(float32(v)).Float32()) }
		subtract = func(to, row []float64, by float64) {
			for j := range to {
				to[j] = round(to[j] - round(row[j]*by))
			}
		}
	}
	sum := make([]float64, n)
	for ; len(x) > 0; x, out = x[n*n:], out[n*n:] {
		for k := range n {
			out[k*n+k] = 1
		}
		for k := range n {
			// Partial pivoting: dividing by a small pivot would make rounding errors large.
			best := k
			for i := k; i < n; i++ {
				if math.Abs(x[i*n+k]) > math.Abs(x[best*n+k]) {
					best = i
				}
			}
			for j := range n {
				x[k*n+j], x[best*n+j] = x[best*n+j], x[k*n+j]
				out[k*n+j], out[best*n+j] = out[best*n+j], out[k*n+j]
			}
			for i := k + 1; i < n; i++ {
				x[i*n+k] = round(x[i*n+k] / x[k*n+k])
				subtract(x[i*n+k+1:][:n-k-1], x[k*n+k+1:], x[i*n+k])
			}
		}
		reduce := func(to []float64, i, from, end int) {
			for j := from; j < end; j++ {
				subtract(to, out[j*n:], x[i*n+j])
			}
		}
		// far are the rows of other blocks, near those of its own block.
		solve := func(i, far, farEnd, near, nearEnd int) {
			clear(sum)
			reduce(sum, i, far, farEnd)
			row := out[i*n:][:n]
			subtract(row, sum, -1)
			reduce(row, i, near, nearEnd)
		}
		const block = 4
		for i := range n {
			start := i / block * block
			solve(i, 0, start, start, i)
		}
		for i := n - 1; i >= 0; i-- {
			end := min(i/block*block+block, n)
			solve(i, end, n, i+1, end)
			inverse := round(1 / x[i*n+i])
			for j := range n {
				out[i*n+j] = round(out[i*n+j] * inverse)
			}
		}
	}
	return []*array.Array{y}, nil
}

// hashed computes MurmurHash3 of the bytes of elements, in 32 bits (Appleby, 2008).
func hashed(seed uint32, in []*array.Array) ([]*array.Array, error) {
	data, ok := BytesOf(in[0])
	if !ok && in[0].Len() > 0 {
		return nil, fmt.Errorf("%w: hashes of %v", ErrUnsupported, in[0].DType())
	}
	y := array.New(array.Uint32, in[0].Shape()...)
	for i, size := 0, in[0].DType().Size(); i < in[0].Len(); i++ {
		h := seed
		for key := data[i*size:][:size]; len(key) >= 4; key = key[4:] {
			h ^= bits.RotateLeft32(binary.NativeEndian.Uint32(key)*0xcc9e2d51, 15) * 0x1b873593
			h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
		}
		h ^= uint32(size)
		h = (h ^ h>>16) * 0x85ebca6b
		h = (h ^ h>>13) * 0xc2b2ae35
		array.Slice[uint32](y)[i] = h ^ h>>16
	}
	return []*array.Array{y}, nil
}

// blocked makes the score of a word -Inf if the last words and this one are n words in a row that occurred before.
func blocked(n int, in []*array.Array) ([]*array.Array, error) {
	y := in[1].Clone()
	scores, words, length := array.Slice[float64](y), in[1].Shape()[1], in[0].Shape()[1]
	if n < 1 {
		return nil, fmt.Errorf("ngram_size is %d", n)
	}
	for b := range in[0].Shape()[0] {
		ids := array.Slice[int64](in[0])[b*length:][:length]
		for i := 0; i+n <= length; i++ {
			if !slices.Equal(ids[i:i+n-1], ids[length-n+1:]) {
				continue
			}
			word := ids[i+n-1]
			if word < 0 || word >= int64(words) {
				return nil, fmt.Errorf("word %d of %d", word, words)
			}
			scores[b*words+int(word)] = math.Inf(-1)
		}
	}
	return []*array.Array{y}, nil
}

// bifurcated appends to the tokens those predicted ones that agree with the source, and the first that does not. It
// then looks for the shortest end of the tokens that occurs once in the source: where the source goes on behind it is
// the second result, otherwise -1.
func bifurcated(sizes [2]int, in []*array.Array) ([]*array.Array, error) {
	source, tokens := array.Slice[int64](in[0]), slices.Clone(array.Slice[int64](in[1]))
	if len(in) > 3 {
		predicted, from := array.Slice[int64](in[3]), in[2].Int(0)
		if from < 0 || from > int64(len(source)) || len(predicted) != len(source)+1-int(from) {
			return nil, fmt.Errorf("%d tokens are predicted of %d, from %d on", len(predicted), len(source), from)
		}
		n := 0
		for n < len(source)-int(from) && predicted[n] == source[int(from)+n] {
			n++
		}
		tokens = append(tokens, predicted[:n+1]...)
	}
	found := int64(-1)
	for n := sizes[0]; n <= sizes[1] && n >= 0 && n <= len(tokens); n++ {
		end := tokens[len(tokens)-n:]
		after := func(from int) int {
			for i := from; i+n <= len(source); i++ {
				if slices.Equal(source[i:i+n], end) {
					return i + n
				}
			}
			return -1
		}
		first := after(0)
		// An end that is nowhere is nowhere with more in front of it either. One that is there twice
		// may be there once with more in front.
		if first < 0 {
			break
		}
		if found = int64(first); after(first-n+1) < 0 {
			break
		}
		found = -1
	}
	y := array.New(array.Int64, len(tokens))
	copy(array.Slice[int64](y), tokens)
	return []*array.Array{y, array.Scalar(found)}, nil
}

type maskedPool struct{ Kernel, Strides, Pads []int }

// maskedMaxima takes the largest element of each window, of whose rows it leaves out what is not in front of the first 0 of
// the mask. As in ONNX Runtime, all channels have the mask of the first one, shifted by what their sizes leave.
func maskedMaxima(p maskedPool, in []*array.Array) ([]*array.Array, error) {
	x, mask, shape := array.Slice[float64](in[0]), array.Slice[int64](in[1]), in[0].Shape()
	if in[1].Len() != in[0].Len() {
		return nil, fmt.Errorf("a mask of shape %v for %v", in[1].Shape(), shape)
	}
	height, width := shape[2], shape[3]
	at := func(i, axis int) int { return i*p.Strides[axis] - p.Pads[axis] }
	var out []float64
	rows, columns := (height+p.Pads[0]+p.Pads[2]-p.Kernel[0])/p.Strides[0]+1, (width+p.Pads[1]+p.Pads[3]-p.Kernel[1])/p.Strides[1]+1
	for c := range shape[0] * shape[1] {
		image, seen := x[c*height*width:], mask[c*height*width%(shape[0]*shape[1]):]
		for i := range rows {
			for j := range columns {
				best := float64(-math.MaxFloat32)
				for h := max(at(i, 0), 0); h < min(at(i, 0)+p.Kernel[0], height); h++ {
					for w := max(at(j, 1), 0); w < min(at(j, 1)+p.Kernel[1], width) && (seen[h*width+w] != 0 || h+w == 0); w++ {
						best = max(best, image[h*width+w])
					}
				}
				out = append(out, best)
			}
		}
	}
	return []*array.Array{array.Of(out, shape[0], shape[1], rows, columns)}, nil
}

// warped finds the cheapest path through a matrix of costs, as its rows and columns (Sakoe and Chiba, 1978).
func warped(_ any, in []*array.Array) ([]*array.Array, error) {
	x, rows, columns := array.Slice[float64](in[0]), in[0].Shape()[0], in[0].Shape()[1]
	width := columns + 1
	cost, came := make([]float64, (rows+1)*width), make([]byte, (rows+1)*width)
	for i := 1; i < len(cost); i++ {
		cost[i] = math.Inf(1)
	}
	const both, up, left = 0, 1, 2
	for j := range columns + 1 {
		came[j] = left
	}
	for i := 1; i <= rows; i++ {
		came[i*width] = up
		for j := 1; j <= columns; j++ {
			at := i*width + j
			b, u, l := cost[at-width-1], cost[at-width], cost[at-1]
			// Of equal costs the step along the row is taken, as in Whisper's own code.
			switch {
			case b < u && b < l:
				cost[at], came[at] = x[(i-1)*columns+j-1]+b, both
			case u < b && u < l:
				cost[at], came[at] = x[(i-1)*columns+j-1]+u, up
			default:
				cost[at], came[at] = x[(i-1)*columns+j-1]+l, left
			}
		}
	}
	var path [2][]int32
	for i, j := rows, columns; i > 0 || j > 0; {
		path[0], path[1] = append(path[0], int32(i-1)), append(path[1], int32(j-1))
		step := came[i*width+j]
		if step != left {
			i--
		}
		if step != up {
			j--
		}
	}
	slices.Reverse(path[0])
	slices.Reverse(path[1])
	return []*array.Array{array.Of(slices.Concat(path[0], path[1]), 2, len(path[0]))}, nil
}

type crops struct {
	To      []int
	Nearest bool
	Outside float64
}

// cropped takes parts of images, whose corners are fractions of their sizes.
func cropped(p crops, in []*array.Array) ([]*array.Array, error) {
	x, rois, of, shape := array.Slice[float64](in[0]), array.Slice[float64](in[1]), array.Slice[int64](in[2]), in[0].Shape()
	y := array.New(array.Float64, p.To...)
	out, height, width := array.Slice[float64](y), shape[2], shape[3]
	// place returns where element i of n is between two corners.
	place := func(i, n int, from, to float64, size int) float64 {
		if n == 1 {
			return float64(0.5 * (from + to) * float64(size-1))
		}
		return float64(from*float64(size-1)) + float64(float64(i)*float64((to-from)*float64(size-1)/float64(n-1)))
	}
	for i := range out {
		col, row := i%p.To[3], i/p.To[3]%p.To[2]
		channel, roi := i/(p.To[3]*p.To[2])%p.To[1], i/(p.To[3]*p.To[2]*p.To[1])
		if of[roi] < 0 || of[roi] >= int64(shape[0]) {
			return nil, fmt.Errorf("image %d of %d", of[roi], shape[0])
		}
		image := x[(int(of[roi])*shape[1]+channel)*height*width:]
		corner := rois[roi*4:]
		v, u := place(row, p.To[2], corner[0], corner[2], height), place(col, p.To[3], corner[1], corner[3], width)
		if !(v >= 0 && v <= float64(height-1) && u >= 0 && u <= float64(width-1)) {
			out[i] = p.Outside
			continue
		}
		if p.Nearest {
			out[i] = image[int(math.Round(v))*width+int(math.Round(u))]
			continue
		}
		top, left := int(v), int(u)
		bottom, right := min(top+1, height-1), min(left+1, width-1)
		dv, du := v-float64(top), u-float64(left)
		mix := func(a, b, by float64) float64 { return a + float64((b-a)*by) }
		out[i] = mix(mix(image[top*width+left], image[top*width+right], du), mix(image[bottom*width+left], image[bottom*width+right], du), dv)
	}
	return []*array.Array{y}, nil
}
