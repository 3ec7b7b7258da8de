package array

// blockSize is the number of elements in a block. A slot of 512 float64s takes 4 kB, so that the
// slots of some ten operations stay in the first-level cache.
const blockSize = 512

// An operand is an array that a program reads or writes.
type operand struct {
	*Array
	steps   [MaxDims]int // strides over the dimensions of the loop
	dense   bool         // blocks are contiguous
	uniform bool         // all elements are equal
	staged  bool         // an output that is written after the whole block has been computed
	// A repeated operand is the same in each row of two dimensions, and a flat one has one element for each row
	// of the last one. The slot of a repeated one keeps the block that begins at an element of the row, and
	// that of a flat one the block of a row; held is how long it is.
	repeated, flat bool
	phase, held    int
}

// loop is the state of one run of a program.
type loop struct {
	shape    [MaxDims]int
	ndim     int
	operands []operand
	lanes    []lane
	scratch  lane // memory for all blocks of a type
	size     int  // of blocks, at most
}

// Map runs a program over arrays. The outputs have memory and the same shape. The inputs have that
// shape too, except for dimensions of size 1, which are broadcast. An output may be an input;
// otherwise it must not share memory with one. Map panics if types or shapes do not fit.
func (ws *Workspace) Map(p *Program, out, in []*Array) {
	if len(in) != p.inputs || len(out) != len(p.outs) {
		panic("array: wrong number of arrays for a program")
	}
	n := out[0].Len()
	if n == 0 {
		return
	}
	if ws.straight(p, n, out, in) {
		return
	}
	lp := &ws.loop
	lp.size = ws.blockOf(n)
	lp.begin(p, out, in)
	ws.run(lp, p, 0, n)
	lp.end()
}

// run runs the program on n elements from lo on.
func (lp *loop) run(p *Program, lo, n int) {
	for end := lo + n; lo < end; lo += lp.size {
		lp.block(p, lo, min(lp.size, end-lo))
	}
}

// end forgets the operands, so as not to keep memory alive.
func (lp *loop) end() {
	for i := range lp.operands {
		lp.operands[i].Array = nil
	}
}

// begin prepares operands and lanes.
func (lp *loop) begin(p *Program, out, in []*Array) {
	lp.operands = lp.operands[:0]
	shape := out[0].Shape()
	for k, a := range in {
		if a.dtype != p.types[k] || int(a.ndim) != len(shape) {
			panic("array: an input does not fit its program")
		}
		o := operand{Array: a}
		for d, n := range shape {
			switch a.shape[d] {
			case n:
				o.steps[d] = a.strides[d]
			case 1:
			default:
				panic("array: shapes do not broadcast")
			}
		}
		lp.operands = append(lp.operands, o)
	}
	for k, a := range out {
		if a.dtype != p.OutputType(k) || a.NDim() != len(shape) {
			panic("array: an output does not fit its program")
		}
		o := operand{Array: a}
		for d, n := range shape {
			if a.shape[d] != n {
				panic("array: outputs of different shapes")
			}
			o.steps[d] = a.strides[d]
		}
		for i, b := range in {
			// An output may be an input. If the program makes this output before it has read that
			// input for the last time, the block is kept aside until all of the program has run on
			// it: an instruction would otherwise overwrite what a later one still needs.
			o.staged = o.staged || p.lastRead[i] > p.written[k] && a.Overlaps(b)
		}
		lp.operands = append(lp.operands, o)
	}
	// The fewer dimensions there are, the longer are the runs of elements that can be copied at a
	// time. Usually one is left, and no copy is needed.
	lp.coalesce(shape)
	for i := range lp.operands {
		o := &lp.operands[i]
		// A uniform operand fills its slot once for all blocks. A dense one is used where it is,
		// block by block. Of all others, blocks are gathered into slots, or scattered from them.
		o.uniform = true
		for _, s := range o.steps[:lp.ndim] {
			o.uniform = o.uniform && s == 0
		}
		o.dense = true
		step := 1
		for d := lp.ndim - 1; d >= 0; d-- {
			o.dense = o.dense && o.steps[d] == step
			step *= lp.shape[d]
		}
	}
	lp.repeat()
	lp.flatten()
	lp.allot(p)
}

// repeat finds the operands that are the same in all rows, and makes blocks of whole rows for them.
func (lp *loop) repeat() {
	if lp.ndim != 2 || lp.shape[1] > lp.size {
		return
	}
	whole := lp.size - lp.size%lp.shape[1]
	for i := range lp.operands {
		if o := &lp.operands[i]; o.steps[0] == 0 && o.steps[1] != 0 {
			o.repeated, o.held = true, 0
			lp.size = whole
		}
	}
}

// flatten finds the operands that have one element for each row. If rows are longer than blocks, most blocks
// have the element of the block before, and all of a row if it is divided into blocks that are not much shorter.
func (lp *loop) flatten() {
	if lp.ndim < 2 || lp.shape[lp.ndim-1] <= lp.size {
		return
	}
	flat := false
	for i := range lp.operands {
		o := &lp.operands[i]
		o.flat, o.held = !o.uniform && o.steps[lp.ndim-1] == 0, 0
		flat = flat || o.flat
	}
	row := lp.shape[lp.ndim-1]
	for n := lp.size &^ 15; flat && n > lp.size/2; n -= 16 {
		if row%n == 0 {
			lp.size = n
			return
		}
	}
}

// coalesce drops dimensions of size 1 and merges adjacent ones if the strides of all operands allow
// it.
func (lp *loop) coalesce(shape []int) {
	lp.ndim = 0
	for d, n := range shape {
		if n == 1 {
			continue
		}
		k := lp.ndim
		// Dimensions k-1 and d are one if for every operand a step in the first is as long as all
		// steps in the second. What is broadcast in both has steps of zero, and so joins as well.
		joins := k > 0
		for i := range lp.operands {
			o := &lp.operands[i]
			o.steps[k] = o.steps[d]
			joins = joins && o.steps[k-1] == o.steps[k]*n
		}
		if joins {
			k--
			n *= lp.shape[k]
			for i := range lp.operands {
				o := &lp.operands[i]
				o.steps[k] = o.steps[k+1]
			}
		}
		lp.shape[k] = n
		lp.ndim = k + 1
	}
}

// allot gives each slot memory for a block, and fills slots of constants and of uniform operands.
func (lp *loop) allot(p *Program) {
	// One piece of memory for all slots of a type, which the next run uses again. Slots whose
	// operands are dense get theirs in vain, but they become views before anything is written to
	// them.
	for _, c := range p.counts {
		lp.scratch.reserve(c.dtype, c.n*lp.size)
	}
	lp.lanes = lp.lanes[:0]
	for k, t := range p.slots {
		lp.lanes = append(lp.lanes, lane{})
		lp.lanes[k].allot(t, &lp.scratch, int(p.places[k])*lp.size, lp.size)
	}
	for _, c := range p.fixed {
		kinds[c.data.dtype].fill(&lp.lanes[c.value], c.data)
	}
	for k := range p.inputs {
		if o := &lp.operands[k]; o.uniform && !o.dense {
			kinds[o.dtype].fill(&lp.lanes[k], o.Array)
		}
	}
}

// block runs the program on the elements [lo, lo+n).
func (lp *loop) block(p *Program, lo, n int) {
	shape := lp.shape[:lp.ndim]
	for k := range p.inputs {
		o := &lp.operands[k]
		switch {
		case o.dense:
			kinds[o.dtype].point(&lp.lanes[k], o.Array, lo, n)
		case o.repeated && o.held >= n && o.phase == lo%lp.shape[1]:
		case o.flat && o.held >= n && o.phase == lp.row(lo) && lp.row(lo+n-1) == o.phase:
		case !o.uniform:
			o.phase, o.held = 0, 0
			if o.repeated {
				o.phase, o.held = lo%lp.shape[1], n
			} else if row := lp.row(lo); o.flat && lp.row(lo+n-1) == row {
				o.phase, o.held = row, n
			}
			kinds[o.dtype].gather(&lp.lanes[k], o, shape, o.steps[:lp.ndim], lo, n)
		}
	}
	for k := range p.outs {
		if o := &lp.operands[p.inputs+k]; o.dense && !o.staged {
			kinds[o.dtype].point(&lp.lanes[p.inputs+k], o.Array, lo, n)
		}
	}
	for i := range p.placed {
		p.placed[i].run(lp.lanes, n)
	}
	for k := range p.outs {
		if o := &lp.operands[p.inputs+k]; !o.dense || o.staged {
			kinds[o.dtype].scatter(&lp.lanes[p.inputs+k], o, shape, o.steps[:lp.ndim], lo, n)
		}
	}
}

// row returns which row of the last dimension has an element.
func (lp *loop) row(i int) int { return i / lp.shape[lp.ndim-1] }

// run executes the instruction on a block of n elements.
func (in *instr) run(l []lane, n int) {
	dst, a := &l[in.dst], &l[in.args[0]]
	if in.hinge != nil {
		in.runHinge(l, n)
		return
	}
	// Missing arguments are the first one, so that every kernel can cut its slices to one length.
	b, c := a, a
	if in.numArgs > 1 {
		b = &l[in.args[1]]
	}
	if in.numArgs > 2 {
		c = &l[in.args[2]]
	}
	if in.float32 != nil { // most are
		(*in.float32)(dst.f[:n], a.f[:n], b.f[:n])
		return
	}
	typing := ops[in.op].typing
	compares := typing == compare || typing == test
	switch {
	case typing == choice && in.typ == Float32:
		selectFloats(dst.f[:n], a.b, b.f, c.f)
	case typing == choice:
		kinds[in.typ].choose(dst, a, b, c, n)
	case in.op == Cast:
		runCast(in.typ, in.to, dst, a, &l[in.wide], n)
	case in.typ.IsHalf():
		in.runHalf(l, compares, n)
	case compares:
		numerics[in.typ].compare(in.op, dst, a, b, n)
	default:
		numerics[in.typ].run(in.op, dst, a, b, n)
	}
}

// runHalf computes half floats as float32s and rounds the result, unless it is a bool.
func (in *instr) runHalf(l []lane, compares bool, n int) {
	dst, x := &l[in.dst], &l[in.wide]
	y := x
	l[in.args[0]].widen(in.typ, x.f[:n])
	if in.numArgs > 1 {
		y = &l[in.wide+1]
		l[in.args[1]].widen(in.typ, y.f[:n])
	}
	if compares {
		numerics[Float32].compare(in.op, dst, x, y, n)
		return
	}
	numerics[Float32].run(in.op, x, x, y, n)
	dst.round(in.typ, x.f[:n])
}
