package pattern

import "math/bits"

// table is a map from keys to numbers that are not negative, by open addressing. Sieves look up
// several keys for each apply.
type table struct {
	slots []slot // a power of two
	used  int
}

type slot struct {
	key   uint64
	value int32 // plus 1; 0: free
}

// hash spreads the bits of a key over the high bits.
func hash(key uint64) uint64 {
	return (key ^ key>>29) * 0x9e3779b97f4a7c15
}

// get returns the value of a key, or none.
func (t *table) get(key uint64) int32 {
	if t.used == 0 {
		return none
	}
	mask := uint64(len(t.slots) - 1)
	for i := hash(key) >> (64 - bits.Len64(mask)); ; i++ {
		if s := &t.slots[i&mask]; s.value == 0 || s.key == key {
			return s.value - 1
		}
	}
}

// add returns the value of a key, which is value if the key is new.
func (t *table) add(key uint64, value int32) (int32, bool) {
	if v := t.get(key); v != none {
		return v, false
	}
	if 2*(t.used+1) > len(t.slots) {
		old := t.slots
		t.slots, t.used = make([]slot, max(8, 2*len(old))), 0
		for _, s := range old {
			if s.value != 0 {
				t.put(s)
			}
		}
	}
	t.put(slot{key, value + 1})
	return value, true
}

func (t *table) put(s slot) {
	mask := uint64(len(t.slots) - 1)
	i := hash(s.key) >> (64 - bits.Len64(mask))
	for t.slots[i&mask].value != 0 {
		i++
	}
	t.slots[i&mask] = s
	t.used++
}
