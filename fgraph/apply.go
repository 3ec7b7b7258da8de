package fgraph

// Values of Apply.id and Variable.id without a graph. The import of new applies
// uses the latter two while it looks for them.
const (
	outside = -1
	onPath  = -2 // being looked at: meeting it again closes a cycle
	found   = -3 // to be imported
)

// smallInputs is the number of inputs for which an apply needs no further
// allocation.
const smallInputs = 3

// An Apply is the application of an op to inputs. It is made by [NewApply] and
// changed only by the graph that it is in.
type Apply struct {
	op      Op
	inputs  []*Variable
	outputs []*Variable
	graph   *FunctionGraph
	more    *[]int32 // as pos, for input smallInputs and up
	// pos says where this apply stands among the clients of each input, so
	// that a use is taken back in constant time however many there are.
	pos    [smallInputs]int32
	id     int32
	origin int32
	by     int32 // why it joined the graph, a place in FunctionGraph.reasons
}

// smallApply is an apply of few inputs and one output with all its parts. Room
// for two clients, because a replacement that takes the place of an apply
// stands beside it for a moment.
type smallApply struct {
	Apply
	out     Variable
	outs    [1]*Variable
	ins     [smallInputs]*Variable
	clients [2]Client
}

// NewApply returns the application of op to inputs, with an output for each of
// outTypes. The slice inputs is copied. The apply joins a graph when a
// replacement brings it in.
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

// ID returns the number of the apply in its graph, at most
// [FunctionGraph.NumApplyIDs]-1, or -1 outside of one. Numbers of applies that
// left the graph are given to new ones.
func (a *Apply) ID() int { return int(max(a.id, outside)) }

// Op returns what is applied.
func (a *Apply) Op() Op { return a.op }

// Inputs returns what the op is applied to. The slice is shared and must not be
// changed.
func (a *Apply) Inputs() []*Variable { return a.inputs }

// Outputs returns the results. The slice is shared and must not be changed.
func (a *Apply) Outputs() []*Variable { return a.outputs }

// Out returns the first output.
func (a *Apply) Out() *Variable { return a.outputs[0] }

// Graph returns the graph that the apply is in, or nil.
func (a *Apply) Graph() *FunctionGraph { return a.graph }

// Origin returns the number of the construct that the apply comes from, such as
// a command or a position in a source text, or -1 if nobody has set it.
func (a *Apply) Origin() int { return int(a.origin) }

// SetOrigin sets the number of the construct that the apply comes from.
func (a *Apply) SetOrigin(origin int) { a.origin = int32(origin) }

func (a *Apply) place(i int) *int32 {
	if i < smallInputs {
		return &a.pos[i]
	}
	return &(*a.more)[i-smallInputs]
}

// unused reports whether no output has a client.
func (a *Apply) unused() bool {
	for _, v := range a.outputs {
		if len(v.clients) > 0 {
			return false
		}
	}
	return true
}
