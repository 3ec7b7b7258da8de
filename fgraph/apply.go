package fgraph

// Values of Apply.id and Variable.id outside of a graph. The search for new applies in import.go
// uses the last two as marks.
const (
	outside = -1
	onPath  = -2 // being visited: meeting it again closes a cycle
	found   = -3 // to be imported
)

// smallInputs is the number of inputs up to which an apply is one allocation.
const smallInputs = 3

// An Apply is the application of an op to inputs. [NewApply] makes it, and only the graph that
// owns it changes it.
type Apply struct {
	op      Op
	inputs  []*Variable
	outputs []*Variable
	graph   *FunctionGraph
	more    *[]int32 // continues pos for input smallInputs and up
	// pos holds, for each input, the position of this apply among the clients of that input,
	// so that removing a client takes constant time.
	pos    [smallInputs]int32
	id     int32
	origin int32
	by     int32 // why it was imported: an index into FunctionGraph.reasons

	opNumber int32 // see FunctionGraph.OpNumber; 0 if not known
}

// smallApply is an apply with few inputs and one output, allocated in one piece. It has room for
// two clients because the replacement of an apply is briefly in the graph beside it.
type smallApply struct {
	Apply
	out     Variable
	outs    [1]*Variable
	ins     [smallInputs]*Variable
	clients [2]Client
}

// NewApply returns the application of op to inputs, with one output for each of outTypes. It
// copies the slice inputs. The apply joins a graph when a replacement brings it in.
func NewApply(op Op, inputs []*Variable, outTypes ...Type) *Apply {
	if len(inputs) <= smallInputs && len(outTypes) == 1 {
		s := &smallApply{Apply: Apply{op: op, id: outside, origin: -1}}
		s.inputs = s.ins[:copy(s.ins[:], inputs):len(inputs)]
		s.out = Variable{typ: outTypes[0], owner: &s.Apply, clients: s.clients[:0], id: outside}
		s.outs[0] = &s.out
		s.outputs = s.outs[:]
		return &s.Apply
	}
	a := &Apply{op: op, id: outside, origin: -1}
	a.inputs = append(make([]*Variable, 0, len(inputs)), inputs...)
	if len(inputs) > smallInputs {
		more := make([]int32, len(inputs)-smallInputs)
		a.more = &more
	}
	outs := make([]Variable, len(outTypes))
	a.outputs = make([]*Variable, len(outTypes))
	for i := range outs {
		outs[i] = Variable{typ: outTypes[i], owner: a, id: outside, index: int32(i)}
		a.outputs[i] = &outs[i]
	}
	return a
}

// ID returns the number of the apply in its graph, which is below [FunctionGraph.NumApplyIDs],
// or -1 outside of a graph. New applies reuse the numbers of those that have left.
func (a *Apply) ID() int { return int(max(a.id, outside)) }

// Op returns the op that is applied.
func (a *Apply) Op() Op { return a.op }

// Inputs returns the operands. Do not modify the slice.
func (a *Apply) Inputs() []*Variable { return a.inputs }

// Outputs returns the results. Do not modify the slice.
func (a *Apply) Outputs() []*Variable { return a.outputs }

// Out returns the first output.
func (a *Apply) Out() *Variable { return a.outputs[0] }

// Graph returns the graph that owns the apply, or nil.
func (a *Apply) Graph() *FunctionGraph { return a.graph }

// Origin returns the number of the construct that the apply comes from, such as a command or a
// position in a source text, or -1 if it was not set.
func (a *Apply) Origin() int { return int(a.origin) }

// SetOrigin sets the number of the construct that the apply comes from.
func (a *Apply) SetOrigin(origin int) { a.origin = int32(origin) }

func (a *Apply) place(i int) *int32 {
	if i < smallInputs {
		return &a.pos[i]
	}
	return &(*a.more)[i-smallInputs]
}

// unused reports whether no output has a client. It looks first around output near, the last that has lost one: where
// n outputs lose theirs in any order, the distances to the nearest one that has some add up to n log n.
func (a *Apply) unused(near int32) bool {
	used := func(i int) bool { return i >= 0 && i < len(a.outputs) && len(a.outputs[i].clients) > 0 }
	for i, d := int(near), 0; i-d >= 0 || i+d < len(a.outputs); d++ {
		if used(i-d) || used(i+d) {
			return false
		}
	}
	return true
}
