package component

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// restrictedAttentionComponent is multi-head attention over a few frames at a fixed stride around each frame. For each head, a row of
// the input holds a key, a value, a query, and a number per frame that is added to the logits:
//
//	logit_k = extra_k + KeyScale·query·key(t+k·stride);  weights = softmax(logits);  y = Σ weight_k·value(t+k·stride)
//
// The weights can be part of the output. Frames that are not there, and not required, count as zero.
type restrictedAttentionComponent struct {
	numHeads, keyDim, valueDim  int
	numLeft, numRight           int // frames on either side
	stride                      int
	leftRequired, rightRequired int
	outputContext               bool
	keyScale                    float32

	statsCount     float64
	entropyStats   []float64 // per head; empty until statistics come in
	posteriorStats kaldiio.DoubleMatrix
}

// Type is "RestrictedAttentionComponent".
func (c *restrictedAttentionComponent) Type() string { return "RestrictedAttentionComponent" }

// contextDim is the number of frames that a frame attends to.
func (c *restrictedAttentionComponent) contextDim() int { return c.numLeft + 1 + c.numRight }

// headIn and headOut are the numbers of columns of a head.
func (c *restrictedAttentionComponent) headIn() int { return 2*c.keyDim + c.valueDim + c.contextDim() }
func (c *restrictedAttentionComponent) headOut() int {
	if c.outputContext {
		return c.valueDim + c.contextDim()
	}
	return c.valueDim
}

// InputDim is the number of columns of all heads.
func (c *restrictedAttentionComponent) InputDim() int { return c.numHeads * c.headIn() }

// OutputDim is the number of columns of all heads.
func (c *restrictedAttentionComponent) OutputDim() int { return c.numHeads * c.headOut() }

// Properties of attention.
func (c *restrictedAttentionComponent) Properties() Properties {
	return PropagateAdds | BackpropAdds | BackpropNeedsInput | StoresStats | UsesMemo
}

// Init knows num-heads, key-dim, value-dim, time-stride, num-left-inputs, num-right-inputs, num-left-inputs-required,
// num-right-inputs-required, output-context, key-scale.
func (c *restrictedAttentionComponent) Init(cfg *ConfigLine) error {
	cfg.require("time-stride", "num-left-inputs", "num-right-inputs")
	*c = restrictedAttentionComponent{
		numHeads: cfg.dimOr("num-heads", 1), keyDim: cfg.dim("key-dim"), valueDim: cfg.dim("value-dim"),
		stride:  cfg.Int("time-stride", 1),
		numLeft: cfg.Int("num-left-inputs", 0), numRight: cfg.Int("num-right-inputs", 0),
		outputContext: cfg.Bool("output-context", true),
	}
	// Less than nothing stands for all.
	if c.leftRequired = cfg.Int("num-left-inputs-required", -1); c.leftRequired < 0 {
		c.leftRequired = c.numLeft
	}
	if c.rightRequired = cfg.Int("num-right-inputs-required", -1); c.rightRequired < 0 {
		c.rightRequired = c.numRight
	}
	c.keyScale = cfg.Float("key-scale", float32(1/math.Sqrt(float64(c.keyDim))))
	if !c.valid() {
		cfg.Fail("the numbers of inputs, the stride or the scale are out of range, or the dimensions too large")
	}
	return cfg.Err()
}

func (c *restrictedAttentionComponent) valid() bool {
	return c.numLeft >= 0 && c.numRight >= 0 && c.numLeft+c.numRight > 0 && c.numLeft < maxWindow && c.numRight < maxWindow &&
		c.leftRequired >= 0 && c.leftRequired <= c.numLeft && c.rightRequired >= 0 && c.rightRequired <= c.numRight &&
		c.stride > 0 && product(math.MaxInt32, c.stride, max(c.numLeft, c.numRight)) && c.keyScale > 0 &&
		product(maxDim, c.numHeads, 2*c.keyDim+c.valueDim+c.contextDim())
}

func (c *restrictedAttentionComponent) makeStats() {
	n := c.contextDim()
	c.entropyStats = make([]float64, c.numHeads)
	c.posteriorStats = kaldiio.DoubleMatrix{Rows: c.numHeads, Cols: n, Stride: n, Data: make([]float64, c.numHeads*n)}
}

// Fields of the component.
func (c *restrictedAttentionComponent) Fields(f *Fields) {
	f.Dim("<NumHeads>", &c.numHeads)
	f.Dim("<KeyDim>", &c.keyDim)
	f.Dim("<ValueDim>", &c.valueDim)
	f.Int("<NumLeftInputs>", &c.numLeft)
	f.Int("<NumRightInputs>", &c.numRight)
	f.Int("<TimeStride>", &c.stride)
	f.Int("<NumLeftInputsRequired>", &c.leftRequired)
	f.Int("<NumRightInputsRequired>", &c.rightRequired)
	f.Bool("<OutputContext>", &c.outputContext)
	f.Float("<KeyScale>", &c.keyScale)
	f.Check(c.valid(), "the numbers of inputs, the stride or the scale are out of range, or the dimensions too large")
	f.Double("<StatsCount>", &c.statsCount)
	f.DoubleVector("<EntropyStats>", &c.entropyStats)
	f.doubleMatrix("<PosteriorStats>", &c.posteriorStats)
	none := len(c.entropyStats) == 0 && c.posteriorStats.Rows == 0
	f.Check(none || len(c.entropyStats) == c.numHeads && c.posteriorStats.Rows == c.numHeads && c.posteriorStats.Cols == c.contextDim(),
		"statistics of %d and %d×%d elements", len(c.entropyStats), c.posteriorStats.Rows, c.posteriorStats.Cols)
}

// frames returns the times of left frames before and right frames after t.
func (c *restrictedAttentionComponent) frames(t int32, left, right int) window {
	s := int64(c.stride)
	return window{int64(t) - int64(left)*s, int64(t) + int64(right)*s, s}
}

// InputIndexes appends the indexes of all frames that out attends to.
func (c *restrictedAttentionComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return c.frames(out.T, c.numLeft, c.numRight).inputs(out, dst)
}

// IsComputable wants the required frames, and uses all there are.
func (c *restrictedAttentionComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	ok := true
	c.frames(out.T, c.leftRequired, c.rightRequired).eachTime(out, func(x index.Index) bool {
		ok = has(x)
		return ok
	})
	if ok && used != nil {
		c.frames(out.T, c.numLeft, c.numRight).computable(out, has, used)
	}
	return ok
}

// ReorderIndexes leaves the indexes as they are.
func (c *restrictedAttentionComponent) ReorderIndexes(in, out *[]index.Index) {}

// attended is the Precomputed: for each output row, the input row of each frame that it attends to, or -1.
type attended struct {
	rows   []int32
	inRows int
}

// PrecomputeIndexes finds the rows that each row attends to.
func (c *restrictedAttentionComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	find := newRowFinder(in)
	n := c.contextDim()
	a := &attended{rows: make([]int32, len(out)*n), inRows: len(in)}
	rows := make([]int32, len(out))
	for k := range n {
		offset := int32((k - c.numLeft) * c.stride)
		find.atOffset(out, offset, rows)
		for i, r := range rows {
			if r < 0 && k >= c.numLeft-c.leftRequired && k <= c.numLeft+c.rightRequired {
				return nil, missingInput(c, out[i], offset)
			}
			a.rows[i*n+k] = r
		}
	}
	return a, nil
}

func (c *restrictedAttentionComponent) attended(pre Precomputed, inRows, outRows int) (*attended, error) {
	a, ok := pre.(*attended)
	if !ok || len(a.rows) != outRows*c.contextDim() || a.inRows != inRows {
		return nil, fmt.Errorf("%s: precomputed indexes do not fit %d input and %d output rows: %w", c.Type(), inRows, outRows, ErrShape)
	}
	return a, nil
}

// attentionHead is the parts of a head's columns in a row of the input.
type attentionHead struct{ key, value, query, extra []float32 }

func (c *restrictedAttentionComponent) head(row []float32, h int) attentionHead {
	row = row[h*c.headIn() : (h+1)*c.headIn()]
	k, v := c.keyDim, c.valueDim
	return attentionHead{row[:k], row[k : k+v], row[k+v : 2*k+v], row[2*k+v:]}
}

// Propagate adds the weighted values, and the weights, to the output. The weights are the memo.
func (c *restrictedAttentionComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(c, in, out); err != nil {
		return nil, err
	}
	a, err := c.attended(pre, in.Rows, out.Rows)
	if err != nil {
		return nil, err
	}
	n := c.contextDim()
	weights := w.newMemo(out.Rows, c.numHeads*n)
	for i := range out.Rows {
		rows := a.rows[i*n : (i+1)*n]
		for h := range c.numHeads {
			p := kernel.Row(weights.Matrix, i)[h*n : (h+1)*n]
			c.attend(in, kernel.Row(in, int(rows[c.numLeft])), rows, h, p)
			y := kernel.Row(out, i)[h*c.headOut() : (h+1)*c.headOut()]
			for k, r := range rows {
				if r >= 0 {
					kernel.AddVec(y, p[k], c.head(kernel.Row(in, int(r)), h).value)
				}
			}
			if c.outputContext {
				kernel.AddVec(y[c.valueDim:], 1, p)
			}
		}
	}
	w.lend(weights)
	return weights, nil
}

// attend computes the weights p of a head for the row x.
func (c *restrictedAttentionComponent) attend(in kernel.Matrix, x []float32, rows []int32, h int, p []float32) {
	own := c.head(x, h)
	for k, r := range rows {
		p[k] = own.extra[k]
		if r >= 0 {
			p[k] += float32(c.keyScale * kernel.Dot(own.query, c.head(kernel.Row(in, int(r)), h).key))
		}
	}
	kernel.SoftmaxVec(p, p, 0)
}

// Backprop adds the derivatives of keys, values, queries and extra logits.
func (c *restrictedAttentionComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	n := c.contextDim()
	a, err := c.attended(pre, inValue.Rows, outDeriv.Rows)
	if err != nil {
		return err
	}
	weights, ok := memoOf(memo, outDeriv.Rows, c.numHeads*n)
	if !ok || inDeriv.Rows != inValue.Rows {
		return fmt.Errorf("%s: backprop: the memo does not fit %d rows: %w", c.Type(), outDeriv.Rows, ErrShape)
	}
	mark := w.Mark()
	defer w.Release(mark)
	d := w.Vector(n)
	for i := range outDeriv.Rows {
		rows := a.rows[i*n : (i+1)*n]
		for h := range c.numHeads {
			p := kernel.Row(weights.Matrix, i)[h*n : (h+1)*n]
			dy := kernel.Row(outDeriv, i)[h*c.headOut() : (h+1)*c.headOut()]
			c.backprop(inValue, inDeriv, rows, h, p, dy, d)
		}
	}
	w.free(weights)
	return nil
}

// backprop handles a head of an output row. d is scratch memory for the derivatives of the logits.
func (c *restrictedAttentionComponent) backprop(x, dx kernel.Matrix, rows []int32, h int, p, dy, d []float32) {
	mean := float32(0)
	for k, r := range rows {
		d[k] = 0
		if c.outputContext {
			d[k] = dy[c.valueDim+k]
		}
		if r >= 0 {
			d[k] += kernel.Dot(c.head(kernel.Row(x, int(r)), h).value, dy[:c.valueDim])
			kernel.AddVec(c.head(kernel.Row(dx, int(r)), h).value, p[k], dy[:c.valueDim])
		}
		mean += float32(p[k] * d[k])
	}
	own, dOwn := c.head(kernel.Row(x, int(rows[c.numLeft])), h), c.head(kernel.Row(dx, int(rows[c.numLeft])), h)
	for k, r := range rows {
		g := float32(p[k] * (d[k] - mean))
		dOwn.extra[k] += g
		if r >= 0 {
			kernel.AddVec(dOwn.query, c.keyScale*g, c.head(kernel.Row(x, int(r)), h).key)
			kernel.AddVec(c.head(kernel.Row(dx, int(r)), h).key, c.keyScale*g, own.query)
		}
	}
}

// StoreStats accumulates the weights and their entropy.
func (c *restrictedAttentionComponent) StoreStats(in, out kernel.Matrix, memo Memo) {
	n := c.contextDim()
	weights, ok := memoOf(memo, out.Rows, c.numHeads*n)
	if !ok {
		return
	}
	if len(c.entropyStats) == 0 {
		c.makeStats()
	}
	for i := range weights.Rows {
		for h := range c.numHeads {
			sums := c.posteriorStats.Data[h*c.posteriorStats.Stride:][:n]
			for k, p := range kernel.Row(weights.Matrix, i)[h*n : (h+1)*n] {
				sums[k] += float64(p)
				if p > 0 {
					c.entropyStats[h] -= float64(float64(p) * elementary.Log(float64(p)))
				}
			}
		}
	}
	c.statsCount += float64(weights.Rows)
}

// ZeroStats forgets the statistics.
func (c *restrictedAttentionComponent) ZeroStats() {
	c.statsCount = 0
	clear(c.entropyStats)
	clear(c.posteriorStats.Data)
}
