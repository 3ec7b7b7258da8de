package decodable

// A shape is the shape of the chunks of a program. Times are relative to the first output of the
// chunk.
type shape struct {
	left, right int // frames of input before the first output and after the last one
	rows        int // of output
	sequences   int // chunks that are computed at once
}

// frames returns the number of frames of input of a chunk. Rows of output are step frames apart.
func (s shape) frames(step int) int { return s.left + (s.rows-1)*step + 1 + s.right }

// A batch is a sequence of chunks of an utterance that are computed at once.
type batch struct {
	shape
	first int // the first row of output
}

// A cutter cuts utterances into chunks.
type cutter struct {
	rows        int // of output of every chunk but the last
	left, right int // context
	initial     int // left context of the first chunk
	final       int // right context of the last chunk
	max         int // the largest number of chunks in a batch
}

// cut appends the chunks of an utterance with the given number of rows of output to dst, in order.
// The sizes of batches are the largest possible powers of two, so that few programs suffice for
// utterances of all lengths.
func (c *cutter) cut(rows int, dst []batch) []batch {
	for first := 0; first < rows; {
		s := c.at(first, rows)
		same := 1 // chunks of this shape from here on
		for same < c.max && first+same*s.rows < rows && c.at(first+same*s.rows, rows) == s {
			same++
		}
		s.sequences = 1
		for s.sequences*2 <= same {
			s.sequences *= 2
		}
		dst = append(dst, batch{shape: s, first: first})
		first += s.sequences * s.rows
	}
	return dst
}

// at returns the shape of the chunk that starts at row first, as a batch of its own.
func (c *cutter) at(first, rows int) shape {
	s := shape{left: c.left, right: c.right, rows: min(c.rows, rows-first), sequences: 1}
	if first == 0 {
		s.left = c.initial
	}
	if first+s.rows == rows {
		s.right = c.final
	}
	return s
}
