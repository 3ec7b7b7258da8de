package egraph

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/pattern"
)

// compiler compiles the pattern of a rewrite.
type compiler struct {
	r     *Rules
	info  caseInfo
	code  []instr
	regs  int
	steps map[Symbol]uint32
	queue []todo
	depth map[string]int // of names
}

// todo is an op in a pattern whose class is in a register.
type todo struct {
	call  *pattern.Call
	reg   int
	depth int
	from  Symbol // the op above
	above int    // the node above, and which argument of it this is
	arg   int
	names []int // slots bound to it
}

// compile emits the instructions of a pattern, and returns the symbol of its root. A pattern that
// is a name has none.
func (c *compiler) compile(e pattern.Expr, guards []pattern.Guard) (Symbol, error) {
	c.steps, c.depth = map[Symbol]uint32{}, map[string]int{}
	for {
		b, ok := e.(*pattern.Bind)
		if !ok {
			break
		}
		i, err := c.name(b.Name, 0, 0)
		if err != nil {
			return 0, err
		}
		c.info.slots[i].bind = 0
		e = b.Expr
	}
	switch e := e.(type) {
	case pattern.Name:
		if len(guards) > 0 {
			return 0, errors.New("a pattern that is a name can't have guards")
		}
		c.info.bare = true
		_, err := c.name(string(e), 0, 0)
		return 0, err
	case *pattern.Call:
		root := e
		sym, _, err := c.r.symbolOf(e.Op)
		if err != nil {
			return 0, err
		}
		if c.r.lang.sigs[sym].Outputs > 0 {
			root, sym = c.projection(e), c.r.lang.output
		}
		c.steps[sym] |= 0
		if err := c.inputs(root, sym, 0, 0); err != nil {
			return 0, err
		}
		// Ops below are matched breadth first: tests of names and leaves of all arguments come
		// before the search for nodes in any class, so that most attempts end early.
		for len(c.queue) > 0 {
			t := c.queue[0]
			c.queue = c.queue[1:]
			if err := c.node(t); err != nil {
				return 0, err
			}
		}
		return sym, c.guards(guards)
	}
	return 0, fmt.Errorf("%s is no pattern", e)
}

// projection returns the pattern of an output of an op with several.
func (c *compiler) projection(e *pattern.Call) *pattern.Call {
	inner := *e
	inner.Output = -1
	return &pattern.Call{Op: ".output", Output: e.Output, Args: []pattern.Expr{&inner}}
}

func (c *compiler) emit(in instr) { c.code = append(c.code, in) }

func (c *compiler) reg() int {
	c.regs++
	return c.regs - 1
}

// name binds a name to a register, or compares. It returns the slot.
func (c *compiler) name(name string, reg, depth int) (int, error) {
	for i, s := range c.info.slots {
		if s.name == name {
			if s.param {
				return 0, fmt.Errorf("%s names parameters, too", name)
			}
			c.emit(instr{code: opSame, in: int32(reg), arg: int32(s.reg)})
			c.info.log = max(c.info.log, touchLog+max(depth-1, 0), touchLog+max(c.depth[name]-1, 0))
			return i, nil
		}
	}
	c.depth[name] = depth
	if slices.ContainsFunc(c.info.rests, func(r rest) bool { return r.name == name }) {
		return 0, fmt.Errorf("%s names a rest, too", name)
	}
	c.info.slots = append(c.info.slots, slot{name: name, reg: reg, bind: -1})
	return len(c.info.slots) - 1, nil
}

// node compiles an op below the root.
func (c *compiler) node(t todo) error {
	sym, _, err := c.r.symbolOf(t.call.Op)
	if err != nil {
		return err
	}
	op := noOp
	if c.r.lang.sigs[sym].Outputs > 0 && t.call.Output >= 0 {
		t.call, sym = c.projection(t.call), c.r.lang.output
		op = c.r.lang.Output(t.call.Output)
	}
	c.info.log = max(c.info.log, touchLog+t.depth)
	c.steps[t.from] |= symBit(sym)
	c.steps[sym] |= 0
	bind := c.info.binds
	c.info.binds++
	c.info.nodes = append(c.info.nodes, shape{rest: -1})
	c.info.nodes[t.above].args[t.arg].node = bind
	for _, i := range t.names {
		c.info.slots[i].bind = bind
	}
	in := instr{code: opBind, sym: sym, op: op, in: int32(t.reg), bind: int32(bind)}
	sig := &c.r.lang.sigs[sym]
	if sig.ordered() {
		in.n = int32(sig.Inputs[0])
		in.out = int32(c.regs)
	}
	c.emit(in)
	return c.inputs(t.call, sym, bind, t.depth)
}

// ordered reports whether the op has a certain number of inputs, in order.
func (s *Signature) ordered() bool { return !s.Commutes && s.Inputs[0] == s.Inputs[1] }

// inputs compiles the parameters and arguments of an op that node bind is known to be.
func (c *compiler) inputs(e *pattern.Call, sym Symbol, bind, depth int) error {
	sig := &c.r.lang.sigs[sym]
	if e.Output > 0 && sym != c.r.lang.output {
		return fmt.Errorf("%s has a single output", sig.Name)
	}
	if bind == 0 && sym == c.r.lang.output {
		c.emit(instr{code: opExact, op: c.r.lang.Output(e.Output)})
	}
	if sig.ordered() {
		c.regs += sig.Inputs[0] // of the root: from 1 on
	}
	first := c.regs - sig.Inputs[0]
	if _, param, _ := c.r.symbolOf(e.Op); param != "" {
		if err := c.param(param, bind); err != nil {
			return err
		}
	}
	args := e.Args
	var tail *pattern.Rest
	for i, a := range args {
		if r, ok := a.(pattern.Rest); ok {
			if i != len(args)-1 {
				return errors.New("a rest is the last argument")
			}
			tail = &r
			args = args[:i]
		}
	}
	if n := len(args); tail == nil && n < sig.Inputs[0] || sig.Inputs[1] >= 0 && n > sig.Inputs[1] {
		return fmt.Errorf("%s with %d arguments", sig.Name, n)
	}
	if !sig.ordered() {
		open := int32(0)
		if tail != nil {
			open = 1
		}
		c.emit(instr{code: opCount, bind: int32(bind), n: int32(len(args)), arg: open})
	}
	var err error
	var picks []int
	if sig.Commutes {
		picks, err = c.pickAll(args, sym, bind, depth)
	} else {
		if !sig.ordered() {
			first = c.regs
			c.regs += len(args)
			c.emit(instr{code: opLoad, bind: int32(bind), n: int32(len(args)), out: int32(first)})
		}
		for i, a := range args {
			if err == nil {
				err = c.arg(a, todo{reg: first + i, depth: depth + 1, from: sym, above: bind}, true)
			}
		}
	}
	if tail != nil && *tail != "" {
		r := rest{string(*tail), bind, picks, len(args), depth + 1}
		if sig.Commutes {
			r.from = -1
		}
		if err == nil {
			err = c.tail(r)
		}
	}
	return err
}

// tail binds a rest, or compares.
func (c *compiler) tail(r rest) error {
	if slices.ContainsFunc(c.info.slots, func(s slot) bool { return s.name == r.name }) {
		return fmt.Errorf("%s names a single class or parameters, too", r.name)
	}
	i := slices.IndexFunc(c.info.rests, func(o rest) bool { return o.name == r.name })
	if i < 0 {
		i = len(c.info.rests)
		c.info.rests = append(c.info.rests, r)
	} else {
		c.check(check{args: []checkArg{{reg: -1, rest: c.info.rests[i]}, {reg: -1, rest: r}}})
		c.info.log = max(c.info.log, touchLog+max(r.depth, c.info.rests[i].depth)-1)
	}
	c.info.nodes[r.bind].rest = i
	return nil
}

// pickAll compiles the arguments of an op that commutes, the strictest first, and returns the
// numbers of the picks.
func (c *compiler) pickAll(args []pattern.Expr, sym Symbol, bind, depth int) ([]int, error) {
	args = slices.Clone(args)
	slices.SortStableFunc(args, func(a, b pattern.Expr) int { return c.strictness(a) - c.strictness(b) })
	last := -1
	picks := []int{}
	for _, a := range args {
		reg := c.reg()
		pick := c.info.picks
		c.info.picks++
		picks = append(picks, pick)
		at := len(c.code)
		c.emit(instr{code: opPick, bind: int32(bind), n: int32(pick), arg: int32(last), out: int32(reg)})
		last = pick
		if err := c.arg(a, todo{reg: reg, depth: depth + 1, from: sym, above: bind}, false); err != nil {
			return nil, err
		}
		c.seek(at)
	}
	return picks, nil
}

// seek makes a pick that is compared with a register at once look for it.
func (c *compiler) seek(at int) {
	if len(c.code) > at+1 && c.code[at+1].code == opSame && c.code[at+1].in == c.code[at].out {
		c.code[at].code, c.code[at].in = opPickSame, c.code[at+1].arg
		c.code = slices.Delete(c.code, at+1, at+2)
	}
}

// strictness orders arguments: numbers, ops, names that are bound, others.
func (c *compiler) strictness(e pattern.Expr) int {
	switch e := e.(type) {
	case pattern.Literal:
		return 0
	case *pattern.Call:
		return min(1, len(e.Args))
	case *pattern.Bind:
		return c.strictness(e.Expr)
	case pattern.Name:
		if slices.ContainsFunc(c.info.slots, func(s slot) bool { return s.name == string(e) }) {
			return 2
		}
		return 3
	}
	return 4
}

// arg compiles an argument whose class is in the register of t; ops at once or later.
func (c *compiler) arg(e pattern.Expr, t todo, later bool) error {
	args := &c.info.nodes[t.above].args
	t.arg = len(*args)
	*args = append(*args, shapeArg{slot: -1, leaf: noOp})
	for {
		b, ok := e.(*pattern.Bind)
		if !ok {
			break
		}
		i, err := c.name(b.Name, t.reg, t.depth)
		if err != nil {
			return err
		}
		t.names = append(t.names, i)
		e = b.Expr
	}
	shape := func() *shapeArg { return &c.info.nodes[t.above].args[t.arg] }
	switch e := e.(type) {
	case pattern.Any:
		return nil
	case pattern.Name:
		i, err := c.name(string(e), t.reg, t.depth)
		shape().slot = i
		return err
	case pattern.Literal:
		return c.literal(e, t)
	case *pattern.Call:
		if op, ok := c.r.leafOp(e); ok {
			shape().leaf = op
			return c.leaf(op, t)
		}
		t.call = e
		if later {
			c.queue = append(c.queue, t)
			return nil
		}
		// An input that was picked must be matched as a whole before the next pick: the sooner a
		// wrong pick fails, the fewer further picks are tried for it.
		outer := c.queue
		c.queue = nil
		err := c.node(t)
		for err == nil && len(c.queue) > 0 {
			t, c.queue = c.queue[0], c.queue[1:]
			err = c.node(t)
		}
		c.queue = outer
		return err
	}
	return fmt.Errorf("%s is not allowed in a pattern", e)
}

func (c *compiler) leaf(op Op, t todo) error {
	i := numbered(c.r.numbers, op, &c.r.leaves, op)
	c.info.leaves = append(c.info.leaves, i)
	c.info.log = max(c.info.log, touchLog+t.depth)
	c.steps[t.from] |= symBit(c.r.lang.ops[op].sym)
	c.emit(instr{code: opLeaf, in: int32(t.reg), arg: int32(i)})
	return nil
}

// param captures the parameters of a node, or compares them with those captured before.
func (c *compiler) param(name string, bind int) error {
	reg := c.reg()
	c.emit(instr{code: opParam, bind: int32(bind), out: int32(reg)})
	for _, s := range c.info.slots {
		if s.name == name {
			if !s.param {
				return fmt.Errorf("%s names a class, too", name)
			}
			c.emit(instr{code: opSameOp, in: int32(reg), arg: int32(s.reg)})
			return nil
		}
	}
	c.info.slots = append(c.info.slots, slot{name: name, reg: reg, bind: -1, param: true})
	return nil
}
