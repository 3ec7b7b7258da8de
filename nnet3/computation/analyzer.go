package computation

import "sort"

// Access is what one command does to a variable or a matrix.
type Access struct {
	Command int32
	Type    AccessType
}

// MatrixAccesses is the life of a matrix.
type MatrixAccesses struct {
	// Allocate is the command that gives the matrix its memory: AllocMatrix, AcceptInput, or SwapMatrix where it is the
	// first operand; -1 if there is none. Deallocate is the one that takes it away: DeallocMatrix, or SwapMatrix where it is
	// the second operand; -1 if there is none.
	Allocate, Deallocate int32
	// Accesses are in the order of the commands; those that allocate and free are not among them, except AcceptInput.
	Accesses []Access
	// IsInput and IsOutput are true for a matrix that is accepted from the caller, or provided to it.
	IsInput, IsOutput bool
}

// Analyzer knows who reads and writes what in a computation. It takes time and memory in proportion to the computation
// (with the variables that its commands mention counted one by one). It is not changed once it is made, and then safe for
// concurrent use; it goes stale when the computation is changed.
//
// The methods that are asked about a sub-matrix count all commands that touch any part of it.
type Analyzer struct {
	Computation *Computation
	Variables   *Variables
	// Attributes has an entry a command.
	Attributes []CommandAttributes
	// VariableAccesses has an entry a variable: its accesses in the order of the commands.
	VariableAccesses [][]Access
	// MatrixAccesses has an entry a matrix; the one of matrix 0 is empty.
	MatrixAccesses []MatrixAccesses
}

// NewAnalyzer analyzes c. It returns an error with all that is out of range (ErrStructure), that a matrix is allocated or
// freed twice (ErrLifetime), or ErrTooLarge.
func NewAnalyzer(c *Computation, net *NetworkInfo) (*Analyzer, error) {
	r := newReport(c, net)
	if r.structure(); r.bad() {
		return nil, r.err()
	}
	a, err := analyze(c, net, r)
	if err != nil {
		return nil, err
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return a, nil
}

// analyze does the work. What is wrong with lifetimes goes to the report.
func analyze(c *Computation, net *NetworkInfo, r *report) (*Analyzer, error) {
	vars, err := NewVariables(c)
	if err != nil {
		return nil, err
	}
	attrs, err := computeAttributes(c, net, vars)
	if err != nil {
		return nil, err
	}
	a := &Analyzer{Computation: c, Variables: vars, Attributes: attrs}
	a.VariableAccesses = accessLists(vars.Len(), attrs, func(at *CommandAttributes) (read, written []int32) {
		return at.VariablesRead, at.VariablesWritten
	})
	lists := accessLists(len(c.Matrices), attrs, func(at *CommandAttributes) (read, written []int32) {
		return at.MatricesRead, at.MatricesWritten
	})
	a.MatrixAccesses = make([]MatrixAccesses, len(c.Matrices))
	for m := range a.MatrixAccesses {
		a.MatrixAccesses[m] = MatrixAccesses{Allocate: -1, Deallocate: -1, Accesses: lists[m]}
	}
	a.lifetimes(r)
	return a, nil
}

// accessLists turns lists of what each command accesses into lists of who accesses each thing, n things in all.
func accessLists(n int, attrs []CommandAttributes, of func(*CommandAttributes) (read, written []int32)) [][]Access {
	start := make([]int32, n+1)
	each := func(yield func(thing int32, a Access)) {
		for i := range attrs {
			read, written := of(&attrs[i])
			// Both are in increasing order, so one walk over the two merges them.
			for len(read) > 0 || len(written) > 0 {
				switch {
				case len(written) == 0 || len(read) > 0 && read[0] < written[0]:
					yield(read[0], Access{int32(i), ReadAccess})
					read = read[1:]
				case len(read) == 0 || written[0] < read[0]:
					yield(written[0], Access{int32(i), WriteAccess})
					written = written[1:]
				default:
					yield(read[0], Access{int32(i), ReadWriteAccess})
					read, written = read[1:], written[1:]
				}
			}
		}
	}
	each(func(thing int32, _ Access) { start[thing+1]++ })
	for i := range n {
		start[i+1] += start[i]
	}
	all := make([]Access, start[n])
	lists := make([][]Access, n)
	for i := range lists {
		lists[i] = all[start[i]:start[i]:start[i+1]]
	}
	each(func(thing int32, a Access) { lists[thing] = append(lists[thing], a) })
	return lists
}

// lifetimes finds who allocates and frees each matrix.
func (a *Analyzer) lifetimes(r *report) {
	c := a.Computation
	allocate := func(i int, s int32) {
		m := &a.MatrixAccesses[c.Submatrices[s].Matrix]
		if m.Allocate >= 0 {
			r.addf(ErrLifetime, i, "m%d is already allocated by command c%d", c.Submatrices[s].Matrix, m.Allocate)
			return
		}
		m.Allocate = int32(i)
	}
	free := func(i int, s int32) {
		m := &a.MatrixAccesses[c.Submatrices[s].Matrix]
		if m.Deallocate >= 0 {
			r.addf(ErrLifetime, i, "m%d is already freed by command c%d", c.Submatrices[s].Matrix, m.Deallocate)
			return
		}
		m.Deallocate = int32(i)
	}
	tail := c.loopTail()
	for i, cmd := range c.Commands {
		switch cmd.Type {
		case AllocMatrix:
			allocate(i, cmd.Arg1)
		case DeallocMatrix:
			free(i, cmd.Arg1)
		case SwapMatrix:
			// The swaps at the end of a loop fill matrices for the next pass; here the pass that is written out counts.
			if i < tail {
				allocate(i, cmd.Arg1)
			}
			free(i, cmd.Arg2)
		case AcceptInput:
			allocate(i, cmd.Arg1)
			a.MatrixAccesses[c.Submatrices[cmd.Arg1].Matrix].IsInput = true
		case ProvideOutput:
			a.MatrixAccesses[c.Submatrices[cmd.Arg1].Matrix].IsOutput = true
		}
	}
}

// FirstAccess returns the first command that accesses any part of sub-matrix s, the number of commands if none does.
func (a *Analyzer) FirstAccess(s int32) int {
	first := len(a.Attributes)
	for v := range a.Variables.OfSubmatrix(s).All {
		if acc := a.VariableAccesses[v]; len(acc) > 0 {
			first = min(first, int(acc[0].Command))
		}
	}
	return first
}

// FirstNontrivialAccess returns the first command that accesses any part of sub-matrix s and is not zeroing, the number of
// commands if there is none.
func (a *Analyzer) FirstNontrivialAccess(s int32) int {
	first := len(a.Attributes)
	for v := range a.Variables.OfSubmatrix(s).All {
		first = min(first, a.firstNontrivial(a.VariableAccesses[v]))
	}
	return first
}

// LastAccess returns the last command that accesses any part of sub-matrix s, -1 if none does.
func (a *Analyzer) LastAccess(s int32) int {
	last := -1
	for v := range a.Variables.OfSubmatrix(s).All {
		if acc := a.VariableAccesses[v]; len(acc) > 0 {
			last = max(last, int(acc[len(acc)-1].Command))
		}
	}
	return last
}

// LastWriteAccess returns the last command that writes any part of sub-matrix s, -1 if none does, and the number of
// commands if its matrix is an output, because the caller may do what it likes with it.
func (a *Analyzer) LastWriteAccess(s int32) int {
	if a.MatrixAccesses[a.Computation.Submatrices[s].Matrix].IsOutput {
		return len(a.Attributes)
	}
	last := -1
	for v := range a.Variables.OfSubmatrix(s).All {
		acc := a.VariableAccesses[v]
		for i := len(acc) - 1; i >= 0 && int(acc[i].Command) > last; i-- {
			if acc[i].Type&WriteAccess != 0 {
				last = int(acc[i].Command)
			}
		}
	}
	return last
}

// DataInvalidatedCommand returns the first command after c that writes any part of sub-matrix s, else the one that frees
// its matrix, else the number of commands: up to there, what s holds after command c is still there.
func (a *Analyzer) DataInvalidatedCommand(c int, s int32) int {
	end := len(a.Attributes)
	if d := a.MatrixAccesses[a.Computation.Submatrices[s].Matrix].Deallocate; d > int32(c) {
		end = int(d)
	}
	for v := range a.Variables.OfSubmatrix(s).All {
		acc := a.VariableAccesses[v]
		i := sort.Search(len(acc), func(i int) bool { return int(acc[i].Command) > c })
		for ; i < len(acc) && int(acc[i].Command) < end; i++ {
			if acc[i].Type&WriteAccess != 0 {
				end = int(acc[i].Command)
			}
		}
	}
	return end
}

// FirstNontrivialMatrixAccess returns the first command that accesses matrix m and is not zeroing, the number of commands
// if there is none.
func (a *Analyzer) FirstNontrivialMatrixAccess(m int32) int {
	return a.firstNontrivial(a.MatrixAccesses[m].Accesses)
}

// LastMatrixAccess returns the last command that accesses matrix m, -1 if none does.
func (a *Analyzer) LastMatrixAccess(m int32) int {
	if acc := a.MatrixAccesses[m].Accesses; len(acc) > 0 {
		return int(acc[len(acc)-1].Command)
	}
	return -1
}

func (a *Analyzer) firstNontrivial(acc []Access) int {
	for _, x := range acc {
		if cmd := &a.Computation.Commands[x.Command]; cmd.Type != SetConst || cmd.Alpha != 0 {
			return int(x.Command)
		}
	}
	return len(a.Attributes)
}
