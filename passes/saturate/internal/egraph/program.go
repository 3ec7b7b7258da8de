package egraph

// program finds the roots of patterns among the nodes of a symbol: a tree of instructions that the
// patterns share from the root. It is stored in the order in which it is walked; end is where the
// subtree of an instruction ends.
type program struct {
	tree  treeNode // its kids begin patterns
	next  map[treeEdge]*treeNode
	code  []instr
	cases []int // all cases that it yields
}

// treeEdge leads from a node of the tree to the only one of its kids with an instruction.
type treeEdge struct {
	from *treeNode
	in   instr
}

type treeNode struct {
	in   instr
	kids []*treeNode
}

type opcode uint8

const (
	opExact    opcode = iota // the op of the root is op
	opParam                  // register out is the op of node bind
	opBind                   // for each node with sym or op in the class of register in: inputs from out on
	opCount                  // node bind has n inputs, or at least n if arg is 1
	opLoad                   // registers from out on are n inputs of node bind
	opPick                   // for each input of node bind that was not picked before: register out
	opPickSame               // the same for an input that register in is equal to
	opSame                   // registers in and arg are equal
	opSameOp                 // the parameters of registers in and arg are equal
	opLeaf                   // register in is the class of leaf arg
	opEqual                  // the class in register in is literal arg; register out: a node that shows it
	opGuard                  // check arg holds
	opYield                  // case arg matches
)

type instr struct {
	code opcode
	sym  Symbol
	op   Op
	in   int32
	out  int32
	bind int32
	n    int32 // of picks: the number of the pick
	arg  int32 // of picks: the pick of the same node before, or -1
	end  int32
	need uint32 // of opPick: the symbols of which its class must have one
}

// anything is what a pick needs that fits any class.
const anything = ^uint32(0)

// choosing reports whether the instruction may have several outcomes.
func (in *instr) choosing() bool { return in.code == opBind || in.code == opPick }

// add adds a pattern.
func (p *program) add(code []instr) {
	if p.next == nil {
		p.next = make(map[treeEdge]*treeNode)
	}
	at := &p.tree
	for _, in := range code { // opYield is distinct for each case
		edge := treeEdge{at, in}
		next := p.next[edge]
		if next == nil {
			next = &treeNode{in: in}
			p.next[edge] = next
			at.kids = append(at.kids, next)
		}
		at = next
	}
	p.cases = append(p.cases, int(code[len(code)-1].arg))
}

// finish lays the tree out. Its depth is that of patterns.
func (p *program) finish() {
	var walk func(list []*treeNode)
	walk = func(list []*treeNode) {
		for _, k := range list {
			at := len(p.code)
			if k.in.code == opPick {
				k.in.need = k.needs()
			}
			p.code = append(p.code, k.in)
			walk(k.kids)
			p.code[at].end = int32(len(p.code))
		}
	}
	walk(p.tree.kids)
	p.tree, p.next = treeNode{}, nil
}

// needs returns the symbols of which the class that is picked must have one.
func (n *treeNode) needs() (mask uint32) {
	for _, k := range n.kids {
		if k.in.code != opBind || k.in.in != n.in.out {
			return anything
		}
		mask |= symBit(k.in.sym)
	}
	return mask
}

// enable sets which instructions lead to cases that are wanted.
func (p *program) enable(on []bool, wanted func(c int) bool) []bool {
	on = append(on[:0], make([]bool, len(p.code))...)
	for i := len(p.code) - 1; i >= 0; i-- {
		in := &p.code[i]
		if in.code == opYield {
			on[i] = wanted(int(in.arg))
			continue
		}
		for k := int32(i) + 1; k < in.end; k = p.code[k].end {
			if on[k] {
				on[i] = true
				break
			}
		}
	}
	return on
}

// disable sets that the instruction at a place does not lead to a case that is wanted, and so for
// those that lead to no other.
func (p *program) disable(on []bool, at int32) []bool {
	on[at] = false
	for i := at - 1; i >= 0; i-- {
		if p.code[i].end <= at || !on[i] {
			continue
		}
		for k := i + 1; k < p.code[i].end; k = p.code[k].end {
			if on[k] {
				return on
			}
		}
		on[i] = false
	}
	return on
}
