package component

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// restrictedAttentionComponent is multi-head attention over a few frames at a fixed stride around
// each frame. For each head, a row of the input holds a key, a value, a query, and a number per
// frame that is added to the logits:
//
//	logit_k = extra_k + keyScale·query·key(t+k·stride);  weights = softmax(logits);  y = Σ weight_k·value(t+k·stride)
//
// The output can include the weights. Frames that are missing and not required count as zero.
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

func (c *restrictedAttentionComponent) Type() string   { return "RestrictedAttentionComponent" }
func (c *restrictedAttentionComponent) InputDim() int  { return c.numHeads * c.headIn() }
func (c *restrictedAttentionComponent) OutputDim() int { return c.numHeads * c.headOut() }
func (c *restrictedAttentionComponent) Properties() Properties {
	return PropagateAdds | BackpropAdds | BackpropNeedsInput | StoresStats | UsesMemo
}

// contextDim returns the number of frames that a frame attends to.
func (c *restrictedAttentionComponent) contextDim() int { return c.numLeft + 1 + c.numRight }

// headIn returns the number of input columns of a head.
func (c *restrictedAttentionComponent) headIn() int { return 2*c.keyDim + c.valueDim + c.contextDim() }

// headOut returns the number of output columns of a head.
func (c *restrictedAttentionComponent) headOut() int {
	if c.outputContext {
		return c.valueDim + c.contextDim()
	}
	return c.valueDim
}

// Init reads num-heads, key-dim, value-dim, time-stride, num-left-inputs, num-right-inputs,
// num-left-inputs-required, num-right-inputs-required, output-context and key-scale.
func (c *restrictedAttentionComponent) Init(cfg *ConfigLine) {
	cfg.require("time-stride", "num-left-inputs", "num-right-inputs")
	c.numHeads, c.keyDim, c.valueDim = cfg.dimOr("num-heads", 1), cfg.dim("key-dim"), cfg.dim("value-dim")
	c.stride = cfg.Int("time-stride", 1)
	c.numLeft, c.numRight = cfg.Int("num-left-inputs", 0), cfg.Int("num-right-inputs", 0)
	c.outputContext = cfg.Bool("output-context", true)
	// A negative number means all.
	if c.leftRequired = cfg.Int("num-left-inputs-required", -1); c.leftRequired < 0 {
		c.leftRequired = c.numLeft
	}
	if c.rightRequired = cfg.Int("num-right-inputs-required", -1); c.rightRequired < 0 {
		c.rightRequired = c.numRight
	}
	c.keyScale = cfg.Float("key-scale", float32(1/math.Sqrt(float64(c.keyDim))))
	cfg.check(c.problem())
}

func (c *restrictedAttentionComponent) problem() string {
	if c.numLeft >= 0 && c.numRight >= 0 && c.numLeft+c.numRight > 0 && c.numLeft < maxWindow && c.numRight < maxWindow &&
		c.leftRequired >= 0 && c.leftRequired <= c.numLeft && c.rightRequired >= 0 && c.rightRequired <= c.numRight &&
		c.stride > 0 && atMost(math.MaxInt32, c.stride, max(c.numLeft, c.numRight)) && c.keyScale > 0 &&
		atMost(maxDim, c.numHeads, 2*c.keyDim+c.valueDim+c.contextDim()) {
		return ""
	}
	return "a number of inputs, the stride or the scale is out of range, or the dimensions are too large"
}

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
	f.check(c.problem())
	f.Double("<StatsCount>", &c.statsCount)
	f.DoubleVector("<EntropyStats>", &c.entropyStats)
	f.doubleMatrix("<PosteriorStats>", &c.posteriorStats)
	none := len(c.entropyStats) == 0 && c.posteriorStats.Rows == 0
	f.Check(none || len(c.entropyStats) == c.numHeads && c.posteriorStats.Rows == c.numHeads && c.posteriorStats.Cols == c.contextDim(),
		"statistics of %d and %d×%d elements", len(c.entropyStats), c.posteriorStats.Rows, c.posteriorStats.Cols)
}

// frames returns the times of the frames from left frames before t to right frames after it.
func (c *restrictedAttentionComponent) frames(t int32, left, right int) window {
	s := int64(c.stride)
	return window{int64(t) - int64(left)*s, int64(t) + int64(right)*s, s}
}

// InputIndexes appends the indexes of all frames that out attends to.
func (c *restrictedAttentionComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return c.frames(out.T, c.numLeft, c.numRight).inputs(out, dst)
}

// IsComputable needs the required frames, and uses all that are there.
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

// PrecomputeIndexes finds the rows that each row attends to.
func (c *restrictedAttentionComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	offsets := make([]int32, c.contextDim())
	for k := range offsets {
		offsets[k] = int32((k - c.numLeft) * c.stride)
	}
	required := offsets[c.numLeft-c.leftRequired : c.numLeft+c.rightRequired+1]
	return newOffsetRows(c, in, out, offsets, required)
}

// attentionHead holds the parts of a head's columns in a row of the input.
type attentionHead struct{ key, value, query, extra []float32 }

func (c *restrictedAttentionComponent) head(row []float32, h int) attentionHead {
	row = row[h*c.headIn() : (h+1)*c.headIn()]
	k, v := c.keyDim, c.valueDim
	return attentionHead{row[:k], row[k : k+v], row[k+v : 2*k+v], row[2*k+v:]}
}

// Propagate adds the weighted values, and with outputContext the weights, to the output. The
// weights are the memo.
func (c *restrictedAttentionComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	n := c.contextDim()
	a, ok := pass.Pre.(*offsetRows)
	if !ok || !a.fits(n, in.Rows, out.Rows) {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	weights := w.newMemo(out.Rows, c.numHeads*n)
	for i := range out.Rows {
		rows := a.of(i)
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
	w.lend(weights, pass)
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
func (c *restrictedAttentionComponent) Backprop(w *Workspace, pass BackwardPass) error {
	n := c.contextDim()
	a, ok := pass.Pre.(*offsetRows)
	if !ok || !a.fits(n, pass.InValue.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InValue.Rows, pass.OutDeriv.Rows)
	}
	weights, ok := memoOf(pass.Memo, pass.OutDeriv.Rows, c.numHeads*n)
	if !ok {
		return missingMemo(c)
	}
	defer w.Release(w.Mark())
	d := w.Vector(n)
	for i := range pass.OutDeriv.Rows {
		rows := a.of(i)
		for h := range c.numHeads {
			p := kernel.Row(weights.Matrix, i)[h*n : (h+1)*n]
			dy := kernel.Row(pass.OutDeriv, i)[h*c.headOut() : (h+1)*c.headOut()]
			c.backprop(pass.InValue, pass.InDeriv, rows, h, p, dy, d)
		}
	}
	w.free(weights)
	return nil
}

// backprop is Backprop for a head of an output row. d is scratch memory for the derivatives of the
// logits.
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
		c.entropyStats = make([]float64, c.numHeads)
		c.posteriorStats = kaldiio.DoubleMatrix{Rows: c.numHeads, Cols: n, Stride: n, Data: make([]float64, c.numHeads*n)}
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

// ZeroStats resets the statistics.
func (c *restrictedAttentionComponent) ZeroStats() {
	c.statsCount = 0
	clear(c.entropyStats)
	clear(c.posteriorStats.Data)
}
