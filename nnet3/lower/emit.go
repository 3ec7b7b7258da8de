package lower

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Emit turns the values of p into commands again, as its storage says, which must be planned
// (PlanStorage). The result has no debug information: reused matrices have no fixed meaning.
func Emit(p *Program) (*computation.Computation, error) {
	t := newTarget(p.NeedModelDerivative)
	if err := t.program(p); err != nil {
		return nil, err
	}
	return t.c, nil
}

// target is a computation under construction. Programs are appended to it.
type target struct {
	c           *computation.Computation
	views       map[computation.SubMatrixInfo]int32
	precomputed map[*computation.PrecomputedIndexesInfo]int32
	derived     map[component.Component]int32
	numMemos    int32
	rowLists    map[hash][]int32 // by hash: the vectors of Indexes
	pairLists   map[hash][]int32 // by hash: the vectors of IndexesMulti
	carried     map[int32]int32  // by carried matrix: the sub-matrix that covers it here
}

func newTarget(needModelDerivative bool) *target {
	t := &target{c: computation.New(), views: make(map[computation.SubMatrixInfo]int32),
		precomputed: make(map[*computation.PrecomputedIndexesInfo]int32), derived: make(map[component.Component]int32),
		rowLists: make(map[hash][]int32), pairLists: make(map[hash][]int32), carried: make(map[int32]int32)}
	t.c.NeedModelDerivative = needModelDerivative
	return t
}

// program appends the commands of a program.
func (t *target) program(p *Program) error {
	s, ok := StorageOf(p.Graph)
	if !ok {
		return errors.New("lower: the storage of the program is not planned")
	}
	// Without Reuse or Pack every base becomes a matrix.
	s.makeSlots()
	e := &emission{target: t, s: s, memos: make([]int32, p.Graph.NumVariableIDs()), filled: make([]*filled, len(s.values)),
		left: make([]int32, len(s.values)), partOf: make([]int32, len(s.values))}
	if err := e.matrices(); err != nil {
		return err
	}
	for i := range s.items {
		first := len(t.c.Commands)
		if e.item(int32(i)); e.err != nil {
			return e.err
		}
		e.tell(int32(i), first)
	}
	e.close(int32(len(s.items)))
	e.handOver()
	return nil
}

type emission struct {
	*target
	s         *Storage
	whole     []int32 // by slot: the sub-matrix that covers its matrix
	firstItem []int32 // by slot: the item before which it is allocated
	lastItem  []int32 // by slot: the item after which it is freed
	opens     [][]int32
	closes    [][]int32
	memos     []int32   // by variable id: the memo's slot, from 1
	filled    []*filled // by value: what is written of an assembled value so far
	left      []int32   // by value: how many of its terms are still to come
	pending   []*term   // the terms of the present event that are still to be moved
	seen      []bool    // scratch
	partOf    []int32   // by value; scratch, zero between uses
	err       error
}

// matrices makes a matrix for every slot, and finds the first and last items that use it.
func (e *emission) matrices() error {
	s := e.s
	n := len(s.slots)
	e.whole, e.firstItem, e.lastItem = make([]int32, n), make([]int32, n), make([]int32, n)
	e.opens, e.closes = make([][]int32, len(s.items)+1), make([][]int32, len(s.items)+1)
	for k := range s.slots {
		q := &s.slots[k]
		e.firstItem[k] = -1
		if q.bases == nil {
			continue
		}
		span := slices.ContainsFunc(q.bases, func(b int32) bool {
			return slices.ContainsFunc(s.bases[b].members, func(m int32) bool { return s.values[m].span })
		})
		// A matrix from the previous segment is neither made nor allocated here. It keeps its
		// number, so that the caller of the computation sees one matrix with one life.
		if q.carriedIn > 0 {
			if err := e.takeOver(int32(k), span); err != nil {
				return err
			}
			continue
		}
		e.whole[k] = e.c.NewMatrix(int(q.rows), int(q.cols), span)
		e.views[e.c.Submatrices[e.whole[k]]] = e.whole[k]
	}
	for i := range s.items {
		e.uses(int32(i), func(n int32) {
			if b := s.values[n].base; b >= 0 {
				k := s.slotOf[b]
				if e.firstItem[k] < 0 {
					e.firstItem[k] = int32(i)
				}
				e.lastItem[k] = int32(i)
			}
		})
	}
	e.sizing()
	return nil
}

// sizing decides where matrices are allocated and freed.
func (e *emission) sizing() {
	s := e.s
	start := int32(0)
	for int(start) < len(s.items) && s.items[start].kind == stepAccept {
		start++
	}
	for k := range s.slots {
		q := &s.slots[k]
		if q.bases == nil || e.firstItem[k] < 0 {
			continue
		}
		// Terms of one event become commands together, before the item of any of them but the
		// first, so a matrix must exist when the batch begins.
		open, shut := e.batchStart(e.firstItem[k]), e.lastItem[k]
		if !s.MoveSizing {
			// As compiled: all matrices live from the end of the inputs to the end of the
			// computation.
			open, shut = start, int32(len(s.items))
		}
		// Accepting a matrix allocates it, and what the caller takes is the caller's to free.
		if it := s.items[e.firstItem[k]]; it.kind != stepAccept {
			e.opens[open] = append(e.opens[open], int32(k))
		}
		if !q.taken {
			e.closes[shut] = append(e.closes[shut], int32(k))
		}
	}
}

// batchStart returns the first of the terms that are emitted together with item i.
func (e *emission) batchStart(i int32) int32 {
	items := e.s.items
	for items[i].kind == stepTerm && i > 0 && items[i-1].kind == stepTerm && items[i-1].event == items[i].event {
		i--
	}
	return i
}

// uses calls f for every value that item i reads or writes.
func (e *emission) uses(i int32, f func(n int32)) {
	s := e.s
	it := s.items[i]
	operand := func(v *fgraph.Variable) {
		if _, ok := v.Type().(MatrixType); ok {
			root, _ := Resolve(v)
			f(s.valueOf[root.ID()])
		}
	}
	switch it.kind {
	case stepOp:
		for _, v := range s.applies[it.n].Inputs() {
			operand(v)
		}
		for _, v := range s.applies[it.n].Outputs() {
			operand(v)
		}
	case stepTerm:
		f(s.terms[it.n].dst)
		if !s.terms[it.n].constant {
			f(s.terms[it.n].src)
		}
	case stepFill:
		f(it.n)
	case stepAccept:
		operand(s.prog.Graph.Inputs()[it.n])
	case stepProvide:
		operand(s.prog.Graph.Outputs()[it.n])
	}
}

// emit appends a command with the given arguments; the others are 0.
func (t *target) emit(typ computation.CommandType, alpha float32, args ...int32) {
	cmd := computation.Command{Type: typ, Alpha: alpha}
	copy(cmd.Args[:], args)
	t.add(cmd)
}

func (t *target) add(cmd computation.Command) { t.c.Commands = append(t.c.Commands, cmd) }

func (e *emission) setConst(sub int32, x float32) {
	e.emit(computation.SetConst, x, sub)
}

// view returns the sub-matrix for rectangle r of value n.
func (e *emission) view(n int32, r Rect) int32 {
	v := &e.s.values[n]
	b := &e.s.bases[v.base]
	r = r.Shift(v.r-b.rect.R0+e.s.slotRow[v.base], v.c-b.rect.C0+e.s.slotCol[v.base])
	m := e.c.Submatrices[e.whole[e.s.slotOf[v.base]]].Matrix
	info := computation.SubMatrixInfo{Matrix: m, RowOffset: r.R0, NumRows: r.Rows(), ColOffset: r.C0, NumCols: r.Cols()}
	return number(e.views, info, &e.c.Submatrices, info)
}

// operand returns the sub-matrix of a matrix variable.
func (e *emission) operand(v *fgraph.Variable) int32 {
	root, r := Resolve(v)
	return e.view(e.s.valueOf[root.ID()], r)
}

func (e *emission) item(i int32) {
	s := e.s
	for _, k := range e.opens[i] {
		e.emit(computation.AllocMatrix, 1, e.whole[k])
		if !s.LeaveUndefined {
			e.setConst(e.whole[k], 0)
		}
	}
	it := s.items[i]
	switch it.kind {
	case stepOp:
		e.op(s.applies[it.n])
	// The first term of a batch emits all of them.
	case stepTerm:
		if e.batchStart(i) == i {
			e.batch(i)
		}
	case stepFill:
		v := &s.values[it.n]
		// A Fill with readers of its own has a place, in contrast to the constants in an Assemble.
		x, _ := fillOf(v.v)
		e.setConst(e.view(it.n, Rect{0, v.rows, 0, v.cols}), x)
	case stepAccept:
		if port := s.prog.Inputs[it.n]; !port.seam() {
			v := s.prog.Graph.Inputs()[it.n]
			e.emit(computation.AcceptInput, 1, e.operand(v), port.Node)
		}
	case stepProvide:
		sub := e.operand(s.prog.Graph.Outputs()[it.n])
		if !e.c.IsWhole(sub) {
			e.err = fmt.Errorf("lower: output %d is only a part of a matrix", it.n)
		} else if port := s.prog.Outputs[it.n]; !port.seam() {
			e.emit(computation.ProvideOutput, 1, sub, port.Node)
		}
	case stepMarker:
		e.emit(computation.NoOperationMarker, 1)
	}
	e.close(i)
}

// tell tells the program about the commands of item i, which begin with number first.
func (e *emission) tell(i int32, first int) {
	s := e.s
	if s.prog.emitted == nil || first == len(e.c.Commands) {
		return
	}
	var values []*fgraph.Variable
	switch it := s.items[i]; it.kind {
	case stepOp:
		values = s.applies[it.n].Outputs()
	case stepTerm:
		event := s.items[i].event
		for k := i; int(k) < len(s.items) && s.items[k].kind == stepTerm && s.items[k].event == event; k++ {
			if v := s.values[s.terms[s.items[k].n].dst].v; !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	case stepFill:
		values = []*fgraph.Variable{s.values[it.n].v}
	case stepAccept:
		values = []*fgraph.Variable{s.prog.Graph.Inputs()[it.n]}
	case stepProvide:
		values = []*fgraph.Variable{s.prog.Graph.Outputs()[it.n]}
	}
	for c := first; c < len(e.c.Commands); c++ {
		s.prog.emitted(c, values)
	}
}

// close frees the matrices whose last use is item i.
func (e *emission) close(i int32) {
	for _, k := range e.closes[i] {
		e.emit(computation.DeallocMatrix, 1, e.whole[k])
	}
}

// component returns the component's number in commands.
func (e *emission) component(c Component) int32 {
	if c.Number >= 0 {
		return c.Number
	}
	return int32(e.s.prog.numComponents) + number(e.derived, c.C, &e.c.Derived, c.C)
}

func (e *emission) indexes(p *computation.PrecomputedIndexesInfo) int32 {
	if p == nil {
		return 0
	}
	return number(e.precomputed, p, &e.c.PrecomputedIndexes, *p)
}

// memo returns the number of memo v in commands.
func (e *emission) memo(v *fgraph.Variable) int32 {
	m := &e.memos[v.ID()]
	if *m == 0 {
		e.numMemos++
		*m = e.numMemos
	}
	return *m
}

func (e *emission) op(a *fgraph.Apply) {
	switch op := a.Op().(type) {
	case Propagate:
		e.propagate(a, op)
	case Backprop:
		e.backprop(a, op)
	case *RowRanges:
		out := e.operand(a.Out())
		// The only command that sums ranges adds the sums to what is there.
		e.setConst(out, 0)
		n := int32(len(e.c.IndexesRanges))
		e.c.IndexesRanges = append(e.c.IndexesRanges, op.Ranges)
		e.emit(computation.AddRowRanges, 1, out, e.operand(a.Inputs()[0]), n)
	default:
		e.err = fmt.Errorf("lower: no command for %v", op)
	}
}

func (e *emission) propagate(a *fgraph.Apply, op Propagate) {
	comp, pre := e.component(op.Component), e.indexes(op.Precomputed)
	var in, memo, stats int32
	if inputs := a.Inputs(); len(inputs) > 0 {
		if _, ok := inputs[0].Type().(MatrixType); ok {
			in = e.operand(inputs[0])
		}
	}
	out := e.operand(a.Out())
	if op.UsesMemo && len(a.Outputs()[1].Clients()) > 0 {
		memo = e.memo(a.Outputs()[1])
	}
	if op.StoreStats {
		stats = 1
	}
	e.begin(a, op.InputAdded(), op.has(component.PropagateAdds), out, in)
	e.emit(computation.Propagate, 1, comp, pre, in, out, memo, stats)
}

// begin prepares the output of a component that adds: with a copy of what an accumulating op adds
// to, its input number added, unless it is there already, and with zeros if added is -1, unless the
// component works in place on in.
func (e *emission) begin(a *fgraph.Apply, added int, adds bool, out, in int32) {
	switch {
	case added >= 0:
		if from := e.operand(a.Inputs()[added]); from != out {
			e.emit(computation.MatrixCopy, 1, out, from)
		}
	case adds && in != out:
		e.setConst(out, 0)
	}
}

func (e *emission) backprop(a *fgraph.Apply, op Backprop) {
	comp, pre := e.component(op.Component), e.indexes(op.Precomputed)
	typ := computation.BackpropNoModelUpdate
	if op.ModelUpdate {
		typ = computation.Backprop
	}
	inputs := a.Inputs()
	next := func() int32 {
		sub := e.operand(inputs[0])
		inputs = inputs[1:]
		return sub
	}
	var x, y, dx, memo int32
	if op.hasX {
		x = next()
	}
	if op.HasY {
		y = next()
	}
	dy := next()
	if op.UsesMemo {
		memo = e.memo(inputs[0])
	}
	if op.HasDX {
		dx = e.operand(a.Out())
		e.begin(a, op.InputAdded(), op.has(component.BackpropAdds), dx, dy)
	}
	e.emit(typ, 1, comp, pre, x, y, dy, dx, memo)
}
