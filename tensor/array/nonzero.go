package array

import "fmt"

// NonzeroTo makes out[d] the positions along dimension d of the true elements of a mask, in
// row-major order. There is one array for each dimension.
func (ws *Workspace) NonzeroTo(out []*Array, mask *Array) error {
	elements, n := Slice[bool](mask.inRows()), 0
	for _, b := range elements {
		if b {
			n++
		}
	}
	for _, o := range out {
		if err := ws.New(o, Int64, n); err != nil {
			return err
		}
	}
	last := len(out) - 1
	var position [MaxDims]int64
	var places [MaxDims][]int64
	for d, o := range out {
		places[d] = Slice[int64](o)
	}
	// Row by row, with the position of the row in the other dimensions. It ends with the last true
	// element, so there is no row beyond the last one to look at.
	for k := 0; k < n; {
		row := mask.shape[last]
		for i, b := range elements[:row] {
			if b {
				for d := range last {
					places[d][k] = position[d]
				}
				places[last][k] = int64(i)
				k++
			}
		}
		elements = elements[row:]
		for d := last - 1; d >= 0; d-- {
			if position[d]++; position[d] < int64(mask.shape[d]) {
				break
			}
			position[d] = 0
		}
	}
	return nil
}

// RepeatTo makes out the integers 0, 1, …, each as often as counts says. The error wraps ErrIndex
// if a count is negative, and ErrTooLarge if there are too many.
func (ws *Workspace) RepeatTo(out, counts *Array) error {
	total := int64(0)
	for i := range counts.Len() {
		n := counts.Int(i)
		if n < 0 {
			return fmt.Errorf("%w: count %d of element %d", ErrIndex, n, i)
		}
		// Both are bounded, so that the sum can't overflow.
		if n >= 1<<maxShift || total >= 1<<maxShift {
			return fmt.Errorf("%w: more than %d repetitions", ErrTooLarge, int64(1)<<maxShift)
		}
		total += n
	}
	if err := ws.New(out, Int64, int(total)); err != nil {
		return err
	}
	k, places := 0, Slice[int64](out)
	for i := range counts.Len() {
		for range counts.Int(i) {
			places[k] = int64(i)
			k++
		}
	}
	return nil
}
