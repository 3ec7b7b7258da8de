package lower

// Counts counts the matrices of the plan that are allocated rather than handed in, those among them
// whose size the caller does not fix, and the values that the terms of an Assemble make.
func (s *Storage) Counts() (allocated, growable, sums int) {
	for i := range s.bases {
		if b := &s.bases[i]; !b.gone && b.given < 0 {
			allocated++
			if b.exact < 0 {
				growable++
			}
		}
	}
	for i := range s.values {
		if s.values[i].kind == assembled {
			sums++
		}
	}
	return allocated, growable, sums
}
