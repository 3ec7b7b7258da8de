package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// ParseArguments parses values for inputs, by name:
//
//	x=[1, 2]; y=3; X=zeros(2, 2) + 1
//
// Values are expressions without variables. They are converted to the element types of the inputs.
// The error wraps ErrArgument or expr.ErrSyntax.
func ParseArguments(ctx context.Context, inputs []*fgraph.Variable, text string) ([]*array.Array, error) {
	args := make([]*array.Array, len(inputs))
	for _, part := range strings.Split(text, ";") {
		name, expr, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if strings.TrimSpace(part) == "" {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("%w: %q is not of the form name=value", ErrArgument, fileio.Excerpt(strings.TrimSpace(part), 0))
		}
		v, err := evaluate(ctx, expr)
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", fileio.Excerpt(name, 0), err)
		}
		known := false
		for i, in := range inputs {
			if in.Name() != name {
				continue
			}
			if known = true; args[i] != nil {
				return nil, fmt.Errorf("%w: a second value of %s", ErrArgument, name)
			}
			t := tensor.TypeOf(in)
			if args[i] = v.Cast(t.DType()); t.IsCSR() && v.NDim() == 2 {
				args[i] = array.ToCSR(args[i])
			}
			if err := t.Holds(args[i]); err != nil {
				return nil, fmt.Errorf("%w: value of %s: %w", ErrArgument, name, err)
			}
		}
		if !known {
			return nil, fmt.Errorf("%w: the expression has no input %s", ErrArgument, fileio.Excerpt(name, 0))
		}
	}
	var missing []string
	for i, in := range inputs {
		if args[i] == nil {
			missing = append(missing, in.Name())
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: no value for %s", ErrArgument, strings.Join(missing, ", "))
	}
	return args, nil
}

// evaluate computes an expression without variables.
func evaluate(ctx context.Context, text string) (*array.Array, error) {
	s := expr.NewScope()
	s.Strict = true
	v, err := s.ParseOne(text)
	if err != nil {
		return nil, err
	}
	f, err := NewFunction(ctx, nil, []*fgraph.Variable{v}, FunctionOptions{})
	if err != nil {
		return nil, err
	}
	values, err := f.Call(ctx)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// RandomArguments first tries one size for all unknown dimensions, then random sizes.
const (
	maxShapes = 4000
	maxSize   = 7
)

// RandomArguments returns random values for the inputs. It tries shapes until a call succeeds.
// Floats are between -2 and 2, integers between 0 and 2. The same seed gives the same values. The
// error is that of the last try.
func (f *Function) RandomArguments(ctx context.Context, seed uint64) ([]*array.Array, error) {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	args := make([]*array.Array, len(f.inputs)-len(f.shared))
	r := f.NewRunner()
	var last error
	for try := range maxShapes {
		size := func() int { return 1 + rng.IntN(maxSize) }
		// Most expressions want equal sizes somewhere, which random ones seldom are.
		if sizes := []int{3, 4, 2, 5, 6, 1}; try < len(sizes) {
			size = func() int { return sizes[try] }
		}
		ws := new(array.Workspace)
		for i := range args {
			var err error
			if args[i], err = randomArray(ws, rng, f.types[i], size); err != nil {
				return nil, fmt.Errorf("%w: a random %v: %w", ErrArgument, f.types[i], err)
			}
		}
		_, err := r.Run(ctx, args...)
		switch {
		case err == nil:
			return args, nil
		case errors.Is(err, tensor.ErrShape), errors.Is(err, array.ErrIndex), errors.Is(err, array.ErrEmpty), errors.Is(err, tensor.ErrAssert):
			last = err
		default:
			return nil, err
		}
	}
	return nil, fmt.Errorf("found no shapes for a call: %w", last)
}

// randomArray returns a random value of type t. size returns sizes for unknown dimensions. The
// workspace bounds the memory.
func randomArray(ws *array.Workspace, rng *rand.Rand, t tensor.Type, size func() int) (*array.Array, error) {
	shape := t.Shape()
	for d := range shape {
		if shape[d] == tensor.Unknown {
			shape[d] = size()
		}
	}
	a := new(array.Array)
	if err := ws.New(a, t.DType(), shape...); err != nil {
		return nil, err
	}
	for i := range a.Len() {
		if t.DType().IsFloat() {
			a.SetFloat(i, float64(4*rng.Float64())-2)
		} else {
			a.SetFloat(i, float64(rng.IntN(3)))
		}
		if t.IsCSR() && rng.IntN(2) == 0 {
			a.SetFloat(i, 0)
		}
	}
	if t.IsCSR() {
		a = array.ToCSR(a)
	}
	return a, nil
}
