package component

import (
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// constant is what the components that put out a trainable vector, whatever comes in, have in common.
type constant struct {
	training
	output             []float32
	updatable          bool
	useNaturalGradient bool
}

// OutputDim is the length of the vector.
func (c *constant) OutputDim() int { return len(c.output) }

// Output returns the vector. It is shared with the component.
func (c *constant) Output() []float32 { return c.output }

// Params returns the vector, or nothing if it is not to be trained.
func (c *constant) Params() []Param {
	if !c.updatable {
		return nil
	}
	return []Param{vectorParam("output", c.output)}
}

func (c *constant) init(cfg *ConfigLine) {
	c.training.init(cfg)
	c.output = cfg.randnVector(cfg.dim("output-dim"), cfg.Float("output-mean", 0), cfg.Float("output-stddev", 0))
	c.updatable = cfg.Bool("is-updatable", true)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
}

func (c *constant) fields(f *Fields) {
	f.Vector("<Output>", &c.output)
	f.Bool("<IsUpdatable>", &c.updatable)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Check(len(c.output) > 0, "there is no output")
}

func (c *constant) update(outDeriv kernel.Matrix) {
	if c.updatable {
		kernel.AddColSums(c.output, c.learningRate, outDeriv)
	}
}

// constantFunctionComponent puts out one vector for every row of its input.
type constantFunctionComponent struct {
	constant
	inputDim int
}

// Type is "ConstantFunctionComponent".
func (c *constantFunctionComponent) Type() string { return "ConstantFunctionComponent" }

// InputDim is the number of columns of the input, which is not used.
func (c *constantFunctionComponent) InputDim() int { return c.inputDim }

// Properties of a constant function.
func (c *constantFunctionComponent) Properties() Properties {
	return (Simple|BackpropAdds).with(Updatable, c.updatable).with(PropagateInPlace, c.inputDim == len(c.output))
}

// Init knows input-dim, output-dim, output-mean, output-stddev, is-updatable, use-natural-gradient.
func (c *constantFunctionComponent) Init(cfg *ConfigLine) error {
	c.init(cfg)
	c.inputDim = cfg.dim("input-dim")
	return cfg.Err()
}

// Fields of the component.
func (c *constantFunctionComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<InputDim>", &c.inputDim)
	c.constant.fields(f)
}

// Propagate sets every row to the vector.
func (c *constantFunctionComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.SetRows(out, c.output)
	return nil, nil
}

// Backprop adds Σdy to the vector of toUpdate. The derivative with respect to the input is zero.
func (c *constantFunctionComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if u, ok := toUpdate.(*constantFunctionComponent); ok {
		u.update(outDeriv)
	}
	return nil
}

// constantComponent puts out one vector for every index that it is asked for. It has no input.
type constantComponent struct {
	noInput
	constant
}

// noInput is embedded by components whose output depends on no input.
type noInput struct{}

// InputIndexes appends nothing.
func (noInput) InputIndexes(out index.Index, dst []index.Index) []index.Index { return dst }

// IsComputable is always true.
func (noInput) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	return true
}

// ReorderIndexes leaves the indexes as they are.
func (noInput) ReorderIndexes(in, out *[]index.Index) {}

// PrecomputeIndexes returns nil.
func (noInput) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	return nil, nil
}

// Type is "ConstantComponent".
func (c *constantComponent) Type() string { return "ConstantComponent" }

// InputDim is the same as OutputDim, so that the node of the component may name itself as its input.
func (c *constantComponent) InputDim() int { return len(c.output) }

// Properties of a constant.
func (c *constantComponent) Properties() Properties {
	return Properties(0).with(Updatable, c.updatable)
}

// Init knows output-dim, output-mean, output-stddev, is-updatable, use-natural-gradient.
func (c *constantComponent) Init(cfg *ConfigLine) error {
	c.init(cfg)
	return cfg.Err()
}

// Fields of the component.
func (c *constantComponent) Fields(f *Fields) {
	c.training.fields(f)
	c.constant.fields(f)
}

// Propagate sets every row to the vector.
func (c *constantComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if out.Cols != len(c.output) {
		return nil, shapeError(c, "propagate", in, out)
	}
	kernel.SetRows(out, c.output)
	return nil, nil
}

// Backprop adds Σdy to the vector of toUpdate.
func (c *constantComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if wanted(inDeriv) {
		kernel.Fill(inDeriv, 0)
	}
	if u, ok := toUpdate.(*constantComponent); ok {
		u.update(outDeriv)
	}
	return nil
}
