package lower

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrUnsupported means that a model has something that can't be computed.
var ErrUnsupported = errors.New("not supported")

// ErrOperator is the ErrUnsupported of a node with an operator that can't be computed, whatever the inputs are.
var ErrOperator = fmt.Errorf("%w: operator", ErrUnsupported)

// ErrInput means that a model does not have such an input, or that it was lowered for other values.
var ErrInput = errors.New("lower: wrong input")

// Options are options of Model.
type Options struct {
	// Dir is the folder of the model, where external data are.
	Dir string
	// Optimizer optimizes the graph of nodes and then that of tensors, unless it is nil. passes.ForModels
	// makes it.
	Optimizer *optdb.Optimizer
	// LeaveOut leaves inputs without a value out of the nodes that use them. Otherwise they are faults.
	LeaveOut bool
	// Operators lower nodes of operators that this package does not have, by name: that of the domain,
	// a dot, and that of the operator.
	Operators map[string]Operator
	// Types are the operators whose types are known. The default is ir.Standard.
	Types *ir.Operators
	// Profile measures the calls of a Runner, by apply.
	Profile bool
	// Threads is the number of threads that compute an op together where that pays; 0 means 1. It
	// changes no bit of any result.
	Threads int
}

// maxDepth bounds functions in functions, and subgraphs in subgraphs.
const maxDepth = 32

// Model lowers a model for inputs of these shapes and, where the graph depends on them, values. A sequence
// is given, and returned, as tensors with names of its items, see Item; an optional value without one is
// left out.
func Model(ctx context.Context, m *onnx.Model, o Options, inputs map[string]*array.Array) (*Function, error) {
	return source{file: m, nodes: m}.function(ctx, o, inputs)
}

// A source is a model of which functions are made.
type source struct {
	file      *onnx.Model // as it was read, whose memory weights may be in
	nodes     *onnx.Model // the same one, or what passes for nodes have made of it whatever the shapes are
	constants *constants  // that functions have in common; nil if there is one function
}

// function is Model.
func (s source) function(ctx context.Context, o Options, inputs map[string]*array.Array) (*Function, error) {
	if s.file.Graph == nil {
		return nil, fmt.Errorf("%w: the model has no graph", ErrUnsupported)
	}
	if err := declared(s.file.Graph, inputs); err != nil {
		return nil, err
	}
	start := time.Now()
	m, err := optimized(ctx, s.nodes, o, inputs)
	if err != nil {
		return nil, err
	}
	_ = s.file.Forget(nil) // what the passes for nodes have looked at
	l := &lowering{ctx: ctx, model: m, constants: s.constants, options: o, opsets: opsetsOf(m.Opsets), leftOut: make(map[string]bool)}
	scope, failed := make(map[string]*value), make(map[string]bool)
	l.initializers(m.Graph, scope, failed)
	l.bind(m.Graph, inputs, scope, failed)
	l.nodes(m.Graph.Nodes, scope, failed)
	f := &Function{shapes: l.arguments, demands: l.demands}
	for _, v := range l.inputs {
		f.inputs, f.variables = append(f.inputs, v.Name()), append(f.variables, v)
	}
	var outputs []*fgraph.Variable
	for _, out := range m.Graph.Outputs {
		v := scope[out.Name]
		if v == nil && failed[out.Name] {
			continue
		}
		if v == nil {
			l.fault("output "+out.Name, errors.New("nothing computes it"))
			continue
		}
		vars, names, err := outputsOf(out.Name, v)
		if err != nil {
			l.fault("output "+out.Name, err)
			continue
		}
		outputs, f.outputs = append(outputs, vars...), append(f.outputs, names...)
	}
	if err := errors.Join(l.faults...); err != nil {
		return nil, err
	}
	for _, d := range f.demands {
		if d.input < 0 {
			outputs = append(outputs, d.v)
		}
	}
	options := exec.FunctionOptions{Profile: o.Profile, Threads: o.Threads, Used: func(a *array.Array) { forget(s.file, a) }}
	switch {
	case o.Optimizer != nil && s.constants != nil:
		options.Optimizer = sharing{o.Optimizer, s.constants}
	case o.Optimizer != nil:
		options.Optimizer = o.Optimizer
	}
	f.f, err = exec.NewFunction(ctx, l.inputs, outputs, options)
	_ = s.file.Forget(nil) // and those for tensors
	f.took = time.Since(start)
	return f, err
}

// initializers makes constants of the initializers of the model.
func (l *lowering) initializers(g *onnx.Graph, scope map[string]*value, failed map[string]bool) {
	for _, t := range g.Initializers {
		a, err := l.arrayOf(t)
		if err != nil {
			l.fault("initializer "+t.Name, err)
			failed[t.Name] = true
			continue
		}
		scope[t.Name] = &value{v: tensor.Constant(a), elem: t.DataType}
	}
}

// A value is what a name stands for: a tensor, and the type of its elements in the model; a sequence;
// or that there is none.
type value struct {
	v    *fgraph.Variable
	elem onnx.DataType
	list *sequence
	none bool
}

// A lowering makes the graph of a model.
type lowering struct {
	ctx       context.Context
	model     *onnx.Model
	constants *constants
	options   Options
	opsets    map[string]int64
	depth     int
	inputs    []*fgraph.Variable
	arguments []*array.Array
	demands   []demand
	leftOut   map[string]bool // inputs without a value
	known     map[*fgraph.Variable]*array.Array
	loops     int   // how many loops are around
	unrolled  int   // nodes of bodies
	kept      int64 // bytes of known, of those in loops
	faults    []error

	attempts int                  // attempts around, see tentatively
	settled  []settled            // in attempts
	decided  map[*onnx.Graph]bool // first branches of Ifs of which the graph has one branch
}

// A settled value has got known sizes.
type settled struct {
	of     *value
	before *fgraph.Variable
}

func opsetsOf(list []*onnx.Opset) map[string]int64 {
	opsets := make(map[string]int64)
	for _, o := range list {
		opsets[domainOf(o.Domain)] = o.Version
	}
	return opsets
}

// domainOf returns the name of a domain: that of ONNX's own operators is empty.
func domainOf(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

// maxFaults bounds the errors about a model.
const maxFaults = 100

func (l *lowering) fault(where string, err error) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Errorf("%s: %w", where, err))
	}
}

// nodes lowers nodes in their order, which is that of a sort. A node whose inputs have failed is not
// lowered, and is no fault of its own unless its operator is one: failed has the values that are missing.
func (l *lowering) nodes(nodes []*onnx.Node, scope map[string]*value, failed map[string]bool) {
	for i, n := range nodes {
		if l.ctx.Err() != nil {
			l.fault("lowering", context.Cause(l.ctx))
			return
		}
		where := whereOf(i, n)
		ok := true
		var missing error
		in := make([]*value, len(n.Inputs))
		for k, name := range n.Inputs {
			switch {
			case name == "":
			case scope[name] != nil:
				in[k] = scope[name]
			case failed[name]:
				ok = false
			case l.leftOut[name]:
				missing = fmt.Errorf("%w: input %s: it has no value", ErrInput, name)
			default:
				l.fault(where, fmt.Errorf("nothing computes its input %s", name))
				ok = false
			}
		}
		var out []*value
		if !ok && !l.computes(n) {
			l.fault(where, noOperator(n))
		}
		if ok {
			var err error
			if err = l.settle(n, in); err == nil {
				out, err = l.node(n, in, scope)
			}
			if err != nil {
				if missing != nil {
					err = fmt.Errorf("%w (%w)", err, missing)
				}
				l.fault(where, err)
				ok = false
			}
		}
		for k, name := range n.Outputs {
			switch {
			case name == "":
			case !ok:
				failed[name] = true
			case k >= len(out) || out[k] == nil:
				failed[name] = true
				l.fault(where, fmt.Errorf("%w: its output %d, %s", ErrUnsupported, k, name))
			default:
				scope[name] = out[k]
			}
		}
	}
}

// settle makes tensors of known sizes of those whose sizes depend on values, such as the places that are not
// zero: only then is it known what is broadcast. The graph depends on these sizes. A node that moves no
// element and asks for none takes any.
func (l *lowering) settle(n *onnx.Node, in []*value) error {
	switch n.Op {
	case "Identity", "Cast", "Shape", "Size", "Transpose", "If":
		return nil
	}
	for _, v := range in {
		if v == nil || v.v == nil || !slices.Contains(tensor.TypeOf(v.v).Shape(), tensor.Unknown) {
			continue
		}
		a, err := l.valueOf(tensor.Shape(v.v))
		if err != nil {
			return fmt.Errorf("a shape: %w", err)
		}
		shape := make([]int, a.Len())
		for i := range shape {
			shape[i] = int(a.Int(i))
		}
		if l.attempts > 0 {
			l.settled = append(l.settled, settled{v, v.v})
		}
		v.v = tensor.SpecifyShape(v.v, shape...) // for all that read it
	}
	return nil
}

// node lowers a node. What package tensor refuses is an error.
func (l *lowering) node(n *onnx.Node, in []*value, scope map[string]*value) (out []*value, err error) {
	domain := domainOf(n.Domain)
	c := &call{lowering: l, node: n, in: in, opset: l.opsets[domain], scope: scope}
	lower := operators[qualified(domain, n.Op)]
	if lower == nil {
		if f := l.function(domain, n.Op, n.Overload); f != nil {
			return l.inline(f, n, in)
		}
		if o := l.options.Operators[qualified(domain, n.Op)]; o != nil {
			return l.foreign(o, n, in)
		}
		return nil, noOperator(n)
	}
	err = c.attempt(func() { out = lower(c) })
	return out, err
}

// computes reports whether there is something that lowers nodes with the operator of n.
func (l *lowering) computes(n *onnx.Node) bool {
	op := qualified(n.Domain, n.Op)
	return operators[op] != nil || l.options.Operators[op] != nil || l.function(domainOf(n.Domain), n.Op, n.Overload) != nil
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

// function returns the function of a model that an operator is.
func (l *lowering) function(domain, op, overload string) *onnx.Function {
	for _, f := range l.model.Functions {
		if domainOf(f.Domain) == domain && f.Name == op && f.Overload == overload {
			return f
		}
	}
	return nil
}

// inline lowers the nodes of a function.
func (l *lowering) inline(f *onnx.Function, n *onnx.Node, in []*value) ([]*value, error) {
	if l.depth++; l.depth > maxDepth {
		return nil, fmt.Errorf("%w: functions in functions, %d deep", ErrUnsupported, l.depth)
	}
	defer func() { l.depth-- }()
	given := make(map[string]*onnx.Attribute)
	for _, a := range slices.Concat(f.Defaults, n.Attributes) {
		given[a.Name] = a
	}
	scope := make(map[string]*value)
	for i, name := range f.Inputs {
		if i < len(in) {
			scope[name] = in[i]
		}
	}
	nodes := make([]*onnx.Node, len(f.Nodes))
	for i, inner := range f.Nodes {
		c := *inner
		c.Attributes = nil
		for _, a := range inner.Attributes {
			if a.Ref == "" {
				c.Attributes = append(c.Attributes, a)
			} else if g := given[a.Ref]; g != nil {
				named := *g
				named.Name = a.Name
				c.Attributes = append(c.Attributes, &named)
			}
		}
		// An input that was left out is left out inside as well.
		c.Inputs = slices.Clone(inner.Inputs)
		for k, name := range c.Inputs {
			if v, ok := scope[name]; ok && v == nil {
				c.Inputs[k] = ""
			}
		}
		nodes[i] = &c
	}
	outer := l.opsets
	l.opsets = maps.Clone(outer)
	maps.Copy(l.opsets, opsetsOf(f.Opsets))
	defer func() { l.opsets = outer }()
	before := len(l.faults)
	l.nodes(nodes, scope, make(map[string]bool))
	if len(l.faults) > before {
		return nil, fmt.Errorf("function %s: %w", f.Name, l.faults[len(l.faults)-1])
	}
	out := make([]*value, len(f.Outputs))
	for i, name := range f.Outputs {
		out[i] = scope[name]
	}
	return out, nil
}
