package component

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/internal/kernel"
)

// compositeComponent is a chain of simple components. It computes maxRows rows at a time and keeps
// no intermediate values: Backprop computes forward again. Components that don't compute row by
// row, such as BatchNorm in training, see only maxRows rows.
type compositeComponent struct {
	training
	maxRows    int // at a time; 0 or less: all
	components []Component
}

const (
	defaultMaxRows = 4096
	maxParts       = 100000
)

func (c *compositeComponent) Type() string { return "CompositeComponent" }
func (c *compositeComponent) InputDim() int {
	if len(c.components) == 0 {
		return 0
	}
	return c.components[0].InputDim()
}

func (c *compositeComponent) OutputDim() int {
	if len(c.components) == 0 {
		return 0
	}
	return c.components[len(c.components)-1].OutputDim()
}

func (c *compositeComponent) Properties() Properties {
	p := Simple | BackpropNeedsInput
	if len(c.components) == 0 {
		return p
	}
	last := c.components[len(c.components)-1].Properties()
	p |= last & (PropagateAdds | BackpropNeedsOutput | OutputContiguous)
	p |= c.components[0].Properties() & (BackpropAdds | InputContiguous)
	p = p.with(BackpropNeedsOutput, last.Has(StoresStats))
	for _, part := range c.components {
		p |= part.Properties() & Updatable
	}
	return p
}

// Params returns the parameters of all components, named after their places in the chain.
func (c *compositeComponent) Params() []Param {
	var all []Param
	for i, part := range c.components {
		if u, ok := part.(UpdatableComponent); ok {
			for _, p := range u.Params() {
				all = append(all, Param{fmt.Sprintf("component%d.%s", i+1, p.Name), p.Values})
			}
		}
	}
	return all
}

// eachPart calls f with each component of the chain that is a T.
func eachPart[T any](c *compositeComponent, f func(T)) {
	for _, part := range c.components {
		if t, ok := part.(T); ok {
			f(t)
		}
	}
}

// SetLearningRate sets the learning rate of all components.
func (c *compositeComponent) SetLearningRate(rate float32) {
	c.learningRate = rate
	eachPart(c, func(u UpdatableComponent) { u.SetLearningRate(rate) })
}

func (c *compositeComponent) setAsGradient() {
	c.training.setAsGradient()
	eachPart(c, gradientHolder.setAsGradient)
}

func (c *compositeComponent) SetTestMode(test bool) {
	eachPart(c, func(t TestModer) { t.SetTestMode(test) })
}

// TestMode reports whether all components with a test mode are in it.
func (c *compositeComponent) TestMode() bool {
	all := true
	eachPart(c, func(t TestModer) { all = all && t.TestMode() })
	return all
}

// LacksStats reports whether any of the components lacks statistics.
func (c *compositeComponent) LacksStats() bool {
	lacks := false
	eachPart(c, func(u StatsUser) { lacks = lacks || u.LacksStats() })
	return lacks
}

func (c *compositeComponent) ZeroStats() { eachPart(c, StatsZeroer.ZeroStats) }
func (c *compositeComponent) Prepare()   { eachPart(c, Preparer.Prepare) }
func (c *compositeComponent) Release() []float32 {
	eachPart(c, func(r Releaser) { r.Release() })
	return nil
}
func (c *compositeComponent) Renew(t *kernel.Threads) {
	eachPart(c, func(r Renewer) { r.Renew(t) })
}

// Init reads max-rows-process, num-components, and component1, component2, …: each the
// configuration of a component, with its type, in quotes.
func (c *compositeComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	c.maxRows = cfg.Int("max-rows-process", defaultMaxRows)
	cfg.require("num-components")
	n := cfg.Int("num-components", 1)
	if n < 1 || n > maxParts {
		cfg.Fail("num-components=%d is not between 1 and %d", n, maxParts)
	}
	for i := 0; i < n && cfg.Err() == nil; i++ {
		part, err := initPart(cfg, fmt.Sprintf("component%d", i+1))
		if err != nil {
			cfg.fail(err)
			return
		}
		c.components = append(c.components, part)
	}
	if cfg.Err() == nil {
		cfg.check(c.problem())
	}
}

// initPart makes the component that the value of a key describes.
func initPart(cfg *ConfigLine, key string) (Component, error) {
	text, ok := cfg.Value(key)
	if !ok {
		return nil, fmt.Errorf("%s is missing: %w", key, ErrConfig)
	}
	line, err := ParseConfigLine(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	line.Rand, line.open, line.MaxNumbers, line.Types = cfg.source(), cfg.open, cfg.room(), cfg.Types
	if line.MaxNumbers == 0 {
		line.MaxNumbers = -1
	}
	defer func() { cfg.numbers += line.numbers }()
	typ, _ := line.Value("type")
	part, ok := cmp.Or(cfg.Types, Kaldi()).New(typ)
	if !ok || line.First != "" {
		return nil, fmt.Errorf("%s=%s: unknown type %q: %w", key, fileio.Excerpt(text, 0), typ, ErrConfig)
	}
	if _, nested := part.(*compositeComponent); nested {
		return nil, fmt.Errorf("%s: a composite may not hold another: %w", key, ErrConfig)
	}
	if err := Init(part, line); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if left := line.Unused(); left != "" {
		return nil, fmt.Errorf("%s: unknown keys in %s: %w", key, fileio.Excerpt(left, 0), ErrConfig)
	}
	return part, nil
}

func (c *compositeComponent) problem() string {
	if len(c.components) == 0 {
		return "there are no components"
	}
	for i, part := range c.components {
		switch p := part.Properties(); {
		case !p.Has(Simple) || p.Has(Random):
			return fmt.Sprintf("%s can't be part of a composite: it is not simple, or it is random", part.Type())
		case i > 0 && part.InputDim() != c.components[i-1].OutputDim():
			return fmt.Sprintf("component %d puts out %d columns, component %d takes %d",
				i, c.components[i-1].OutputDim(), i+1, part.InputDim())
		}
		if _, ok := part.(Backpropper); !ok {
			return part.Type() + " can't be part of a composite"
		}
	}
	return ""
}

func (c *compositeComponent) Fields(f *Fields) {
	c.training.fields(f)
	n := len(c.components)
	f.Int("<MaxRowsProcess>", &c.maxRows)
	f.Int("<NumComponents>", &n)
	f.Check(n >= 1 && n <= maxParts, "%d components", n)
	switch {
	case f.Reading():
		c.components = make([]Component, n)
	case f.Copying():
		c.components = slices.Clone(c.components)
	}
	for i := range c.components {
		f.part(&c.components[i], i+1)
	}
	if f.Reading() {
		f.check(c.problem())
	}
}

// parts calls f with the first row and the number of rows of each part of the rows.
func (c *compositeComponent) parts(rows int, f func(first, n int) error) error {
	step := c.maxRows
	if step <= 0 {
		step = max(rows, 1)
	}
	for first := 0; first < rows; first += step {
		if err := f(first, min(step, rows-first)); err != nil {
			return err
		}
	}
	return nil
}

// output returns scratch memory for the output of a component.
func output(w *Workspace, c Component, rows int) kernel.Matrix {
	if c.Properties().Has(PropagateAdds) {
		return w.zeroMatrix(rows, c.OutputDim())
	}
	return w.Matrix(rows, c.OutputDim())
}

// Propagate sends the rows through the chain.
func (c *compositeComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	return nil, c.parts(in.Rows, func(first, n int) error {
		defer w.Release(w.Mark())
		x := kernel.Rows(in, first, n)
		for i, part := range c.components {
			// Backprop propagates again, so no memo outlives this pass.
			y, inner := kernel.Rows(out, first, n), ForwardPass{DropMemo: true}
			if i+1 < len(c.components) {
				y = output(w, part, n)
			} else {
				inner.Next = pass.Next
			}
			if _, err := Propagate(part, w, inner, x, y); err != nil {
				return err
			}
			x = y
		}
		return nil
	})
}

// Backprop computes forward again, then sends the derivatives back through the chain. Here the
// components of ToUpdate also store the statistics of propagation.
func (c *compositeComponent) Backprop(w *Workspace, pass BackwardPass) error {
	u, _ := pass.ToUpdate.(*compositeComponent)
	if u != nil && len(u.components) != len(c.components) {
		return fmt.Errorf("%s: the component to update has %d components, not %d: %w",
			c.Type(), len(u.components), len(c.components), ErrShape)
	}
	return c.parts(pass.InValue.Rows, func(first, n int) error {
		defer w.Release(w.Mark())
		part := BackwardPass{InValue: kernel.Rows(pass.InValue, first, n), OutDeriv: kernel.Rows(pass.OutDeriv, first, n)}
		if c.Properties().Has(BackpropNeedsOutput) {
			part.OutValue = kernel.Rows(pass.OutValue, first, n)
		}
		if wanted(pass.InDeriv) {
			part.InDeriv = kernel.Rows(pass.InDeriv, first, n)
		}
		return c.backprop(w, part, u)
	})
}

// backprop is Backprop for part of the rows. It updates u unless it is nil.
func (c *compositeComponent) backprop(w *Workspace, pass BackwardPass, u *compositeComponent) error {
	n, rows := len(c.components), pass.InValue.Rows
	values := make([]kernel.Matrix, n+1) // values[i] goes into component i
	memos := make([]Memo, n)
	values[0], values[n] = pass.InValue, pass.OutValue
	for i, part := range c.components {
		last := i+1 == n
		// The output of the last component is at hand, if anyone needs it. Its Propagate has to run
		// again only for a memo.
		if last && !part.Properties().Has(UsesMemo) {
			break
		}
		y := output(w, part, rows)
		memo, err := Propagate(part, w, ForwardPass{}, values[i], y)
		if err != nil {
			return err
		}
		memos[i] = memo
		if !last {
			values[i+1] = y
		}
	}
	dy := pass.OutDeriv
	for i := n - 1; i >= 0; i-- {
		part := c.components[i]
		var to Component
		if u != nil {
			to = u.components[i]
			// Only now are the input and the output of the component both there.
			if s, ok := to.(StatsStorer); ok && values[i+1].Cols != 0 && part.Properties().Has(StoresStats) {
				s.StoreStats(values[i], values[i+1], memos[i])
			}
		}
		dx := pass.InDeriv
		if i > 0 {
			// Zeros, because the component may add to it.
			dx = w.zeroMatrix(rows, part.InputDim())
		}
		err := Backprop(part.(Backpropper), w, BackwardPass{
			InValue: values[i], OutValue: values[i+1], Memo: memos[i], OutDeriv: dy, ToUpdate: to, InDeriv: dx,
		})
		if err != nil {
			return err
		}
		dy = dx
	}
	return nil
}
