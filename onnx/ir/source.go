package ir

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// A Source is the feature of a graph that knows the model it is from: what the graph itself does not
// have, so that Export loses nothing. It keeps a record of what passes changed.
type Source struct {
	// Model is the model that was imported. It does not change.
	Model *onnx.Model
	// Operators are those that the ops of the graph belong to.
	Operators *Operators
	// Evaluator computes nodes whose inputs are constants, if it is not nil.
	Evaluator Evaluator
	// Dir is the folder of the model, where external data are.
	Dir string

	// imported is the graph of the model. Another graph with this source, such as a copy or a part, has
	// inputs and outputs of its own.
	imported *fgraph.FunctionGraph

	*origins
	opsets   map[string]int64
	raise    int64   // the last version to which the model may be raised
	fixed    bool    // sizes or values were given, which the types of inputs and outputs may show
	unsorted bool    // the model has nodes in front of others whose results they use; the graph and what Export returns are sorted
	grown    *growth // see Room
	changes  []Change
}

// origins are what all graphs of a model know of its nodes.
type origins struct {
	nodes  []imported // by origin of an apply
	latest int64      // the last version of ONNX's operators in which all of the model mean the same
	// constants are the Constant nodes, by what they have.
	constants   map[*Value]*onnx.Node
	symbols     map[string]bool // the names of symbols
	contributed bool            // the model has the operator of that name in a version that lacks it
	calls       bool            // there are calls of functions among the nodes
	// initializers are those of the model by name, once somebody has asked.
	initializers func() map[string]*onnx.Tensor
}

// An Evaluator computes ops.
type Evaluator interface {
	// Evaluate returns the results of an op for inputs, nil for those that are left out.
	Evaluate(ctx context.Context, op *Op, inputs []*Value) ([]*Value, error)
}

// An imported node is one of the model, with the op that it became.
type imported struct {
	node   *onnx.Node
	op     *Op
	path   string    // of the graph that it is in: "node 3, If/then_branch/"
	index  int       // in that graph
	branch *branchOf // that it is in, nil for none
	// function is what is known of a node of a function, or of one that calls a function, else nil.
	function *inFunction
}

// A branchOf is a branch of an If of the model: the first or the second one, k, of the node of an origin.
type branchOf struct {
	outer *branchOf
	of, k int
}

// A Change is a replacement that a pass made.
type Change struct {
	fgraph.Reason
	Old string // the name of the value, and what computed it
	Op  string
	New string
	By  string
}

// NewSource returns the feature for graphs of no file, with the newest operators that package
// onnx/lower knows.
func NewSource(operators *Operators) *Source {
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: newestOpset}}, Graph: &onnx.Graph{Name: "graph"}}
	return &Source{Model: m, Operators: operators, origins: newOrigins(m), opsets: map[string]int64{"": newestOpset}, raise: math.MaxInt64, grown: new(growth)}
}

const newestOpset = 22

func newOrigins(m *onnx.Model) *origins {
	return &origins{latest: math.MaxInt64, constants: make(map[*Value]*onnx.Node), symbols: make(map[string]bool), initializers: sync.OnceValue(func() map[string]*onnx.Tensor {
		byName := make(map[string]*onnx.Tensor)
		for _, t := range slices.Backward(m.Graph.Initializers) { // the first of a name counts
			byName[t.Name] = t
		}
		return byName
	})}
}

// OnAttach lets a graph have one source.
func (s *Source) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := fgraph.FeatureOf[*Source](g); ok {
		return fgraph.ErrAlreadyAttached
	}
	// What is there from the beginning is no growth.
	s.grown = new(growth)
	return nil
}

// For returns the feature for another graph of the same model, such as a copy.
func (s *Source) For() *Source {
	c := *s
	c.changes, c.imported = nil, nil
	return &c
}

// SourceOf returns the source of a graph, or that of a graph of no file.
func SourceOf(g *fgraph.FunctionGraph) *Source {
	if s, ok := fgraph.FeatureOf[*Source](g); ok {
		return s
	}
	return NewSource(Standard())
}

// Opset returns the version of a domain.
func (s *Source) Opset(domain string) int64 { return s.opsets[domain] }

// Changes returns what passes replaced, in order.
func (s *Source) Changes() []Change { return s.changes }

// Note notes changes of another graph of the model, such as a body.
func (s *Source) Note(list ...Change) { s.changes = append(s.changes, list...) }

// OnCommit notes replacements. What replaces a value and has no name takes that of the value. A better
// type for the same node is no change.
func (s *Source) OnCommit(_ *fgraph.FunctionGraph, pairs []fgraph.Replacement, why fgraph.Reason) {
	for _, p := range pairs {
		if p.New.Name() == "" {
			p.New.SetName(p.Old.Name())
		}
		if a, b := p.Old.Owner(), p.New.Owner(); a != nil && b != nil && a.Op() == b.Op() && p.Old.Name() == p.New.Name() && slices.Equal(a.Inputs(), b.Inputs()) {
			continue
		}
		s.changes = append(s.changes, Change{Reason: why, Old: p.Old.Name(), Op: opName(p.Old), New: p.New.Name(), By: opName(p.New)})
		// What takes the place of a node inherits its origin, so that messages about it, and its name
		// in the file, still lead to the model.
		if a, b := p.Old.Owner(), p.New.Owner(); a != nil && b != nil && b.Origin() < 0 {
			b.SetOrigin(a.Origin())
		}
	}
}

// opName says what computes a variable.
func opName(v *fgraph.Variable) string {
	switch {
	case v.Owner() != nil:
		return v.Owner().Op().(*Op).Name()
	case v.IsConstant():
		return "constant"
	}
	return "input"
}

// origin returns the node of the model that an apply comes from, or nil.
func (o *origins) origin(a *fgraph.Apply) *imported {
	if k := a.Origin(); k >= 0 && k < len(o.nodes) {
		return &o.nodes[k]
	}
	return nil
}

// Where says which node of the model an apply comes from, such as "node 3, If/then_branch/node 0, Neg":
// the number of a node in its graph, its operator and its name. It is the op if there is no such node.
func (s *Source) Where(a *fgraph.Apply) string {
	if old := s.origin(a); old != nil {
		return old.where()
	}
	return a.Op().(*Op).Name()
}

// Nodes yields the ops that the nodes of the model became and where these are, in order: those that no
// output depends on as well, and those of functions where they are called.
func (s *Source) Nodes(yield func(where string, op *Op) bool) {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.op == nil || n.function != nil && n.function.is != nil {
			continue
		}
		if !yield(n.where(), n.op) {
			return
		}
	}
}

func (n *imported) where() string { return n.path + whereOf(n.index, n.node) }

// whereOf names a node by its place in its graph, its operator and its name.
func whereOf(i int, n *onnx.Node) string {
	where := "node " + strconv.Itoa(i) + ", " + n.Op
	if n.Name != "" {
		where += " " + n.Name
	}
	return where
}

// Initializer returns an initializer of the model, or nil. If it is an input, too, that is its default.
func (s *Source) Initializer(name string) *onnx.Tensor {
	return s.initializers()[name]
}

// maxGrowth is by how many bytes passes may make the constants of a graph larger, in all. A constant that
// something else still reads stays in the file beside what is computed from it, and one that is doubled
// sixteen times is a file of gigabytes. With names and types, a file grows by less than 64 kB.
const maxGrowth = 60_000

// small is how many bytes of a constant are not counted: the node that it takes the place of has as many.
const small = 16

// A growth counts by how many bytes the constants of a graph have become larger. Equal constants count once,
// because they are merged in the end.
type growth struct {
	bytes int64
	more  int64                     // that are allowed besides maxGrowth
	made  map[uint64][]madeConstant // by hash
}

// A madeConstant are equal constants that were not there in the beginning, and how many there are.
type madeConstant struct {
	t    Type
	x    *Value
	live int
}

// count counts a constant that has got its first reader, or takes away one that has lost its last.
func (r *growth) count(v *fgraph.Variable, born bool) {
	n := storedBytes(v)
	if n == 0 {
		return
	}
	t, x := TypeOf(v), ValueOf(v)
	h := t.HashData(x)
	list := r.made[h]
	i := slices.IndexFunc(list, func(m madeConstant) bool { return m.t == t && t.EqualData(m.x, x) })
	switch {
	case born && i >= 0:
		list[i].live++
	case born:
		if r.made == nil { // as in most of very many bodies
			r.made = make(map[uint64][]madeConstant)
		}
		r.made[h] = append(list, madeConstant{t, x, 1})
		r.bytes += n
	case i < 0: // one of the beginning
		r.bytes -= n
	case list[i].live > 1:
		list[i].live--
	default:
		r.made[h] = slices.Delete(list, i, i+1)
		r.bytes -= n
	}
}

// countOwn counts the constants that only an apply reads.
func (r *growth) countOwn(a *fgraph.Apply, born bool) {
	for v := range own(a) {
		r.count(v, born)
	}
}

// Room returns by how many bytes the constants of the graph may still grow. It follows every change: what is
// undone is not counted, and what nothing reads any more makes room.
func (s *Source) Room() int64 { return maxGrowth + s.grown.more - s.grown.bytes }

// AllowGrowth allows more bytes of constants, for a graph that is run and not written: what is not computed at
// once is computed in each run.
func (s *Source) AllowGrowth(bytes int64) { s.grown.more = bytes }

// GrowsWith has the constants of the graph count as those of another one, which it is a body in: the room is that of
// the whole model.
func (s *Source) GrowsWith(outer *Source) { s.grown = outer.grown }

// Validate objects to constants that have become too large.
func (s *Source) Validate(*fgraph.FunctionGraph) error {
	if s.Room() < 0 {
		return fmt.Errorf("%w: constants would take %d bytes more than in the model, and %d are allowed", fgraph.ErrInconsistent, s.grown.bytes, maxGrowth+s.grown.more)
	}
	return nil
}

// OnImport counts the constants that only a reads.
func (s *Source) OnImport(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	s.grown.countOwn(a, true)
}

// OnPrune takes away the constants that only a reads.
func (s *Source) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	s.grown.countOwn(a, false)
}

// OnChangeInput counts a constant that gets its first reader, and takes away one that has lost its last.
func (s *Source) OnChangeInput(_ *fgraph.FunctionGraph, _ *fgraph.Apply, _ int, old, new *fgraph.Variable, _ fgraph.Reason) {
	// The edge has moved already: who lost its last reader has none now, and a first reader is the only one.
	if old != nil && len(old.Clients()) == 0 {
		s.grown.count(old, false)
	}
	if new != nil && len(new.Clients()) == 1 {
		s.grown.count(new, true)
	}
}

// OwnBytes returns the bytes of the constants that only an apply of a graph reads, each once: those that go
// when it does.
func OwnBytes(a *fgraph.Apply) (n int64) {
	for v := range own(a) {
		n += storedBytes(v)
	}
	return n
}

// own yields the constants that only an apply of a graph reads, each once.
func own(a *fgraph.Apply) iter.Seq[*fgraph.Variable] {
	return func(yield func(*fgraph.Variable) bool) {
		for i, v := range a.Inputs() {
			list := v.Clients()
			if !v.IsConstant() || len(list) == 0 || list[0] != (fgraph.Client{Apply: a, Index: i}) {
				continue // found at another position, or read by others
			}
			if !slices.ContainsFunc(list, func(c fgraph.Client) bool { return c.Apply != a }) && !yield(v) {
				return
			}
		}
	}
}

// storedBytes returns about how many bytes a constant adds to a file, 0 for what is no constant.
func storedBytes(v *fgraph.Variable) int64 {
	x := ValueOf(v)
	switch {
	case x == nil:
		return 0
	case x.sparse != nil:
		return max(0, tensorBytes(x.sparse.Values)+tensorBytes(x.sparse.Indices)-small)
	}
	return max(0, tensorBytes(x.Tensor)-small)
}

// tensorBytes returns the bytes of the elements of a tensor as it is written: integers may be encoded in fewer
// bytes than they have in memory.
func tensorBytes(t *onnx.Tensor) (n int64) {
	if t == nil {
		return 0
	}
	for _, b := range t.Strings {
		n += int64(len(b)) + 2
	}
	// protobuf extends the sign of an int32 to 64 bits, so a negative one takes ten bytes.
	for _, k := range t.Int32s {
		n += int64(varintBytes(uint64(k)))
	}
	for _, k := range t.Int64s {
		n += int64(varintBytes(uint64(k)))
	}
	for _, k := range t.Uint64s {
		n += int64(varintBytes(k))
	}
	if n > 0 {
		return n
	}
	_, n, _ = t.Size() // one whose size is not known has a fault that whoever reads it finds
	return n
}

// varintBytes returns in how many bytes an integer is encoded, seven bits in each.
func varintBytes(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
