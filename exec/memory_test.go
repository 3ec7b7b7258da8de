package exec

import (
	"testing"

	"pgregory.net/rapid"
)

// TestClass: a class holds what is asked for, wastes at most an eighth, and is found again from its size.
func TestClass(t *testing.T) {
	last := -1
	for n := 0; n < 1<<14; n++ {
		k, size := class(n)
		if size < n || n > 1<<minShift && 8*(size-n) > n {
			t.Fatalf("%d elements get %d", n, size)
		}
		if k != last && k != last+1 {
			t.Fatalf("class %d follows %d at %d elements", k, last, n)
		}
		last = k
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<39).Draw(t, "n")
		k, size := class(n)
		if size < n || k < 0 || k >= numClasses {
			t.Fatalf("%d elements get %d, class %d", n, size, k)
		}
		if again, same := class(size); again != k || same != size {
			t.Fatalf("class %d of %d elements is found as %d of %d", k, size, again, same)
		}
	})
}

// TestWorkspace: whatever is taken and given back, nobody shares memory, and the books are right.
func TestWorkspace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Workspace
		var taken [][]float32
		next := float32(0)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "put") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				for _, v := range taken[i] {
					if v != taken[i][0] {
						t.Fatal("two buffers share memory")
					}
				}
				w.put(taken[i])
				taken[i] = taken[len(taken)-1]
				taken = taken[:len(taken)-1]
				continue
			}
			n := rapid.IntRange(1, 1000).Draw(t, "n")
			b := w.get(n)
			if len(b) != n {
				t.Fatalf("got %d elements of %d", len(b), n)
			}
			next++
			for i := range b {
				b[i] = next
			}
			taken = append(taken, b)
		}
		var bytes int64
		for _, b := range taken {
			bytes += 4 * int64(cap(b))
		}
		if w.Trim(); w.Bytes() != bytes || w.MaxBytes() < bytes {
			t.Fatalf("%d bytes are in use, at most %d were, want %d", w.Bytes(), w.MaxBytes(), bytes)
		}
	})
}
