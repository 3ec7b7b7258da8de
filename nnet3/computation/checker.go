package computation

// CheckOptions says what the checker looks at. The zero value checks what every computation must keep, optimized or not.
type CheckOptions struct {
	// Rewrite also demands that no value is changed after it was read. Computations keep this as they are compiled, and lose
	// it in most optimizations.
	Rewrite bool
	// AllowUnused lets matrices have parts, or be as a whole, that nothing touches, or nothing but zeroing. Kaldi's option
	// is the opposite, check_unused_variables. It is implied for a looped computation.
	AllowUnused bool
}

// Check reports everything that is wrong with a computation, all at once: the error is a multierror of *Violation, and
// errors.Is finds the kinds. Without net (nil), or without its nodes, whatever concerns components or nodes is not checked.
//
// The checks are Kaldi's, in its order, with these decisions where Kaldi's code and its intent differ, or where it is
// silent:
//   - A matrix that is only ever set to a constant is a fault (ErrUnused) wherever unused parts are. Kaldi means to report
//     it and never does.
//   - An accepted matrix that nothing reads is no fault. Kaldi means to allow it; there, too, accepting counts as a write.
//   - An unused part is allowed from 80 % of the matrix's rows on, whatever columns it spans: that is what extending a
//     matrix for the sake of a copy leaves behind. Kaldi asks for some columns only, which tells nothing.
//   - The operands that a command writes must not share any element with its other operands, except that the two may be the
//     same view where the component can work in place. Kaldi compares numbers of sub-matrices.
//   - A BackpropNoModelUpdate without input derivative does nothing, and is let pass as in Kaldi, which makes such commands
//     when it consolidates updates.
//   - Rows of -1 make CopyRows write zeros; it does not read what was there.
//   - In a looped computation, one pass of the loop leaves the same matrices allocated that it began with.
func Check(c *Computation, net *NetworkInfo, opts CheckOptions) error {
	r := newReport(c, net)
	if r.structure(); r.bad() {
		return r.err() // nothing else could be looked up
	}
	r.commands()
	r.memos()
	a, err := analyze(c, net, r)
	if err != nil {
		return err
	}
	looped := c.Looped()
	if looped {
		opts.AllowUnused = true
		r.loop(a)
	}
	r.matrixAccesses(a, opts)
	r.compression(a)
	r.undefined(a, opts)
	r.debugInfo()
	if opts.Rewrite {
		r.rewrite(a)
	}
	return r.err()
}

// Looped reports whether the computation ends in a jump.
func (c *Computation) Looped() bool {
	n := len(c.Commands)
	return n > 0 && c.Commands[n-1].Type == GotoLabel
}

// loopTail returns the number of the first of the swaps just before the jump of a looped computation: they hand the
// matrices at the end of a pass over to its beginning. It is the number of commands where there is no loop.
func (c *Computation) loopTail() int {
	if !c.Looped() {
		return len(c.Commands)
	}
	i := len(c.Commands) - 1
	for i > 0 && c.Commands[i-1].Type == SwapMatrix {
		i--
	}
	return i
}
