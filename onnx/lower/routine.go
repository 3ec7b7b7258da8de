package lower

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A routineOp computes an operator that is no formula of tensors: which elements it reads, or how many
// it makes, are matters of values. Passes know nothing of it but that equal ones are equal.
type routineOp struct {
	name string
	// parameters are those of the function as text. Without any the function was made for one node, of what its
	// attributes say, which may be large, or for the strings of the graph: then the op equals only itself.
	parameters string
	types      []tensor.Type
	inputs     int
	run        computation
	strings    *stringTable // of the results, nil if they are none
}

// A computation computes arrays of contiguous ones. What is wrong with their values is an error.
type computation func(in []*array.Array) ([]*array.Array, error)

// routine applies a function of parameters and arrays to inputs. Sizes of the results may be tensor.Unknown.
func routine[P any](c *call, name string, f func(p P, in []*array.Array) ([]*array.Array, error), p P, in []variable, types ...tensor.Type) []variable {
	run := func(in []*array.Array) ([]*array.Array, error) { return f(p, in) }
	return tensor.MustApply(&routineOp{name: name, parameters: fmt.Sprintf("%#v", p), types: types, inputs: len(in), run: run}, in...).Owner().Outputs()
}

// nodeRoutine applies a function that was made for the node.
func (c *call) nodeRoutine(name string, run computation, in []variable, types ...tensor.Type) []variable {
	return tensor.MustApply(&routineOp{name: name, types: types, inputs: len(in), run: run, strings: c.strings}, in...).Owner().Outputs()
}

// String returns for example Routine{Unique}.
func (op *routineOp) String() string { return "Routine{" + op.name + "}" }

// EqualOp reports whether other computes the same.
func (op *routineOp) EqualOp(other fgraph.Op) bool {
	o, ok := other.(*routineOp)
	return ok && (o == op || op.parameters != "" && o.name == op.name && o.parameters == op.parameters && slices.Equal(o.types, op.types))
}

var seed = maphash.MakeSeed()

// HashOp returns a hash that is consistent with EqualOp.
func (op *routineOp) HashOp() uint64 { return maphash.String(seed, op.name+op.parameters) }

// Infer returns the types that the lowering has found.
func (op *routineOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != op.inputs {
		return nil, fmt.Errorf("%v needs %d arguments, not %d", op, op.inputs, len(in))
	}
	return lists.Map(op.types, func(t tensor.Type) fgraph.Type { return t }), nil
}

// TakesHalves reports that bits are those of half floats; else routines compute with larger floats.
func (op *routineOp) TakesHalves() bool { return op.name == "BitCast" }

// Compile copies the results to memory of the workspace. Those of constants are computed once where they have
// strings, which last: passes make constants of them, which are there in all runs.
func (op *routineOp) Compile(a *fgraph.Apply) (tensor.Kernel, error) {
	run := op.run
	if op.strings != nil && !slices.ContainsFunc(a.Inputs(), func(v *fgraph.Variable) bool { return !v.IsConstant() }) {
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
	return func(ws *array.Workspace, in, out []*array.Array) error {
		args := make([]*array.Array, len(in))
		for i, a := range in {
			if args[i] = a; !a.Contiguous() {
				args[i] = a.Clone()
			}
		}
		results, err := run(args)
		if err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		for i, a := range results {
			if err := ws.New(out[i], a.DType(), a.Shape()...); err != nil {
				return err
			}
			array.CopyTo(out[i], a)
		}
		return nil
	}, nil
}

// floats makes float64s of an input, which routines compute with.
func (c *call) floats(k int) variable { return tensor.Cast(c.x(k), array.Float64) }

// integers makes int64s of an input.
func (c *call) integers(k int) variable { return tensor.Cast(c.x(k), array.Int64) }

// orFloat returns an input of one number as a float64, or a number if it is left out.
func (c *call) orFloat(k int, otherwise float64) variable {
	if !c.has(k) {
		return tensor.Float(otherwise)
	}
	return tensor.Cast(c.bound(k), array.Float64)
}

// wide returns the type in which routines move elements: that of integers, or of floats.
func wide(v variable) array.DType {
	if tensor.TypeOf(v).DType().IsFloat() {
		return array.Float64
	}
	return array.Int64
}
