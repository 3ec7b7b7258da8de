package computation

// access is what one command does to a variable or a matrix.
type access struct {
	command int32
	kind    accessKind
}

// life is the life of a matrix.
type life struct {
	// allocate is the command that gives the matrix its memory: AllocMatrix, AcceptInput, or
	// SwapMatrix of which it is the first operand; -1 for none. deallocate is the command that
	// takes it away: DeallocMatrix, or SwapMatrix of which it is the second operand; -1 for none.
	allocate, deallocate int32
	// accesses are in command order; those that allocate and free are left out, except AcceptInput.
	accesses []access
	// isInput and isOutput tell whether the matrix is accepted from the caller or provided to it.
	isInput, isOutput bool
}

// An analyzer knows who reads and writes what in a computation. It takes time and memory in
// proportion to the computation, where every mention of a variable by a command counts.
type analyzer struct {
	c         *Computation
	variables *variables
	effects   []effects  // by command
	accesses  [][]access // by variable, in command order
	lives     []life     // by matrix; that of matrix 0 is empty
}

// analyze analyzes a computation whose numbers are in range. Faults in the lives of matrices go to
// the report; the error is errTooLarge.
func analyze(r *report) (*analyzer, error) {
	vars, err := newVariables(r.c)
	if err != nil {
		return nil, err
	}
	all, err := commandEffects(r.c, r.net, vars)
	if err != nil {
		return nil, err
	}
	a := &analyzer{c: r.c, variables: vars, effects: all, lives: make([]life, len(r.c.Matrices))}
	a.accesses = accessLists(vars.len(), all, func(e *effects) *accessed { return &e.variables })
	for m, list := range accessLists(len(a.lives), all, func(e *effects) *accessed { return &e.matrices }) {
		a.lives[m] = life{allocate: -1, deallocate: -1, accesses: list}
	}
	a.findLives(r)
	return a, nil
}

// accessLists turns what each command accesses into a list of accesses for each of n things.
func accessLists(n int, all []effects, of func(*effects) *accessed) [][]access {
	start := make([]int32, n+1)
	each := func(yield func(thing int32, a access)) {
		for i := range all {
			x := of(&all[i])
			read, written := x.read, x.written
			// Both are ascending, so one walk over the two merges them.
			for len(read) > 0 || len(written) > 0 {
				switch {
				case len(written) == 0 || len(read) > 0 && read[0] < written[0]:
					yield(read[0], access{int32(i), reads})
					read = read[1:]
				case len(read) == 0 || written[0] < read[0]:
					yield(written[0], access{int32(i), writes})
					written = written[1:]
				default:
					yield(read[0], access{int32(i), readsWrites})
					read, written = read[1:], written[1:]
				}
			}
		}
	}
	// Two rounds, first to count and then to fill, so that all lists are cut from one block of
	// memory: there may be a quarter of a billion accesses.
	each(func(thing int32, _ access) { start[thing+1]++ })
	for i := range n {
		start[i+1] += start[i]
	}
	accesses := make([]access, start[n])
	lists := make([][]access, n)
	for i := range lists {
		lists[i] = accesses[start[i]:start[i]:start[i+1]]
	}
	each(func(thing int32, a access) { lists[thing] = append(lists[thing], a) })
	return lists
}

// findLives finds the commands that allocate and free each matrix.
func (a *analyzer) findLives(r *report) {
	once := func(at *int32, i int, sub int32, done string) {
		if *at >= 0 {
			r.addf(errLifetime, i, "m%d is already %s by command c%d", a.c.Submatrices[sub].Matrix, done, *at)
			return
		}
		*at = int32(i)
	}
	of := func(sub int32) *life { return &a.lives[a.c.Submatrices[sub].Matrix] }
	tail := a.c.loopTail()
	for i, cmd := range a.c.Commands {
		switch cmd.Type {
		case AllocMatrix, AcceptInput:
			once(&of(cmd.View()).allocate, i, cmd.View(), "allocated")
			of(cmd.View()).isInput = of(cmd.View()).isInput || cmd.Type == AcceptInput
		case DeallocMatrix:
			once(&of(cmd.View()).deallocate, i, cmd.View(), "freed")
		case SwapMatrix:
			// Swaps at the end of a loop are for the next iteration; here the first one counts.
			if i < tail {
				once(&of(cmd.View()).allocate, i, cmd.View(), "allocated")
			}
			once(&of(cmd.Source()).deallocate, i, cmd.Source(), "freed")
		case ProvideOutput:
			of(cmd.View()).isOutput = true
		}
	}
}
