package kaldiio

import (
	"encoding/binary"
	"strconv"
)

// IntVector reads a vector of 32-bit integers. An empty vector is not nil.
func (r *Reader) IntVector() ([]int32, error) {
	const what = "a vector of integers"
	if !r.binary {
		return textList(r, what, r.Int32)
	}
	n, err := r.count(what)
	if err != nil {
		return nil, err
	}
	return readArray(r, n, 4, what, func(dst []int32) error { return r.readInts(dst, what) })
}

// IntPairVector reads a vector of pairs of 32-bit integers. An empty vector is not nil.
func (r *Reader) IntPairVector() ([][2]int32, error) {
	const what = "a vector of pairs of integers"
	if !r.binary {
		return textList(r, what, r.textPair)
	}
	n, err := r.count(what)
	if err != nil {
		return nil, err
	}
	return readArray(r, n, 8, what, func(dst [][2]int32) error {
		for i := range dst {
			if err := r.readInts(dst[i][:], what); err != nil {
				return err
			}
		}
		return nil
	})
}

// textPair reads two integers with a comma between them.
func (r *Reader) textPair() (p [2]int32, err error) {
	if p[0], err = r.Int32(); err != nil {
		return p, err
	}
	if c, err := r.Byte(); err != nil || c != ',' {
		return p, r.Errorf("expected a comma between the numbers of a pair")
	}
	p[1], err = r.Int32()
	return p, err
}

// count reads the header of a binary vector of integers: the size of an element and their number.
func (r *Reader) count(what string) (int, error) {
	if !r.fill(5) {
		return 0, r.truncated(what)
	}
	if c := r.buf[r.pos]; c != 4 {
		return 0, r.Errorf("reading %s: element size is %d, want 4", what, int8(c))
	}
	n := int32(binary.LittleEndian.Uint32(r.buf[r.pos+1:]))
	if n < 0 {
		return 0, r.Errorf("reading %s: its length is %d", what, n)
	}
	r.pos += 5
	return int(n), r.mayHave(int(n))
}

// readInts reads integers without size bytes.
func (r *Reader) readInts(dst []int32, what string) error {
	var buf [4096]byte
	for len(dst) > 0 {
		k := min(len(dst), len(buf)/4)
		if err := r.readFull(buf[:k*4], what); err != nil {
			return err
		}
		for i := range k {
			dst[i] = int32(binary.LittleEndian.Uint32(buf[i*4:]))
		}
		dst = dst[k:]
	}
	return nil
}

// IntVector writes a vector of 32-bit integers.
func (w *Writer) IntVector(v []int32) {
	if !w.binary {
		w.Raw("[ ")
		for _, x := range v {
			w.textInt(x)
		}
		w.Raw("]\n")
		return
	}
	w.rawCount(len(v))
	for _, x := range v {
		w.rawInt(x)
	}
}

// IntPairVector writes a vector of pairs of 32-bit integers.
func (w *Writer) IntPairVector(v [][2]int32) {
	if !w.binary {
		w.Raw("[ ")
		for _, p := range v {
			b := append(strconv.AppendInt(w.scratch[:0], int64(p[0]), 10), ',')
			w.bytes(append(strconv.AppendInt(b, int64(p[1]), 10), ' '))
		}
		w.Raw("]\n")
		return
	}
	w.rawCount(len(v))
	for _, p := range v {
		w.rawInt(p[0])
		w.rawInt(p[1])
	}
}

// rawCount writes the header of a binary vector of integers.
func (w *Writer) rawCount(n int) {
	w.Byte(4)
	w.rawInt(int32(n))
}

// rawInt writes an integer without its size byte.
func (w *Writer) rawInt(v int32) {
	w.bytes(binary.LittleEndian.AppendUint32(w.scratch[:0], uint32(v)))
}
