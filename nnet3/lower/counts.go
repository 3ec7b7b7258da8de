package lower

// Matrices counts the matrices of the plan that are allocated rather than handed in, and those
// among them whose size is not fixed by the caller.
func (s *Storage) Matrices() (allocated, growable int) {
	for i := range s.bases {
		if b := &s.bases[i]; !b.gone && b.given < 0 {
			allocated++
			if b.exact < 0 {
				growable++
			}
		}
	}
	return allocated, growable
}

// NumAssembled returns how many values the terms of an Assemble make.
func (s *Storage) NumAssembled() int {
	n := 0
	for i := range s.values {
		if s.values[i].kind == assembled {
			n++
		}
	}
	return n
}
