package lower

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of detectors: boxes, and what an image has in them.
var detection = map[string]func(c *call) []*value{
	"NonMaxSuppression": func(c *call) []*value {
		boxes, scores := c.shape(c.x(0)), c.shape(c.x(1))
		if len(boxes) != 3 || len(scores) != 3 || boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2] {
			c.fail("boxes of shape %v and scores of shape %v", boxes, scores)
		}
		in := []variable{c.floats(0), c.floats(1), c.orFloat(2, 0), c.orFloat(3, 0), c.orFloat(4, math.Inf(-1))}
		p := suppression{Center: c.int("center_point_box", 0) != 0}
		return c.out(routine(c, "NonMaxSuppression", suppressed, p, in, tensor.NewType(array.Int64, tensor.Unknown, 3))[0], onnx.Int64)
	},
	"MaxRoiPool": (*call).roiPool,
	"RoiAlign": func(c *call) []*value {
		p := roiOptions{
			Height: c.int("output_height", 1), Width: c.int("output_width", 1),
			Ratio: c.int("sampling_ratio", 0), Scale: c.float("spatial_scale", 1), Mode: c.oneOf("mode", "avg", "avg", "max"),
			Half: c.opset >= 16 && c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
		}
		c.regionsOf(1, 4)
		if p.Height <= 0 || p.Width <= 0 || p.Ratio < 0 || p.Ratio > maxSteps {
			c.fail("%w: size %d×%d, sampling_ratio %d", ErrUnsupported, p.Height, p.Width, p.Ratio)
		}
		return c.like(routine(c, "RoiAlign", roiAligned, p, []variable{c.floats(0), c.floats(1), c.integers(2)}, tensor.NewType(array.Float64, c.madeShape()...))[0])
	},
}

// regionsOf fails unless an input of regions has so many numbers for each.
func (c *call) regionsOf(k, numbers int) {
	if rois := c.shape(c.x(k)); len(rois) != 2 || rois[1] != numbers {
		c.fail("regions of shape %v", rois)
	}
}

type suppression struct{ Center bool }

// suppressed lists the boxes, as image, class and number, that are left if those that overlap a better
// one are left out.
func suppressed(p suppression, in []*array.Array) ([]*array.Array, error) {
	boxes, scores := array.Slice[float64](in[0]), array.Slice[float64](in[1])
	most, overlap, least := in[2].Float(0), in[3].Float(0), in[4].Float(0)
	n, classes := in[0].Dim(1), in[1].Dim(1)
	var found []int64
	for image := range in[0].Dim(0) {
		list := make([]box, n)
		for i := range list {
			list[i] = boxOf([4]float64(boxes[(image*n+i)*4:]), p.Center)
		}
		for class := range classes {
			s := scores[(image*classes+class)*n:][:n]
			for _, i := range bestBoxes(list, s, most, overlap, least) {
				found = append(found, int64(image), int64(class), int64(i))
			}
		}
	}
	return []*array.Array{array.Of(found, len(found)/3, 3)}, nil
}

// bestBoxes selects boxes of one class, at most so many, in the order of their scores.
func bestBoxes(boxes []box, scores []float64, most, overlap, least float64) []int {
	var order []int
	for i, s := range scores {
		if s > least {
			order = append(order, i)
		}
	}
	// Stable: of equal scores the first box wins.
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	var chosen []int
	for _, i := range order {
		if float64(len(chosen)) >= most {
			break
		}
		if !slices.ContainsFunc(chosen, func(j int) bool { return boxes[i].over(boxes[j]) > overlap }) {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// A box has its lower and upper ends in two dimensions.
type box struct{ low, high [2]float64 }

// boxOf makes a box of two opposite corners, in any order, or of its center and its sizes.
func boxOf(v [4]float64, center bool) (b box) {
	for d := range 2 {
		from, to := v[d], v[d+2]
		if center {
			half := float64(v[d+2] / 2)
			from, to = v[d]-half, v[d]+half
		}
		b.low[d], b.high[d] = min(from, to), max(from, to)
	}
	return b
}

func (b box) area() float64 { return float64((b.high[0] - b.low[0]) * (b.high[1] - b.low[1])) }

// over returns the area that two boxes share divided by the area that they cover together, 0 if one is
// empty.
func (b box) over(other box) float64 {
	common := 1.0
	for d := range 2 {
		common = float64(common * max(0, min(b.high[d], other.high[d])-max(b.low[d], other.low[d])))
	}
	// NaN as well: a box with such a corner overlaps none.
	if !(common > 0) {
		return 0
	}
	return common / (b.area() + other.area() - common)
}

type roiOptions struct {
	Height, Width, Ratio int
	Scale                float64
	Mode                 string
	Half                 bool
}

// maxSamples bounds the places at which a RoiAlign reads, since regions may be of any size.
const maxSamples = 1 << 28

// roiAligned averages, or takes the largest of, elements of an image that are spread over each cell of
// a region. x is [N, C, H, W], regions are [R, 4], x before y.
func roiAligned(p roiOptions, in []*array.Array) ([]*array.Array, error) {
	x, rois, images := array.Slice[float64](in[0]), array.Slice[float64](in[1]), array.Slice[int64](in[2])
	n, channels, h, w := in[0].Dim(0), in[0].Dim(1), in[0].Dim(2), in[0].Dim(3)
	y := make([]float64, len(images)*channels*p.Height*p.Width)
	samples := 0.0
	for r, image := range images {
		if image < 0 || image >= int64(n) || h*w == 0 {
			return nil, fmt.Errorf("region %d is of image %d of %d", r, image, n)
		}
		rows, columns := p.spread(rois[4*r+1], rois[4*r+3], p.Height), p.spread(rois[4*r], rois[4*r+2], p.Width)
		samples += float64(float64(p.Height*p.Width*channels) * rows.count * columns.count)
		if !(samples <= maxSamples) {
			return nil, fmt.Errorf("%w: region %d takes more than %d samples", ErrUnsupported, r, maxSamples)
		}
		for c := range channels {
			plane := plane{x[(int(image)*channels+c)*h*w:][:h*w], h, w}
			out := y[(r*channels+c)*p.Height*p.Width:]
			for i := range p.Height * p.Width {
				out[i] = p.cell(plane, rows, columns, i/p.Width, i%p.Width)
			}
		}
	}
	return []*array.Array{array.Of(y, len(images), channels, p.Height, p.Width)}, nil
}

type roiPool struct {
	Height, Width int
	Scale         float64
}

// roiPool lowers MaxRoiPool, the largest elements of each cell of regions.
func (c *call) roiPool() []*value {
	c.regionsOf(1, 5)
	shape := c.madeShape()
	c.failIf(shape[2] < 1 || shape[3] < 1, "%v cells", shape[2:])
	p := roiPool{shape[2], shape[3], c.float("spatial_scale", 1)}
	return c.like(routine(c, "MaxRoiPool", roiPooled, p, []variable{c.floats(0), c.floats(1)}, tensor.NewType(array.Float64, shape...))[0])
}

// roiPooled computes MaxRoiPool as "Fast R-CNN" (Girshick, 2015) has it: regions, of image, x, y, x, y, are
// rounded to elements, cells overlap, and those without an element are 0.
func roiPooled(p roiPool, in []*array.Array) ([]*array.Array, error) {
	x, rois := array.Slice[float64](in[0]), array.Slice[float64](in[1])
	n, channels, h, w := in[0].Dim(0), in[0].Dim(1), in[0].Dim(2), in[0].Dim(3)
	y := array.New(array.Float64, in[1].Dim(0), channels, p.Height, p.Width)
	out := array.Slice[float64](y)
	// cell returns which elements a cell has of the region from a to b, and of size elements at all.
	cell := func(a, b float64, i, cells, size int) (from, to int) {
		a = math.Round(float64(a * p.Scale))
		length := max(math.Round(float64(b*p.Scale))-a+1, 1)
		clip := func(v float64) int {
			if !(v > 0) { // or no number
				return 0
			}
			return int(min(v, float64(size)))
		}
		step := length / float64(cells)
		return clip(math.Floor(float64(float64(i)*step)) + a), clip(math.Ceil(float64(float64(i+1)*step)) + a)
	}
	for r := range in[1].Dim(0) {
		roi := rois[5*r:][:5]
		if !(roi[0] >= 0 && roi[0] < float64(n)) {
			return nil, fmt.Errorf("region %d is of image %g of %d", r, roi[0], n)
		}
		for i := range p.Height {
			top, bottom := cell(roi[2], roi[4], i, p.Height, h)
			for j := range p.Width {
				left, right := cell(roi[1], roi[3], j, p.Width, w)
				for c := range channels {
					plane, most := x[(int(roi[0])*channels+c)*h*w:][:h*w], math.Inf(-1)
					for row := top; row < bottom; row++ {
						// A region that lies outside may end in front of its beginning.
						for _, v := range plane[row*w+left : row*w+max(left, right)] {
							most = max(most, v)
						}
					}
					if bottom <= top || right <= left {
						most = 0
					}
					out[((r*channels+c)*p.Height+i)*p.Width+j] = most
				}
			}
		}
	}
	return []*array.Array{y}, nil
}

// A spread is where samples lie in a dimension: so many in each cell.
type spread struct{ from, size, count float64 }

func (p roiOptions) spread(from, to float64, cells int) spread {
	from, to = float64(from*p.Scale), float64(to*p.Scale)
	length := to - from
	if p.Half {
		from -= 0.5
	} else {
		length = max(length, 1) // as the operator was before it had a choice
	}
	s := spread{from, length / float64(cells), float64(p.Ratio)}
	// About one sample for each element of the cell.
	if p.Ratio == 0 {
		s.count = max(math.Ceil(s.size), 0)
	}
	return s
}

// at returns the place of a sample in a cell.
func (s spread) at(cell, sample int) float64 {
	return s.from + float64(float64(cell)*s.size) + float64((float64(sample)+0.5)*s.size)/s.count
}

// cell computes an element. A maximum is taken over weighted neighbours, and not over their sums, as in
// ONNX's reference, which follows ONNX Runtime.
func (p roiOptions) cell(x plane, rows, columns spread, i, j int) float64 {
	sum, most := 0.0, math.Inf(-1)
	for a := range int(rows.count) {
		for b := range int(columns.count) {
			for _, v := range x.neighbours(rows.at(i, a), columns.at(j, b)) {
				sum, most = sum+v, max(most, v)
			}
		}
	}
	n := rows.count * columns.count
	switch {
	case n < 1:
		return 0
	case p.Mode == "max":
		return most
	}
	return sum / n
}

// A plane is a matrix that is read between its elements.
type plane struct {
	x    []float64
	h, w int
}

// neighbours returns the four elements around a place, each with its weight. More than one element
// outside everything is 0.
func (p plane) neighbours(y, x float64) (v [4]float64) {
	if !(y >= -1 && y <= float64(p.h) && x >= -1 && x <= float64(p.w)) {
		return v
	}
	i, down := lower(y, p.h)
	j, right := lower(x, p.w)
	k, l := min(i+1, p.h-1), min(j+1, p.w-1)
	up, left := 1-down, 1-right
	return [4]float64{
		float64(float64(up*left) * p.x[i*p.w+j]), float64(float64(up*right) * p.x[i*p.w+l]),
		float64(float64(down*left) * p.x[k*p.w+j]), float64(float64(down*right) * p.x[k*p.w+l]),
	}
}

// lower returns the element of n before a place, and how far it is behind that.
func lower(at float64, n int) (int, float64) {
	at = max(at, 0)
	if i := int(at); i < n-1 {
		return i, at - float64(i)
	}
	return n - 1, 0
}
