package computation

// CheckOptions selects checks. The zero value checks what all computations must satisfy.
type CheckOptions struct {
	// Rewrite also demands that no value changes after it was read. This holds for computations as
	// compiled, and for few optimized ones.
	Rewrite bool
	// AllowUnused permits matrices, and parts of them, that are at most set to a constant: the
	// opposite of Kaldi's check_unused_variables. A looped computation implies it.
	AllowUnused bool
}

// Check reports all faults in a computation at once: the error is a multierror of *Violation, and
// errors.Is finds the kinds. Checks of components or nodes need net (nil for none) and its nodes.
//
// The checks are Kaldi's, in Kaldi's order, with these decisions where Kaldi's code differs from
// its intent, or where Kaldi is silent:
//   - A matrix that is only set to a constant is a fault (ErrUnused) wherever unused parts are.
//     Kaldi means to report it and never does.
//   - An accepted matrix that nothing reads is no fault. Kaldi means to allow it; there, too,
//     accepting counts as a write.
//   - An unused part is allowed if it begins after 80 % of the matrix's rows, whatever columns it
//     spans: extending a matrix to save a copy leaves such parts. Kaldi looks at a few columns
//     only, which tells nothing.
//   - The operands that a command writes must not share an element with its other operands, except
//     that the two may be the same view if the component works in place. Kaldi compares numbers of
//     sub-matrices.
//   - A BackpropNoModelUpdate without input derivative does nothing. It passes, as in Kaldi, which
//     makes such commands when it consolidates updates.
//   - Rows of -1 make CopyRows write zeros; it does not read what was there.
//   - In a looped computation, an iteration ends with the same matrices allocated that it began
//     with.
func Check(c *Computation, net *NetworkInfo, opts CheckOptions) error {
	r := newReport(c, net)
	if r.structure(); r.bad() {
		return r.err() // nothing else could be looked up
	}
	r.commands()
	r.memos()
	a, err := analyze(r)
	if err != nil {
		return err
	}
	var carried []bool
	if c.Looped() {
		opts.AllowUnused = true
		carried = r.loop(a)
	}
	r.lifeFaults(a, carried, opts.AllowUnused)
	r.compression(a)
	r.undefined(a, opts.AllowUnused)
	r.debugInfo()
	if opts.Rewrite {
		r.rewrite(a)
	}
	return r.err()
}
