package lower

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

// ErrUnsupported means that a model has something that can't be computed.
var ErrUnsupported = errors.New("not supported")

// ErrOperator is the ErrUnsupported of a node with an operator that can't be computed, whatever the inputs are.
var ErrOperator = fmt.Errorf("%w: operator", ErrUnsupported)

// ErrInput means that a model does not have such an input, or that it was lowered for other values.
var ErrInput = errors.New("lower: wrong input")

// Options are options of Graph.
type Options struct {
	// LeaveOut leaves inputs without a value out of the nodes that use them. Otherwise they are faults.
	LeaveOut bool
	// Operators lower nodes of operators that this package does not have, by name: that of the domain,
	// a dot, and that of the operator.
	Operators map[string]Operator
	// Types are the operators whose types are known. The default is ir.Standard.
	Types *ir.Operators
	// AnySizes leaves sizes open that the types of the inputs have as symbols. The graph is then right for all inputs
	// whose other sizes are those that are given, and whose open ones are LeastFree or more: it computes the same, or
	// fails. The error is ErrSizes if a node can't be lowered for any sizes.
	AnySizes bool
	// Array returns the elements of a tensor in a file in a folder. The default is ArrayOf.
	Array func(t *onnx.Tensor, dir string) (*array.Array, error)
}

// maxDepth bounds bodies in bodies, and branches in branches.
const maxDepth = 32

// A Lowered is a graph of tensors that computes a model for inputs of some shapes, as long as Demands are
// what they were.
type Lowered struct {
	// Inputs have the names of the inputs of the model.
	Inputs []*fgraph.Variable
	// Elems are the types of the elements of the inputs. Those that are strings, and such outputs, are numbers of Strings.
	Elems   []onnx.DataType
	Strings *stringTable
	// Outputs are the outputs of the model, and Values what computes them.
	Outputs []Output
	Values  []*fgraph.Variable
	Demands []Demand
}

// An Output is an output of a model, with the type of its elements there. Its array may hold them in
// a larger type.
type Output struct {
	Name string
	Elem onnx.DataType
	// Keys are those of a sequence of maps: the output is a tensor with a row for each map, and a column for each key,
	// an int64 or a string. Nil means that the output is a tensor.
	Keys *array.Array
}

// Graph lowers the graph of a model for inputs of these shapes and, where the graph of tensors depends on
// them, values. A sequence is given, and returned, as tensors with names of its items, see Item; an optional
// value without one is left out. names are those of the outputs. The error names all faults of nodes.
func Graph(ctx context.Context, g *fgraph.FunctionGraph, names []string, o Options, inputs map[string]*array.Array) (*Lowered, error) {
	l := newLowering(ctx, o)
	l.source = ir.SourceOf(g)
	s := newScope(nil)
	l.bind(g, inputs, s)
	root, err := l.regions(g)
	if err != nil {
		return nil, err
	}
	l.region(root, s)
	f := &Lowered{Inputs: l.inputs, Elems: l.elems, Strings: l.strings}
	for i, out := range g.Outputs() {
		v, failed := l.of(out, s)
		switch {
		case failed:
		case v == nil:
			l.fault("output "+names[i], errors.New("nothing computes it"))
		default:
			vars, outputs, err := outputsOf(names[i], v)
			if err != nil {
				l.fault("output "+names[i], err)
			}
			f.Values, f.Outputs = append(f.Values, vars...), append(f.Outputs, outputs...)
		}
	}
	f.Demands = l.demands
	return f, errors.Join(l.faults...)
}

// A value is what a variable of a model stands for: a tensor, and the type of its elements in the model; a
// sequence; or that there is none.
type value struct {
	v    *fgraph.Variable
	elem onnx.DataType
	list *sequence
	none bool
	keys *array.Array // of the columns of a tensor that stands for a sequence of maps, one for each row; else nil
}

// A lowering makes the graph of a model.
type lowering struct {
	ctx       context.Context
	source    *ir.Source // nil for a node alone
	options   Options
	depth     int
	inputs    []*fgraph.Variable
	elems     []onnx.DataType // of inputs
	strings   *stringTable
	demands   []Demand
	demanded  map[*fgraph.Variable]bool
	values    *interp.Interpreter  // of arguments, and what has been asked for
	constants map[*ir.Value]*value // nil for one that can't be read
	divided   map[*fgraph.FunctionGraph]*ir.Region
	unrolled  int        // applies of bodies
	open      *openSizes // nil if all sizes are known
	faults    []error

	attempts int                    // attempts around, see tentatively
	sized    []sizedValue           // in attempts
	decided  map[*fgraph.Apply]bool // Ifs of which the graph has one branch
}

func newLowering(ctx context.Context, o Options) *lowering {
	if o.Array == nil {
		o.Array = ArrayOf
	}
	l := &lowering{ctx: ctx, options: o, strings: newStrings(), values: interp.New(ctx), constants: make(map[*ir.Value]*value), demanded: make(map[*fgraph.Variable]bool),
		divided: make(map[*fgraph.FunctionGraph]*ir.Region), decided: make(map[*fgraph.Apply]bool)}
	if o.AnySizes {
		l.open = &openSizes{make(map[string]variable), make(map[string]variable), make(map[variable][]ir.Dim)}
	}
	return l
}

// A sizedValue is one that an attempt has given known sizes, and what it was before.
type sizedValue struct {
	of     *value
	before *fgraph.Variable
}

// A scope has the values of the variables of a graph, or of a branch of an If in it. A body has a new one in
// each round.
type scope struct {
	outer  *scope
	values map[*fgraph.Variable]*value // nil for an input that has no value
	failed map[*fgraph.Variable]bool   // those that are missing because of a fault
}

func newScope(outer *scope) *scope {
	return &scope{outer, make(map[*fgraph.Variable]*value), make(map[*fgraph.Variable]bool)}
}

// of returns the value of a variable: nil if it is left out, and whether it has failed.
func (l *lowering) of(v *fgraph.Variable, s *scope) (x *value, failed bool) {
	if v.IsConstant() {
		x := l.constant(v)
		return x, x == nil && !ir.IsOmitted(v)
	}
	for ; s != nil; s = s.outer {
		if x, ok := s.values[v]; ok {
			return x, false
		}
		if s.failed[v] {
			return nil, true
		}
	}
	return nil, false
}

// constant returns the tensor of a constant, the same one each time; nil if there is none.
func (l *lowering) constant(v *fgraph.Variable) *value {
	x := ir.ValueOf(v)
	if x == nil {
		return nil
	}
	c, ok := l.constants[x]
	if ok {
		return c
	}
	var a *array.Array
	err := fmt.Errorf("%w: a sparse tensor", ErrUnsupported)
	if x.Tensor != nil {
		a, err = l.tensorOf(x.Tensor, x.Dir())
	}
	if err != nil {
		l.fault("initializer "+v.Name(), err)
	} else {
		c = &value{v: tensor.Constant(a), elem: x.Tensor.DataType}
	}
	// A nil as well: what can't be read is one fault, however many nodes use it.
	l.constants[x] = c
	return c
}

// tensorOf returns the elements of a tensor of the model, of strings their numbers.
func (l *lowering) tensorOf(t *onnx.Tensor, dir string) (*array.Array, error) {
	a, err := l.options.Array(t, dir)
	if err != nil {
		return nil, err
	}
	return l.strings.Numbers(a)
}

// dir returns the folder of the model.
func (l *lowering) dir() string {
	if l.source == nil {
		return ""
	}
	return l.source.Dir
}

// maxFaults bounds the errors about a model.
const maxFaults = 100

func (l *lowering) fault(where string, err error) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Errorf("%s: %w", where, err))
	}
}

// regions divides a graph, once.
func (l *lowering) regions(g *fgraph.FunctionGraph) (*ir.Region, error) {
	r := l.divided[g]
	if r == nil {
		var err error
		if r, err = ir.Regions(g); err != nil {
			return nil, err
		}
		l.divided[g] = r
	}
	return r, nil
}

// region lowers the applies of a region. One whose inputs have failed is not lowered, and is no fault of its
// own unless its operator is one.
func (l *lowering) region(r *ir.Region, s *scope) {
	for _, a := range r.Applies {
		if l.ctx.Err() != nil {
			l.fault("lowering", context.Cause(l.ctx))
			return
		}
		c := &call{lowering: l, op: a.Op().(*ir.Op), apply: a, region: r, scope: s}
		out, err := c.lower()
		if err != nil && !errors.Is(err, errFollows) {
			l.fault(l.source.Where(a), err)
		}
		for k, v := range a.Outputs() {
			switch {
			case err == nil && k < len(out) && out[k] != nil:
				s.values[v] = out[k]
				if l.open != nil {
					l.open.note(out[k].v, ir.TypeOf(v))
				}
				continue
			case err == nil && len(v.Clients()) > 0:
				// What nothing reads may be missing, since not all optional results are computed.
				l.fault(l.source.Where(a), fmt.Errorf("%w: its output %d, %s", ErrUnsupported, k, v.Name()))
			}
			s.failed[v] = true
		}
	}
}

// errFollows means that an input of an apply has failed.
var errFollows = errors.New("an input failed")

// lower lowers an apply of a graph.
func (c *call) lower() ([]*value, error) {
	inputs := c.apply.Inputs()
	if ir.IsIf(c.apply) {
		inputs = inputs[:1] // what branches are made of is lowered if they are taken
	}
	in := make([]*value, len(inputs))
	var missing error
	for k, v := range inputs {
		var failed bool
		if in[k], failed = c.of(v, c.scope); failed {
			// Also behind another fault: whoever asks wants to know all operators that are missing.
			if !c.computes(c.op) {
				return nil, noOperator(c.op)
			}
			return nil, errFollows
		}
		// Not all operators need the input, so this is said only if lowering fails.
		if in[k] == nil && !ir.IsOmitted(v) {
			missing = fmt.Errorf("%w: input %s: it has no value", ErrInput, v.Name())
		}
	}
	// What types know already takes no node, and asks for no value.
	if v := c.computed(); v != nil {
		return []*value{v}, nil
	}
	c.take(in)
	err := c.settle()
	var out []*value
	if err == nil {
		out, err = c.node()
	}
	if err != nil && missing != nil {
		err = fmt.Errorf("%w (%w)", err, missing)
	}
	return out, err
}

// take divides inputs into those of the operator and those that bodies capture.
func (c *call) take(in []*value) {
	n := len(in) - c.op.Captures()
	c.in, c.captured = in[:n], in[n:]
}

// settle makes tensors of known sizes of those whose sizes depend on values, such as the places that are not
// zero: only then is it known what is broadcast. The graph depends on these sizes. A node that moves no
// element and asks for none takes any.
func (c *call) settle() error {
	if c.open != nil {
		return nil
	}
	switch c.op.Name() {
	case "Identity", "Cast", "Shape", "Size", "Transpose", "If":
		return nil
	}
	for _, v := range slices.Concat(c.in, c.captured) {
		if v == nil || v.v == nil || !slices.Contains(tensor.TypeOf(v.v).Shape(), tensor.Unknown) {
			continue
		}
		a, err := c.valueOf(tensor.Shape(v.v))
		if err != nil {
			return fmt.Errorf("a shape: %w", err)
		}
		shape := make([]int, a.Len())
		for i := range shape {
			shape[i] = int(a.Int(i))
		}
		// An attempt may fail, and then must not have promised a size to others.
		if c.attempts > 0 {
			c.sized = append(c.sized, sizedValue{v, v.v})
		}
		v.v = tensor.SpecifyShape(v.v, shape...) // for all that read it
	}
	return nil
}

// node lowers a node. What package tensor refuses is an error.
func (c *call) node() (out []*value, err error) {
	if c.open != nil && len(c.op.Bodies) > 0 { // whose symbols are other numbers in each round
		return nil, ErrSizes
	}
	if err := c.refuseStrings(); err != nil {
		return nil, err
	}
	name := c.op.Name()
	lower := operators[name]
	if lower == nil {
		if o := c.options.Operators[name]; o != nil {
			return c.foreign(o)
		}
		if hasBody(c.op) {
			return c.expanded()
		}
		return nil, noOperator(c.op)
	}
	// Ops that mean what they do today have no version.
	if c.opset = c.op.Legacy; c.opset == 0 {
		c.opset = currentOpset
	}
	err = c.attempt(func() { out = lower(c) })
	return out, err
}

// computes reports whether there is something that lowers nodes with an operator.
func (l *lowering) computes(op *ir.Op) bool {
	return operators[op.Name()] != nil || l.options.Operators[op.Name()] != nil || hasBody(op)
}

// attempt calls a function that lowers something, and returns what it panics with if that is about the model.
func (c *call) attempt(lower func()) error {
	var fault error
	_, err := tensor.Try(func() *fgraph.Variable {
		defer func() {
			if p := recover(); p != nil {
				e, ok := p.(error)
				switch {
				case ok && errors.Is(e, errCall):
					fault = e
				case ok && errors.As(e, new(runtime.Error)):
					// A shape that an operator can't have, for which nothing asked above.
					fault = fmt.Errorf("%w: its inputs and attributes don't fit together: %w", ErrUnsupported, e)
				default:
					panic(p)
				}
			}
		}()
		lower()
		return nil
	})
	return errors.Join(err, fault)
}

// An Operator lowers the nodes of an operator that this package does not have. Inputs that a node leaves
// out are nil. The results have the types of ONNX that belong to the element types of the variables.
type Operator func(op *ir.Op, inputs []*fgraph.Variable) ([]*fgraph.Variable, error)

// foreign lowers a node by an operator of the options.
func (c *call) foreign(lower Operator) ([]*value, error) {
	inputs := make([]*fgraph.Variable, len(c.in))
	for i, v := range c.in {
		if v != nil && v.v == nil {
			return nil, fmt.Errorf("%w: input %d is no tensor", ErrUnsupported, i)
		}
		if v != nil {
			inputs[i] = v.v
		}
	}
	var outputs []*fgraph.Variable
	var fault error
	_, err := tensor.Try(func() *fgraph.Variable {
		outputs, fault = lower(c.op, inputs)
		return nil
	})
	if err = errors.Join(err, fault); err != nil {
		return nil, err
	}
	return lists.Map(outputs, func(v variable) *value { return &value{v: v, elem: elementOf(tensor.TypeOf(v).DType())} }), nil
}
