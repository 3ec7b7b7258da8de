package decodable

// A shape is what chunks have in common that the same program computes. Times count from the first output of the chunk.
type shape struct {
	left, right int // frames of input before the first output and after the last one
	rows        int // of output
	sequences   int // how many chunks are computed at once
}

// frames returns the number of frames of input of a chunk whose rows of output are step frames apart.
func (s shape) frames(step int) int { return s.left + (s.rows-1)*step + 1 + s.right }

// A batch is a number of chunks of an utterance, one after the other, that are computed at once.
type batch struct {
	shape
	first int // row of output at which the first chunk starts
}

// A cutter cuts utterances into chunks.
type cutter struct {
	rows        int // of output of a chunk that is not the last
	left, right int // context of a chunk in the middle
	initial     int // left context of the first chunk
	final       int // right context of the last chunk
	most        int // chunks in a batch
}

// cut appends to dst the chunks of an utterance with the given number of rows of output, in their order. The sizes of
// batches are powers of two, and the largest possible, so that few programs suffice for utterances of all lengths.
func (c *cutter) cut(rows int, dst []batch) []batch {
	for first := 0; first < rows; {
		s := c.at(first, rows)
		same := 1 // chunks of this shape from here on
		for same < c.most && first+same*s.rows < rows && c.at(first+same*s.rows, rows) == s {
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

// at returns the shape of the chunk that starts at a row, as one of a kind.
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
