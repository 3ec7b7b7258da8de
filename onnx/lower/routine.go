package lower

import (
	"encoding/json"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A routineOp computes an operator that is no formula of tensors: which elements it reads, or how many
// it makes, are matters of values. Passes know nothing of it but that equal ones are equal.
type routineOp struct {
	Name       string // in routines
	Parameters string // as JSON, since ops are compared
	Inputs     int8
	Outputs    int8
	Types      [maxResults]tensor.Type
}

// maxResults is the largest number of outputs of a routine.
const maxResults = 4

// A routine computes arrays of contiguous ones. What is wrong with their values is an error.
type routine func(parameters string, in []*array.Array) ([]*array.Array, error)

// routineFor makes a routine of a function of parameters, which JSON has to be able to say.
func routineFor[P any](f func(p P, in []*array.Array) ([]*array.Array, error)) routine {
	return func(parameters string, in []*array.Array) ([]*array.Array, error) {
		var p P
		if err := json.Unmarshal([]byte(parameters), &p); err != nil {
			return nil, err
		}
		return f(p, in)
	}
}

// routine applies a routine to inputs. Sizes of the results may be tensor.Unknown.
func (c *call) routine(name string, parameters any, in []variable, types ...tensor.Type) []variable {
	data, err := json.Marshal(parameters)
	if err != nil {
		c.fail("%w: a parameter: %w", ErrUnsupported, err)
	}
	op := routineOp{Name: name, Parameters: string(data), Inputs: int8(len(in)), Outputs: int8(len(types))}
	copy(op.Types[:], types)
	return tensor.MustApply(op, in...).Owner().Outputs()
}

// String returns for example Routine{Unique}.
func (op routineOp) String() string { return "Routine{" + op.Name + "}" }

// Infer returns the types that the lowering has found.
func (op routineOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != int(op.Inputs) {
		return nil, fmt.Errorf("%v needs %d arguments, not %d", op, op.Inputs, len(in))
	}
	types := make([]fgraph.Type, op.Outputs)
	for i := range types {
		types[i] = op.Types[i]
	}
	return types, nil
}

// TakesHalves reports that bits are those of half floats; else routines compute with larger floats.
func (op routineOp) TakesHalves() bool { return op.Name == "BitCast" }

// Compile copies the results to memory of the workspace.
func (op routineOp) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	run := routines[op.Name]
	if run == nil {
		return nil, fmt.Errorf("%w: %v", ErrUnsupported, op)
	}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		args := make([]*array.Array, len(in))
		for i, a := range in {
			if args[i] = a; !a.Contiguous() {
				args[i] = a.Clone()
			}
		}
		results, err := run(op.Parameters, args)
		if err != nil {
			return fmt.Errorf("%s: %w", op.Name, err)
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

var routines map[string]routine

func init() {
	routines = map[string]routine{
		"NonMaxSuppression": routineFor(suppressed),
		"GridSample":        routineFor(gridSampled),
		"RoiAlign":          routineFor(roiAligned),
		"Deform":            routineFor(deformed),
		"Fourier":           routineFor(transformed),
		"Frames":            routineFor(framed),
		"Unique":            routineFor(uniqueOf),
		"Scatter":           routineFor(scattered),
		"LinearAttention":   routineFor(attended),
		"MaxRoiPool":        routineFor(roiPooled),
		"RoundSmall":        routineFor(roundedToSmall),
		"BitCast":           routineFor(bitsCast),
		"TfIdf":             routineFor(tfidf),

		"Inverse":             routineFor(inverted),
		"MurmurHash3":         routineFor(hashed),
		"NGramRepeatBlock":    routineFor(blocked),
		"BifurcationDetector": routineFor(bifurcated),
		"DynamicTimeWarping":  routineFor(warped),
		"CropAndResize":       routineFor(cropped),
		"MaxpoolWithMask":     routineFor(maskedMaxima),
	}
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
