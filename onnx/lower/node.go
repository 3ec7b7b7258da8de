package lower

import (
	"fmt"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A nodeOp is a routine with a function that was made for one node: of what its attributes say, which may be large,
// or for the strings of the graph. It equals only itself.
type nodeOp struct {
	name    string
	types   []tensor.Type
	inputs  int
	run     computation
	strings *Strings // of the results, nil if they are none
}

// A computation computes arrays of contiguous ones.
type computation func(in []*array.Array) ([]*array.Array, error)

// nodeRoutine applies a function to inputs. Sizes of the results may be tensor.Unknown.
func (c *call) nodeRoutine(name string, run computation, in []variable, types ...tensor.Type) []variable {
	return tensor.MustApply(&nodeOp{name, types, len(in), run, c.strings}, in...).Owner().Outputs()
}

// String returns for example Routine{StringConcat}.
func (op *nodeOp) String() string { return "Routine{" + op.name + "}" }

// Infer returns the types that the lowering has found.
func (op *nodeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != op.inputs {
		return nil, fmt.Errorf("%v needs %d arguments, not %d", op, op.inputs, len(in))
	}
	return lists.Map(op.types, func(t tensor.Type) fgraph.Type { return t }), nil
}

// Compile copies the results to memory of the workspace. The results of constants are computed once, and their
// strings last: passes make constants of them, which are there in all runs.
func (op *nodeOp) Compile(a *fgraph.Apply) (tensor.Kernel, error) {
	run := op.run
	if !slices.ContainsFunc(a.Inputs(), func(v *fgraph.Variable) bool { return !v.IsConstant() }) {
		var once sync.Once
		var results []*array.Array
		var err error
		run = func(in []*array.Array) ([]*array.Array, error) {
			once.Do(func() {
				results, err = op.run(in)
				op.strings.keep()
			})
			return results, err
		}
	}
	return copying(op.name, run), nil
}

// copying returns a kernel that copies the results of a function to memory of the workspace.
func copying(name string, run computation) tensor.Kernel {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		args := make([]*array.Array, len(in))
		for i, a := range in {
			if args[i] = a; !a.Contiguous() {
				args[i] = a.Clone()
			}
		}
		results, err := run(args)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, a := range results {
			if err := ws.New(out[i], a.DType(), a.Shape()...); err != nil {
				return err
			}
			array.CopyTo(out[i], a)
		}
		return nil
	}
}
