package lower

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

const (
	keyFirst = math.MinInt64
	keyLast  = math.MaxInt64
)

// keyOf returns the key of command n. Keys leave room between commands.
func keyOf(n int32) int64 { return 4 * int64(n) }

// schedule builds the tables of values and terms and the steps of the graph, and orders the steps.
func (s *Storage) schedule() error {
	g := s.prog.Graph
	applies, err := g.Toposort()
	if err != nil {
		return fmt.Errorf("lower: %w", err)
	}
	s.applies = applies
	s.valueOf = slices.Repeat([]int32{-1}, g.NumVariableIDs())
	b := &scheduleBuilder{Storage: s, made: slices.Clone(s.valueOf), marker: -1}
	b.makeRoom(applies)
	// The order of these calls is that of dependencies: a step can only wait for steps that exist,
	// and applies are in topological order. What orders steps beyond that, fills and the demands of
	// features, comes last, when all readers are known.
	b.ports()
	for i, a := range applies {
		b.apply(int32(i), a)
	}
	b.provide()
	b.fills()
	b.orderings()
	if err := b.sched.run(); err != nil {
		return err
	}
	b.events()
	return nil
}

// makeRoom allocates the tables.
func (b *scheduleBuilder) makeRoom(applies []*fgraph.Apply) {
	values, terms := len(b.prog.Graph.Inputs()), 0
	for _, a := range applies {
		switch op := a.Op().(type) {
		case Block:
		case *Assemble:
			values, terms = values+1, terms+len(op.Terms)
		default:
			values += len(a.Outputs())
		}
	}
	steps := values + terms + len(b.prog.Graph.Outputs()) + 1
	b.values, b.terms = make([]value, 0, values), make([]term, 0, terms)
	b.items = make([]item, 0, steps)
	b.stepOf = make([]int32, 0, len(applies))
	b.sched.edges = make([]stepEdge, 0, 2*steps)
	b.sched.steps, b.sched.order = make([]step, 0, steps), make([]int32, 0, steps)
}

type scheduleBuilder struct {
	*Storage
	sched  scheduler
	made   []int32 // by variable id: the step that completes the variable, or -1
	marker int32   // the marker's step, or -1
	stepOf []int32 // by apply: its step, or -1
}

func (b *scheduleBuilder) newValue(v *fgraph.Variable, kind valueKind) int32 {
	t := TypeOf(v)
	n := int32(len(b.values))
	b.values = append(b.values, value{v: v, rows: t.Rows, cols: t.Cols, kind: kind})
	b.valueOf[v.ID()] = n
	return n
}

// ports makes the steps of the inputs and of the marker.
func (b *scheduleBuilder) ports() {
	p := b.prog
	for _, port := range p.Inputs {
		if port.Node >= 0 && port.At > p.Marker {
			b.marker = b.sched.add(stepMarker, 0, keyOf(p.Marker))
			break
		}
	}
	for i, v := range p.Graph.Inputs() {
		port := p.Inputs[i]
		if !port.IsMatrix() {
			continue
		}
		// A matrix for the backward pass must not be accepted before the marker: that is where the
		// caller hands it over.
		key := int64(keyFirst)
		if port.At > p.Marker {
			// Keys of commands are multiples of four, so this is after the marker and before any
			// command that follows it.
			key = keyOf(p.Marker) + 1
		}
		st := b.sched.add(stepAccept, int32(i), key)
		if key != keyFirst {
			b.sched.before(b.marker, st)
		}
		b.newValue(v, accepted)
		b.made[v.ID()] = st
	}
}

// needs makes step st wait for variable v, and returns the value and the rectangle of it that v is.
func (b *scheduleBuilder) needs(st int32, v *fgraph.Variable) (int32, Rect) {
	root, r := Resolve(v)
	n := b.valueOf[root.ID()]
	if m := b.made[root.ID()]; m >= 0 {
		b.sched.before(m, st)
	}
	return n, r
}

func (b *scheduleBuilder) apply(i int32, a *fgraph.Apply) {
	b.stepOf = append(b.stepOf, -1)
	switch op := a.Op().(type) {
	case Block:
	case Fill:
		b.newValue(a.Out(), constant)
	case *Assemble:
		b.assemble(a, op)
	default:
		st := b.sched.add(stepOp, i, keyOf(int32(a.Origin())))
		b.stepOf[i] = st
		// An op that may overwrite one operand is not done with the others before it writes, so
		// these must stay for half an event longer. Whether it does overwrite is not known until
		// places are, so the schedule assumes it.
		over := destroyed(a, 0)
		for k, v := range a.Inputs() {
			if n, r := b.needs(st, v); n >= 0 {
				b.values[n].reads = append(b.values[n].reads, read{rect: r, step: st, term: -1, beside: over >= 0 && k != over})
			}
		}
		for _, v := range a.Outputs() {
			b.made[v.ID()] = st
			if _, ok := v.Type().(MatrixType); ok {
				n := b.newValue(v, computed)
				b.values[n].step = st
			}
		}
	}
}

func (b *scheduleBuilder) assemble(a *fgraph.Apply, op *Assemble) {
	// Without terms it is a matrix of zeros, and needs a fill only if it is read.
	if len(op.Terms) == 0 {
		b.newValue(a.Out(), constant)
		return
	}
	n := b.newValue(a.Out(), assembled)
	// Readers wait for one step instead of for every term: a value of n terms with m readers then
	// has n+m edges in place of n·m. The key lets it come as soon as it can.
	ready := b.sched.add(stepReady, n, keyFirst)
	b.made[a.Out().ID()] = ready
	b.values[n].step = ready
	b.values[n].terms = [2]int32{int32(len(b.terms)), int32(len(b.terms) + len(op.Terms))}
	set := constantTerms(a, op)
	// There is no command that adds a constant, so constants must be set before anything is added
	// to the same rows, but no earlier: until then the place is free for others.
	earliest := int32(math.MaxInt32) // the first of the others
	for k := range op.Terms {
		if !set[k] {
			earliest = min(earliest, op.Terms[k].At)
		}
	}
	for k := range op.Terms {
		t := op.Terms[k]
		num := int32(len(b.terms))
		key := keyOf(t.At)
		if set[k] && earliest != math.MaxInt32 {
			key = keyOf(earliest) - 1 // right before the first of the others, which add to the constant
		}
		st := b.sched.add(stepTerm, num, key)
		in := a.Inputs()[t.Input]
		root, r := Resolve(in)
		src := b.valueOf[root.ID()]
		t.ShiftSrc(r.R0, r.C0)
		b.terms = append(b.terms, term{Term: t, dst: n, src: src, step: st})
		// A constant term has no source: its step waits for nothing, and its Fill needs no memory.
		if set[k] {
			b.terms[num].constant = true
			x, _ := fillOf(b.values[src].v)
			b.terms[num].Scale *= x
		} else {
			b.needs(st, in)
			b.values[src].reads = append(b.values[src].reads, read{rect: t.Src(), step: st, term: num})
		}
		b.sched.before(st, ready)
	}
}

// constantTerms returns, by term, which are constants for SetConst. No command adds a constant, so
// of several that overlap only the first is. The others move like any term.
func constantTerms(a *fgraph.Apply, op *Assemble) []bool {
	set := make([]bool, len(op.Terms))
	var f boxForest
	root := int32(0)
	for k := range op.Terms {
		if _, ok := fillOf(a.Inputs()[op.Terms[k].Input]); !ok {
			continue
		}
		// The search tree of occupations serves as a set of rectangles here, since all have the
		// same time and different roots.
		o := occupation{box{Rect: op.Terms[k].Dst()}, int32(k)}
		if set[k] = f.clash(root, &o) == 0; set[k] {
			root = f.insert(root, f.add(o, cellRef{}))
		}
	}
	return set
}

// fillOf returns the element of a Fill, 0 for another op, and whether v is a Fill.
func fillOf(v *fgraph.Variable) (float32, bool) {
	if a := v.Owner(); a != nil {
		if f, ok := a.Op().(Fill); ok {
			return f.Value, true
		}
	}
	return 0, false
}

func (b *scheduleBuilder) provide() {
	p := b.prog
	for i, v := range p.Graph.Outputs() {
		port := p.Outputs[i]
		if !port.IsMatrix() {
			continue
		}
		// Outputs leave as late as possible, but those of the forward pass before the marker, where
		// the caller takes them.
		key := int64(keyLast)
		forward := b.marker >= 0 && port.At < p.Marker
		if forward {
			key = keyOf(p.Marker) - 1
		}
		st := b.sched.add(stepProvide, int32(i), key)
		n, r := b.needs(st, v)
		b.values[n].reads = append(b.values[n].reads, read{rect: r, step: st, term: -1})
		if forward {
			b.sched.before(st, b.marker)
		}
	}
}

// fills makes a step for every constant matrix that is an operand, right before its first reader.
func (b *scheduleBuilder) fills() {
	for n := range b.values {
		v := &b.values[n]
		if v.kind != constant || len(v.reads) == 0 {
			continue
		}
		key := int64(keyLast)
		for _, r := range v.reads {
			key = min(key, b.sched.steps[r.step].key)
		}
		v.step = b.sched.add(stepFill, int32(n), key-1)
		for _, r := range v.reads {
			b.sched.before(v.step, r.step)
		}
	}
}

// orderings adds the demands of features, such as readers of a value before its destroyer.
func (b *scheduleBuilder) orderings() {
	number := make([]int32, b.prog.Graph.NumApplyIDs())
	for i, a := range b.applies {
		number[a.ID()] = int32(i)
	}
	b.prog.Graph.Orderings(func(first, second *fgraph.Apply) {
		// Blocks and Fills have no step, so they neither wait nor are waited for. An Assemble is
		// complete with its last term.
		st := b.stepOf[number[second.ID()]]
		if st < 0 {
			return
		}
		if f := b.stepOf[number[first.ID()]]; f >= 0 {
			b.sched.before(f, st)
		} else if n := b.valueOf[first.Out().ID()]; n >= 0 && b.values[n].kind == assembled {
			b.sched.before(b.values[n].step, st)
		}
	})
}

// events numbers the steps. An op is an event of its own; consecutive terms that do not need each
// other share one, so that one command can do them.
func (b *scheduleBuilder) events() {
	eventOf := make([]int32, len(b.sched.steps))
	event, batch := int32(0), false // batch tells whether the present event consists of terms
	for _, st := range b.sched.order {
		s := &b.sched.steps[st]
		// Time is counted in events, and not in steps, because one command may do several terms: as
		// events of their own, the first would seem to end before the next begins, and the places
		// of what they read could be given away in between.
		same := false // whether the step belongs to the present event
		switch s.kind {
		case stepReady:
			same = true
		case stepAccept:
			same = event == 0
		case stepTerm:
			t := &b.terms[s.n]
			// A term of the same batch may read an assembled value only if that was complete before
			// the batch, since one command reads everything before it writes.
			same = batch && (t.constant || b.values[t.src].done != event)
		}
		if !same {
			event++
		}
		batch = s.kind == stepTerm || same && batch
		eventOf[st] = event
		if s.kind != stepReady {
			b.items = append(b.items, item{event: event, kind: s.kind, n: s.n})
		}
		switch s.kind {
		case stepReady, stepFill:
			b.values[s.n].done = event
		case stepTerm:
			b.terms[s.n].event = event
		case stepAccept:
			b.values[b.valueOf[b.prog.Graph.Inputs()[s.n].ID()]].done = event
		case stepOp:
			for _, v := range b.applies[s.n].Outputs() {
				if n := b.valueOf[v.ID()]; n >= 0 {
					b.values[n].done = event
				}
			}
		}
	}
	b.numEvents = event + 1
	for n := range b.values {
		v := &b.values[n]
		for i := range v.reads {
			v.reads[i].event = eventOf[v.reads[i].step]
		}
	}
}
