package egraph

// program finds the roots of patterns among the nodes of a symbol: a tree of instructions that the patterns
// share from the root. It is stored in the order in which it is walked; end is where the subtree of
// an instruction ends.
type program struct {
	tree  []*treeNode
	code  []instr
	cases []int // all cases that it yields
}

type treeNode struct {
	in   instr
	kids []*treeNode
}

type opcode uint8

const (
	opExact   opcode = iota // the op of the root is op
	opParam                 // register out is the op of node bind
	opBind                  // for each node with sym or op in the class of register in: inputs from out on
	opCount                 // node bind has n inputs, or at least n if arg is 1
	opLoad                  // registers from out on are n inputs of node bind
	opPick                  // for each input of node bind that was not picked before: register out
	opSame                  // registers in and arg are equal
	opSameOp                // the parameters of registers in and arg are equal
	opLeaf                  // register in is the class of leaf arg
	opEqual                 // the class in register in is literal arg; register out: a node that shows it
	opNumber                // the class in register in is a number; register out: a node that shows it
	opGuard                 // check arg holds
	opAcyclic               // the class of node bind is not among its inputs
	opYield                 // case arg matches
)

type instr struct {
	code opcode
	sym  Symbol
	op   Op
	in   int32
	out  int32
	bind int32
	n    int32 // of opPick: the number of the pick
	arg  int32 // of opPick: the pick of the same node before, or -1
	end  int32
}

// add adds a pattern.
func (p *program) add(code []instr) {
	level := &p.tree
	for _, in := range code {
		var next *treeNode
		for _, k := range *level {
			if k.in == in && in.code != opYield {
				next = k
				break
			}
		}
		if next == nil {
			next = &treeNode{in: in}
			*level = append(*level, next)
		}
		level = &next.kids
	}
	p.cases = append(p.cases, int(code[len(code)-1].arg))
}

// finish lays the tree out. Its depth is that of patterns.
func (p *program) finish() {
	var walk func(list []*treeNode)
	walk = func(list []*treeNode) {
		for _, k := range list {
			at := len(p.code)
			p.code = append(p.code, k.in)
			walk(k.kids)
			p.code[at].end = int32(len(p.code))
		}
	}
	walk(p.tree)
	p.tree = nil
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
