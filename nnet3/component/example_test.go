package component_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// fromConfig makes the component that a configuration line describes.
func fromConfig(text string) (component.Component, error) {
	line, err := component.ParseConfigLine(text)
	if err != nil {
		return nil, err
	}
	typ, _ := line.Value("type")
	c, ok := component.Kaldi().New(typ)
	if !ok {
		return nil, fmt.Errorf("unknown type %s", typ)
	}
	return c, component.Init(c, line)
}

// row returns a matrix of one row.
func row(elements ...float32) kernel.Matrix {
	return kernel.Matrix{Rows: 1, Cols: len(elements), Stride: len(elements), Data: elements}
}

func Example() {
	c, err := fromConfig("type=RectifiedLinearComponent dim=3")
	if err != nil {
		fmt.Println(err)
		return
	}
	w, out, deriv := new(component.Workspace), kernel.New(1, 3), kernel.New(1, 3)
	if _, err := component.Propagate(c, w, component.ForwardPass{}, row(-1, 0, 2), out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Properties(), out.Data)

	pass := component.BackwardPass{OutValue: out, OutDeriv: row(1, 1, 1), InDeriv: deriv}
	if err := component.Backprop(c.(component.Backpropper), w, pass); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(deriv.Data)
	// Output:
	// simple|propagate-in-place|backprop-needs-output|stores-stats [0 0 2]
	// [0 0 1]
}

func ExampleWrite() {
	r, err := kaldiio.NewReader(strings.NewReader("<PnormComponent> <InputDim> 4 <OutputDim> 2 </PnormComponent> "), "text")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, _ := component.Kaldi().New("PnormComponent")
	if err := r.Expect("<PnormComponent>"); err != nil {
		fmt.Println(err)
		return
	}
	if err := component.Kaldi().Read(c, r); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(component.Info(c))
	w := kaldiio.NewWriter(os.Stdout, false)
	if err := component.Write(c, w); err != nil {
		fmt.Println(err)
		return
	}
	w.Flush()
	// Output:
	// PnormComponent, input-dim=4, output-dim=2, input-dim=4, output-dim=2
	// <PnormComponent> <InputDim> 4 <OutputDim> 2 </PnormComponent>
}

// A component that is not simple says which inputs it needs.
func ExampleNonSimple() {
	c, err := fromConfig("type=TdnnComponent input-dim=2 output-dim=2 time-offsets=-1,0,1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.(component.NonSimple).InputIndexes(index.Index{T: 10}, nil))
	// Output: [(0,9) (0,10) (0,11)]
}

// negation is a component type of a program's own.
type negation struct{ dim int }

func (c *negation) Type() string                     { return "NegationComponent" }
func (c *negation) InputDim() int                    { return c.dim }
func (c *negation) OutputDim() int                   { return c.dim }
func (c *negation) Init(line *component.ConfigLine)  { c.dim = line.Int("dim", 1) }
func (c *negation) Fields(f *component.Fields)       { f.Dim("<Dim>", &c.dim) }
func (c *negation) Properties() component.Properties { return component.Simple }

func (c *negation) Propagate(_ *component.Workspace, _ component.ForwardPass, in, out kernel.Matrix) (component.Memo, error) {
	kernel.CopyScaled(out, -1, in)
	return nil, nil
}

// Six short methods and Propagate make a component. The functions of the package do the rest.
func ExampleComponent() {
	c := &negation{dim: 2}
	out := kernel.New(1, 2)
	if _, err := component.Propagate(c, new(component.Workspace), component.ForwardPass{}, row(1, -2), out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Data, component.Info(component.Copy(c)))
	_, err := component.Propagate(c, new(component.Workspace), component.ForwardPass{}, row(1, 2, 3), out)
	fmt.Println(err)
	// Output:
	// [-1 2] NegationComponent, input-dim=2, output-dim=2, dim=2
	// NegationComponent (2 -> 2): propagate: input side is 1×3, output side 1×2: matrix does not fit the component
}
