package egraph

// below returns the symbols of the inputs of the root.
func (m *matcher) below() uint32 {
	if m.inputs == 0 {
		m.inputs = factBit
		for _, c := range m.g.kidsOf(m.nodes[0]) {
			m.inputs |= m.g.classes[c].mask
		}
	}
	return m.inputs
}

// pick takes the next input that was not picked. Of equal inputs, which are adjacent, it
// takes the first.
func (m *matcher) pick(f *frame, in *instr) bool {
	n := m.nodes[in.bind]
	for f.cur < f.end {
		j := uint32(f.cur)
		f.cur++
		c := m.g.kid(n, int(j))
		if in.need != anything && m.g.classes[c].mask&in.need == 0 {
			continue
		}
		// Equal inputs are adjacent, because inputs are sorted. Exchanging them would give
		// the same match again, factorially often; so of a group of equals, the next one is allowed
		// only if the one before it was picked.
		used, before := false, false
		for p := in.arg; p >= 0; p = m.prev[p] {
			used = used || m.pos[p] == j
			before = before || j > 0 && m.pos[p] == j-1
		}
		if used || j > 0 && !before && m.g.kid(n, int(j)-1) == c {
			continue
		}
		m.pos[in.n] = j
		m.regs[in.out] = c
		return true
	}
	return false
}

// seek picks the input that equals a register and was not picked, if there is one.
func (m *matcher) seek(in *instr) bool {
	n, c := m.nodes[in.bind], m.regs[in.in]
	// The inputs are sorted, so the wanted one is found by bisection: in (add x y) where x is
	// known, that turns a loop over the inputs into a lookup.
	lo, end := 0, m.g.arity(n)
	for hi := end; lo < hi; {
		if mid := int(uint(lo+hi) / 2); m.g.kid(n, mid) < c {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < end && m.g.kid(n, lo) == c; lo++ {
		used := false
		for p := in.arg; p >= 0; p = m.prev[p] {
			used = used || m.pos[p] == uint32(lo)
		}
		if !used {
			m.pos[in.n], m.regs[in.out] = uint32(lo), c
			return true
		}
	}
	return false
}
