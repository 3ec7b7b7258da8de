package component

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// timeHeightConvolutionComponent is a convolution over time and height. A row of the input holds,
// for each height, a column per filter of the previous layer; a row of the output likewise. With
// offsets (t_k, h_k),
//
//	y(t)[h] = b + Σ_k x(t+t_k)[h·subsample+h_k]·W_kᵀ
//
// Heights outside the input count as zero, and so do missing times that are not required. W_k is
// the k-th block of columns of the linear parameters.
type timeHeightConvolutionComponent struct {
	training
	affine
	convolutionModel
	maxMemoryMb        float32
	useNaturalGradient bool
	ng                 naturalGradient
	minibatchesHistory float32
}

// convolutionModel is the geometry of a convolution.
type convolutionModel struct {
	filtersIn, filtersOut int
	heightIn, heightOut   int
	heightSubsample       int
	offsets               [][2]int32 // time, height; sorted
	timeOffsets                      // those of the offsets, sorted, and those required
	pieces                []patchPiece
}

// patchPiece is a run of offsets with the same time and consecutive heights, which is contiguous in
// the input and in a patch.
type patchPiece struct {
	time   int // index into times
	height int // of the first
	count  int
	column int // of the first in a patch
}

// derive computes times and pieces from the offsets.
func (m *convolutionModel) derive() {
	m.times, m.pieces = nil, nil
	for k, o := range m.offsets {
		if k == 0 || o[0] != m.offsets[k-1][0] {
			m.times = append(m.times, o[0])
		} else if last := &m.pieces[len(m.pieces)-1]; int(o[1]) == last.height+last.count {
			last.count++
			continue
		}
		m.pieces = append(m.pieces, patchPiece{len(m.times) - 1, int(o[1]), 1, k * m.filtersIn})
	}
}

// Limits of a convolution.
const (
	maxOffset  = 1 << 20
	maxPatches = 1 << 26 // elements of the patches of a row
)

func (m *convolutionModel) problem() string {
	sorted := slices.IsSortedFunc(m.offsets, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	switch {
	case !atMost(maxDim, m.filtersIn, m.heightIn) || !atMost(maxDim, m.filtersOut, m.heightOut):
		return "the dimensions are too large"
	case len(m.offsets) == 0 || !sorted || len(slices.Compact(slices.Clone(m.offsets))) != len(m.offsets):
		return "the offsets are missing, repeated or not sorted"
	case !atMost(maxPatches, len(m.offsets), m.filtersIn, m.heightOut):
		return "there are too many offsets for the height"
	case len(m.required) == 0 || repeated(m.required):
		return "the required time offsets are missing or repeated"
	}
	for _, o := range m.offsets {
		if max(o[0], -o[0], o[1], -o[1]) > maxOffset {
			return "an offset is out of range"
		}
	}
	for _, t := range m.required {
		if !slices.ContainsFunc(m.offsets, func(o [2]int32) bool { return o[0] == t }) {
			return fmt.Sprintf("the required time offset %d is not among the offsets", t)
		}
	}
	return ""
}

func (c *timeHeightConvolutionComponent) Type() string   { return "TimeHeightConvolutionComponent" }
func (c *timeHeightConvolutionComponent) InputDim() int  { return c.filtersIn * c.heightIn }
func (c *timeHeightConvolutionComponent) OutputDim() int { return c.filtersOut * c.heightOut }
func (c *timeHeightConvolutionComponent) Properties() Properties {
	return Updatable | BackpropAdds | BackpropNeedsInput | InputContiguous | OutputContiguous
}

// Init reads num-filters-in, num-filters-out, height-in, height-out, height-subsample-out, offsets
// (as t,h;t,h;…) or time-offsets and height-offsets (all pairs), required-time-offsets,
// param-stddev, bias-stddev, init-unit, max-memory-mb, use-natural-gradient, rank-in, rank-out,
// alpha-in, alpha-out and num-minibatches-history.
func (c *timeHeightConvolutionComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	m := &c.convolutionModel
	*m = convolutionModel{
		filtersIn: cfg.dim("num-filters-in"), filtersOut: cfg.dim("num-filters-out"),
		heightIn: cfg.dim("height-in"), heightOut: cfg.dim("height-out"),
		heightSubsample: cfg.dimOr("height-subsample-out", 1),
		offsets:         configOffsets(cfg),
	}
	required, ok := cfg.Ints("required-time-offsets")
	if !ok {
		for _, o := range m.offsets {
			required = append(required, o[0])
		}
	}
	slices.Sort(required)
	m.required = slices.Compact(required)
	if problem := m.problem(); problem != "" {
		cfg.check(problem)
		return
	}
	m.derive()
	c.initParams(cfg)
	c.maxMemoryMb = cfg.Float("max-memory-mb", 200)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.ng = naturalGradient{
		rankIn:  cfg.Int("rank-in", min(80, (c.m.Cols+2)/2)),
		rankOut: cfg.Int("rank-out", min(80, (c.m.Rows+1)/2)),
		alphaIn: cfg.Float("alpha-in", 4), alphaOut: cfg.Float("alpha-out", 4),
	}
	c.minibatchesHistory = cfg.Float("num-minibatches-history", 4)
}

// configOffsets returns the offsets that a line gives, sorted.
func configOffsets(cfg *ConfigLine) (offsets [][2]int32) {
	text, ok := cfg.Value("offsets")
	if ok {
		for part := range strings.SplitSeq(strings.Trim(text, "; "), ";") {
			pair, err := splitInts(part)
			if err != nil || len(pair) != 2 {
				cfg.Fail("offsets=%s: %q is not a pair of integers", fileio.Excerpt(text, 0), fileio.Excerpt(part, 0))
				return nil
			}
			offsets = append(offsets, [2]int32(pair))
		}
	} else {
		cfg.require("time-offsets", "height-offsets")
		times, _ := cfg.Ints("time-offsets")
		heights, _ := cfg.Ints("height-offsets")
		if !atMost(maxOffset, len(times), len(heights)) {
			cfg.Fail("there are too many offsets")
			return nil
		}
		for _, t := range times {
			for _, h := range heights {
				offsets = append(offsets, [2]int32{t, h})
			}
		}
	}
	slices.SortFunc(offsets, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	return offsets
}

// initParams makes random parameters, or those of a convolution that copies its input.
func (c *timeHeightConvolutionComponent) initParams(cfg *ConfigLine) {
	m := &c.convolutionModel
	cols := len(m.offsets) * m.filtersIn
	stddev := cfg.Float("param-stddev", 1/float32(math.Sqrt(float64(cols))))
	c.bias = cfg.randnVector(m.filtersOut, 0, cfg.Float("bias-stddev", 0))
	if !cfg.Bool("init-unit", false) {
		c.m = cfg.randn(m.filtersOut, cols, 0, stddev)
		c.changed()
		return
	}
	centre := slices.Index(m.offsets, [2]int32{})
	if m.filtersIn != m.filtersOut || centre < 0 {
		cfg.Fail("init-unit needs equal numbers of filters and the offset 0,0")
		return
	}
	if !cfg.makeRoom(m.filtersOut, cols) {
		return
	}
	c.m = kernel.New(m.filtersOut, cols)
	for i := range m.filtersOut {
		kernel.Row(c.m, i)[centre*m.filtersIn+i] = 1
	}
	clear(c.bias)
	c.changed()
}

func (c *timeHeightConvolutionComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Token("<Model>")
	c.convolutionModel.fields(f)
	c.affine.fields(f, false)
	f.Float("<MaxMemoryMb>", &c.maxMemoryMb)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Float("<NumMinibatchesHistory>", &c.minibatchesHistory)
	c.ng.alphas(f)
	c.ng.ranks(f)
	m := &c.convolutionModel
	f.Check(c.m.Rows == m.filtersOut && c.m.Cols == len(m.offsets)*m.filtersIn,
		"parameters of %d×%d for %d filters and %d offsets of %d",
		c.m.Rows, c.m.Cols, m.filtersOut, len(m.offsets), m.filtersIn)
}

func (m *convolutionModel) fields(f *Fields) {
	f.Token("<ConvolutionModel>")
	f.Dim("<NumFiltersIn>", &m.filtersIn)
	f.Dim("<NumFiltersOut>", &m.filtersOut)
	f.Dim("<HeightIn>", &m.heightIn)
	f.Dim("<HeightOut>", &m.heightOut)
	f.Dim("<HeightSubsampleOut>", &m.heightSubsample)
	f.Pairs("<Offsets>", &m.offsets)
	f.Ints("<RequiredTimeOffsets>", &m.required)
	f.Token("</ConvolutionModel>")
	if f.Reading() {
		if f.check(m.problem()); f.Reading() {
			m.derive()
		}
	}
}

// PrecomputeIndexes finds the input rows of each output row.
func (c *timeHeightConvolutionComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	return newOffsetRows(c, in, out, c.times, c.required)
}
