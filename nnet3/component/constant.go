package component

import (
	"github.com/nnopt/nnopt/internal/kernel"
)

// constant is embedded by components whose output is a trainable vector, for any input.
type constant struct {
	training
	output             []float32
	updatable          bool
	useNaturalGradient bool
}

func (c *constant) OutputDim() int { return len(c.output) }

// Params returns the vector, or nothing if it is not to be trained.
func (c *constant) Params() []Param {
	if !c.updatable {
		return nil
	}
	return []Param{vectorParam("output", c.output)}
}

// Init reads output-dim, output-mean, output-stddev, is-updatable and use-natural-gradient.
func (c *constant) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	c.output = cfg.randnVector(cfg.dim("output-dim"), cfg.Float("output-mean", 0), cfg.Float("output-stddev", 0))
	c.updatable = cfg.Bool("is-updatable", true)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
}

func (c *constant) Fields(f *Fields) {
	c.training.fields(f)
	c.fields(f)
}

// fields lists all but the training.
func (c *constant) fields(f *Fields) {
	f.Vector("<Output>", &c.output)
	f.Bool("<IsUpdatable>", &c.updatable)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Check(len(c.output) > 0, "there is no output")
}

// Propagate sets every row to the vector.
func (c *constant) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	kernel.SetRows(out, c.output)
	return nil, nil
}

func (c *constant) update(outDeriv kernel.Matrix) {
	if c.updatable {
		kernel.AddColSums(c.output, c.learningRate, outDeriv)
	}
}

// constantFunctionComponent outputs one vector for every row of its input, which it does not read.
type constantFunctionComponent struct {
	constant
	inputDim int
}

func (c *constantFunctionComponent) Type() string  { return "ConstantFunctionComponent" }
func (c *constantFunctionComponent) InputDim() int { return c.inputDim }
func (c *constantFunctionComponent) Properties() Properties {
	return (Simple|BackpropAdds).with(Updatable, c.updatable).with(PropagateInPlace, c.inputDim == len(c.output))
}

// Init reads input-dim and the keys of constant.
func (c *constantFunctionComponent) Init(cfg *ConfigLine) {
	c.constant.Init(cfg)
	c.inputDim = cfg.dim("input-dim")
}

func (c *constantFunctionComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<InputDim>", &c.inputDim)
	c.fields(f)
}

// Backprop adds Σdy to the vector of ToUpdate. The derivative with respect to the input is zero.
func (c *constantFunctionComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if u, ok := pass.ToUpdate.(*constantFunctionComponent); ok {
		u.update(pass.OutDeriv)
	}
	return nil
}

// constantComponent outputs one vector for every index that it is asked for. It has no input; its
// InputDim is its OutputDim, so that the node of the component may name itself as its input.
type constantComponent struct {
	noInput
	constant
}

func (c *constantComponent) Type() string  { return "ConstantComponent" }
func (c *constantComponent) InputDim() int { return len(c.output) }
func (c *constantComponent) Properties() Properties {
	return Properties(0).with(Updatable, c.updatable)
}

// Backprop adds Σdy to the vector of ToUpdate.
func (c *constantComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if wanted(pass.InDeriv) {
		w.Threads.Fill(pass.InDeriv, 0)
	}
	if u, ok := pass.ToUpdate.(*constantComponent); ok {
		u.update(pass.OutDeriv)
	}
	return nil
}
